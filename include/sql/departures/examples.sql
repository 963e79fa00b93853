-- One row per airport and hour, for the parameters window_start, window_end (half-open) and as_of, all TIMESTAMP: how many
-- flights left in it, and what was known when it began.
--
-- A flight counts in the hour in which it really left: the 48 hours before end where the hour begins, and a flight that
-- was late then is not in them. The timetable stands months ahead, so the flights that are due in the hour are known; a
-- cancelled one is due and never leaves. An hour without a departure is a row with 0, as most at night are: so is every
-- hour of a day whose flights were not loaded, which the check max_label_shift finds.
WITH hours AS (
  SELECT origin, hour, DATETIME(hour, 'America/New_York') AS local_hour
  FROM
    UNNEST(['EWR', 'JFK', 'LGA']) AS origin,
    UNNEST(GENERATE_TIMESTAMP_ARRAY(
      TIMESTAMP_SUB(@window_start, INTERVAL 8 DAY),  -- the first rows need the week before them
      TIMESTAMP_SUB(LEAST(@window_end, TIMESTAMP_TRUNC(@as_of, HOUR)), INTERVAL 1 HOUR),
      INTERVAL 1 HOUR
    )) AS hour
),
times AS (
  SELECT
    origin,
    TIMESTAMP_TRUNC(scheduled_departure, HOUR) AS due_hour,
    TIMESTAMP_TRUNC(TIMESTAMP_ADD(scheduled_departure, INTERVAL dep_delay MINUTE), HOUR) AS left_hour
  FROM flights.flights
  WHERE scheduled_departure >= TIMESTAMP_SUB(@window_start, INTERVAL 10 DAY)  -- the latest left a day after its time
    AND scheduled_departure < TIMESTAMP_ADD(@window_end, INTERVAL 1 DAY)
),
departed AS (
  SELECT origin, left_hour AS hour, COUNT(*) AS departures
  FROM times
  WHERE left_hour IS NOT NULL
  GROUP BY origin, left_hour
),
due AS (
  SELECT origin, due_hour AS hour, COUNT(*) AS scheduled
  FROM times
  GROUP BY origin, due_hour
),
counted AS (
  SELECT
    hours.origin,
    hours.hour,
    hours.local_hour,
    IFNULL(departed.departures, 0) AS departures,
    IFNULL(due.scheduled, 0) AS scheduled
  FROM hours
  LEFT JOIN departed ON departed.origin = hours.origin AND departed.hour = hours.hour
  LEFT JOIN due ON due.origin = hours.origin AND due.hour = hours.hour
),
series AS (
  SELECT
    *,
    ARRAY_AGG(departures) OVER before AS departures_before,  -- oldest first
    ARRAY_AGG(scheduled) OVER before AS scheduled_before
  FROM counted
  WINDOW before AS (PARTITION BY origin ORDER BY hour ROWS BETWEEN 48 PRECEDING AND 1 PRECEDING)
)
SELECT
  CONCAT(series.origin, FORMAT_TIMESTAMP(' %Y-%m-%d %H:00Z', series.hour)) AS hour_id,
  series.hour,
  series.origin,
  EXTRACT(HOUR FROM series.local_hour) AS hour_of_day,
  EXTRACT(DAYOFWEEK FROM series.local_hour) AS day_of_week,  -- 1 = Sunday
  series.scheduled,
  series.departures_before,
  series.scheduled_before,
  series.departures_before[ORDINAL(48)] AS departures_last_hour,
  yesterday.departures AS departures_yesterday,
  last_week.departures AS departures_last_week,
  series.departures
FROM series
-- The same hour by New York's clock, also where that was put forward or back in between.
JOIN counted AS yesterday
  ON yesterday.origin = series.origin
  AND yesterday.hour = TIMESTAMP(DATETIME_SUB(series.local_hour, INTERVAL 1 DAY), 'America/New_York')
JOIN counted AS last_week
  ON last_week.origin = series.origin
  AND last_week.hour = TIMESTAMP(DATETIME_SUB(series.local_hour, INTERVAL 7 DAY), 'America/New_York')
WHERE series.hour >= @window_start
