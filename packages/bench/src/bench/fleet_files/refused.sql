-- As examples.sql, with a division by zero that nobody sees before the query runs.
SELECT
  visit_id,
  visited,
  shop,
  minutes / (visit_id - visit_id) AS minutes,
  pages,
  bought
FROM fleet.visits
WHERE visited >= @window_start
  AND visited < @window_end
  AND visited < @as_of
