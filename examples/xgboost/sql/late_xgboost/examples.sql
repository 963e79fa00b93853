-- One row per flight that took place: key, event time, two features, and the label.
SELECT
  flight_id,
  scheduled_departure,
  carrier,
  hour * 60 + minute AS departure_minute,
  CAST(arr_delay > 15 AS INT64) AS arrived_late
FROM flights.flights
WHERE scheduled_departure >= @window_start
  AND scheduled_departure < @window_end
  AND scheduled_departure < @as_of
  AND arr_delay IS NOT NULL
