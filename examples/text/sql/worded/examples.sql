-- One row per flight that took place: key, event time, a sentence about it, and the label.
SELECT
  flight_id,
  scheduled_departure,
  CONCAT('carrier ', carrier, ' from ', origin, ' to ', dest, ' at ', CAST(hour AS STRING), ' hours') AS remark,
  CAST(arr_delay > 15 AS INT64) AS arrived_late
FROM flights.flights
WHERE scheduled_departure >= @window_start
  AND scheduled_departure < @window_end
  AND scheduled_departure < @as_of
  AND arr_delay IS NOT NULL
