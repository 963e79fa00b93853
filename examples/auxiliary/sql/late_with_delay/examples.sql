-- One row per flight that took place: key, event time, features, the label, and two auxiliary labels.
SELECT
  flight_id,
  scheduled_departure,
  carrier,
  distance,
  hour * 60 + minute AS departure_minute,
  CAST(arr_delay > 15 AS INT64) AS arrived_late,
  arr_delay AS arrival_delay,
  IF(distance > 200, air_time, NULL) AS air_time
FROM flights.flights
WHERE scheduled_departure >= @window_start
  AND scheduled_departure < @window_end
  AND scheduled_departure < @as_of
  AND arr_delay IS NOT NULL
