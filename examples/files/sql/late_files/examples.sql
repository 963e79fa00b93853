-- One row per flight of the files that took place: key, event time, two features, and the label.
SELECT
  flight_id,
  scheduled_departure,
  carrier,
  hour * 60 + minute AS departure_minute,
  CAST(arr_delay > 15 AS INT64) AS arrived_late
FROM files
WHERE arr_delay IS NOT NULL
