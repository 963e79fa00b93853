-- One row per visit: key, event time, three features, and the label.
SELECT
  visit_id,
  visited,
  shop,
  minutes,
  pages,
  bought
FROM fleet.visits
WHERE visited >= @window_start
  AND visited < @window_end
  AND visited < @as_of
