-- One row per flight that took place, for the parameters window_start, window_end (half-open) and as_of, all TIMESTAMP.
--
-- Only what is known before departure is a feature: the schedule, the route, and the weather at the origin in the
-- scheduled hour (in service the forecast for that hour stands in for it). Departure delay, air time and actual times
-- are left out on purpose: they are known only when the answer nearly is, and a model that leans on them is worthless
-- at the moment it is asked. `tailnum` is left out too: the aircraft is often changed shortly before departure.
--
-- Cancelled and diverted flights have no arrival delay (arr_delay is NULL). They are neither late nor on time, so they
-- are not examples; the model answers "if it flies, will it be late?".
SELECT
  flights.flight_id,
  flights.scheduled_departure,
  flights.carrier,
  flights.origin,
  flights.dest,
  flights.distance,
  flights.month,
  EXTRACT(DAYOFWEEK FROM DATE(flights.year, flights.month, flights.day)) AS day_of_week,  -- 1 = Sunday
  -- Local scheduled times: the source's hour and minute are New York's.
  flights.hour * 60 + flights.minute AS departure_minute,
  DIV(flights.sched_arr_time, 100) * 60 + MOD(flights.sched_arr_time, 100) AS arrival_minute,
  weather.temp,
  weather.humid,
  weather.wind_speed,
  weather.precip,
  weather.pressure,
  weather.visib,
  CAST(flights.arr_delay > 15 AS INT64) AS arrived_late
FROM flights.flights AS flights
LEFT JOIN flights.weather AS weather
  ON weather.origin = flights.origin AND weather.time_hour = flights.time_hour
WHERE flights.scheduled_departure >= @window_start
  AND flights.scheduled_departure < @window_end
  -- Nothing that was not yet there at as_of; matters when the window is close to it.
  AND flights.scheduled_departure < @as_of
  AND flights.arr_delay IS NOT NULL
