-- One row per image of a digit.
SELECT image_id, captured_at, image, CAST(MOD(digit, 2) = 0 AS INT64) AS even
FROM digits.images
WHERE captured_at >= @window_start
  AND captured_at < @window_end
  AND captured_at < @as_of
