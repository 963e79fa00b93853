-- How many requests the log has of a window.
SELECT COUNT(*) AS requests FROM `$table` WHERE logging_time >= @since AND logging_time < @until
