-- A run table of the flights, {copies} times over, spread evenly over {spans} days, a tenth of each for validation.
-- Hashes come from arithmetic: the local cloud's FARM_FINGERPRINT is a Python function.
CREATE OR REPLACE TABLE {table} CLUSTER BY span, part, shard AS
WITH numbered AS (
  SELECT f.*, ROW_NUMBER() OVER () AS n
  FROM flights.flights AS f, UNNEST(GENERATE_ARRAY(1, {copies})) AS copy
),
parted AS (
  SELECT numbered.*, IF(MOD(DIV(n, {spans}), 10) = 9, 'validation', 'train') AS part FROM numbered
)
SELECT
  * EXCEPT (n),
  DATE_ADD(DATE '2013-09-20', INTERVAL MOD(n, {spans}) DAY) AS span,
  IF(part = 'train', MOD(DIV(DIV(n, {spans}), 10), {train_shards}), 0) AS shard,
  MOD(n * 2654435761, 4294967291) - 2147483648 AS row_hash
FROM parted
