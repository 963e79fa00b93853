-- One row per airport and hour: what the 24 hours before it were like, and whether it got warmer. A missing measurement
-- is NaN, a step without a value: BigQuery's arrays hold no NULL.
WITH hours AS (
  SELECT
    CONCAT(origin, ' ', CAST(time_hour AS STRING)) AS hour_id,
    time_hour,
    origin,
    ARRAY_AGG(IFNULL(temp, CAST('NaN' AS FLOAT64))) OVER before AS temps,
    ARRAY_AGG(IFNULL(humid, CAST('NaN' AS FLOAT64))) OVER before AS humids,
    CAST(temp > LAG(temp) OVER (PARTITION BY origin ORDER BY time_hour) AS INT64) AS warmer
  FROM flights.weather
  WHERE time_hour >= TIMESTAMP_SUB(@window_start, INTERVAL 2 DAY)  -- the first rows need the hours before them
    AND time_hour < @window_end
  WINDOW before AS (PARTITION BY origin ORDER BY time_hour ROWS BETWEEN 24 PRECEDING AND 1 PRECEDING)
)
SELECT hour_id, time_hour, origin, temps, humids, warmer
FROM hours
WHERE time_hour >= @window_start
  AND time_hour < @as_of
  AND warmer IS NOT NULL
