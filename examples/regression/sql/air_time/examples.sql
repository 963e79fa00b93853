-- One row per flight that arrived, with the minutes it was in the air, and what the route's flights took a week before.
WITH routes AS (
  SELECT origin, dest, year, month, day, AVG(air_time) AS air_time
  FROM flights.flights
  WHERE scheduled_departure < @as_of
  GROUP BY origin, dest, year, month, day
)
SELECT
  flights.flight_id,
  flights.scheduled_departure,
  flights.distance,
  flights.hour * 60 + flights.minute AS departure_minute,
  flights.origin,
  flights.dest,
  flights.carrier,
  routes.air_time AS air_time_last_week,
  flights.air_time
FROM flights.flights AS flights
LEFT JOIN routes
  ON routes.origin = flights.origin
  AND routes.dest = flights.dest
  AND DATE(routes.year, routes.month, routes.day)
    = DATE_SUB(DATE(flights.year, flights.month, flights.day), INTERVAL 7 DAY)
WHERE flights.scheduled_departure >= @window_start
  AND flights.scheduled_departure < @window_end
  AND flights.scheduled_departure < @as_of
  AND flights.air_time IS NOT NULL
