-- One row per image, for the parameters window_start, window_end (half-open) and as_of, all TIMESTAMP.
--
-- The image is all that the model sees: a PNG of 8 x 8 grey pixels. The export resizes it once to the size in the spec,
-- which here is the size it has. Every digit is known as soon as its image is there (label_lag_days is 0).
SELECT
  images.image_id,
  images.captured_at,
  images.image,
  images.digit
FROM digits.images AS images
WHERE images.captured_at >= @window_start
  AND images.captured_at < @window_end
  -- Nothing that was not yet there at as_of.
  AND images.captured_at < @as_of
