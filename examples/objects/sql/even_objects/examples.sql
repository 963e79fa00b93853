-- One row per image of a digit: where it lies.
SELECT
  image_id,
  captured_at,
  CONCAT('gs://local-retraining/photos/digits/', image_id, '.png') AS image,
  CAST(MOD(digit, 2) = 0 AS INT64) AS even
FROM digits.images
WHERE captured_at >= @window_start
  AND captured_at < @window_end
  AND captured_at < @as_of
