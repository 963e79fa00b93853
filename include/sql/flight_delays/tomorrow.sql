-- One row per flight of the day that begins at as_of (TIMESTAMP), for score__flight_delays: the key and the features of
-- examples.sql, without the label, which nobody knows yet.
SELECT
  flights.flight_id,
  flights.carrier,
  flights.origin,
  flights.dest,
  flights.distance,
  EXTRACT(DAYOFWEEK FROM DATE(flights.year, flights.month, flights.day)) AS day_of_week,  -- 1 = Sunday
  flights.hour * 60 + flights.minute AS departure_minute,
  DIV(flights.sched_arr_time, 100) * 60 + MOD(flights.sched_arr_time, 100) AS arrival_minute,
  weather.temp,
  weather.humid,
  weather.wind_speed,
  weather.precip,
  weather.pressure,
  weather.visib
FROM flights.flights AS flights
LEFT JOIN flights.weather AS weather
  ON weather.origin = flights.origin AND weather.time_hour = flights.time_hour
WHERE flights.scheduled_departure >= @as_of
  AND flights.scheduled_departure < TIMESTAMP_ADD(@as_of, INTERVAL 1 DAY)
