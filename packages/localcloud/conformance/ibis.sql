-- The tables that Ibis' tests read, for the suite `ibis` of `make conformance`: its data is no package. The names and
-- types are those that the tests ask for; the values are made up.

CREATE OR REPLACE TABLE {dataset}.functional_alltypes AS
SELECT n AS id, MOD(n, 2) = 0 AS bool_col, MOD(n, 10) AS tinyint_col, MOD(n, 10) AS smallint_col, MOD(n, 10) AS
  int_col,
  10 * MOD(n, 10) AS bigint_col, ROUND(1.1 * MOD(n, 10), 1) AS float_col, ROUND(10.1 * MOD(n, 10), 1) AS double_col,
  FORMAT_DATE('%m/%d/%y', day) AS date_string_col, CAST(MOD(n, 10) AS STRING) AS string_col,
  DATETIME_ADD(CAST(day AS DATETIME), INTERVAL 60000 * MOD(n, 10) + 30 * MOD(n, 10) MILLISECOND) AS timestamp_col,
  EXTRACT(YEAR FROM day) AS year, EXTRACT(MONTH FROM day) AS month
FROM (SELECT n, DATE_ADD(DATE '2009-01-01', INTERVAL DIV(n, 10) DAY) AS day FROM UNNEST(GENERATE_ARRAY(0, 7299))
  AS n);

CREATE OR REPLACE TABLE {dataset}.functional_alltypes_parted (id INT64, bool_col BOOL, tinyint_col INT64,
  smallint_col INT64, int_col INT64, bigint_col INT64, float_col FLOAT64, double_col FLOAT64, date_string_col
  STRING, string_col STRING, timestamp_col DATETIME, year INT64, month INT64) PARTITION BY _PARTITIONDATE;

CREATE OR REPLACE TABLE {dataset}.diamonds AS
SELECT ROUND(0.2 + MOD(n * 37, 480) / 100, 2) AS carat,
  ['Fair', 'Good', 'Ideal', 'Premium', 'Very Good'][OFFSET(MOD(n * 7, 5))] AS cut,
  ['D', 'E', 'F', 'G', 'H', 'I', 'J'][OFFSET(MOD(n * 11, 7))] AS color,
  ['I1', 'IF', 'SI1', 'SI2', 'VS1', 'VS2', 'VVS1', 'VVS2'][OFFSET(MOD(n * 13, 8))] AS clarity,
  ROUND(43.0 + MOD(n * 17, 360) / 10, 1) AS depth, ROUND(43.0 + MOD(n * 19, 520) / 10, 1) AS `table`,
  326 + MOD(n * 7919, 18498) AS price, ROUND(MOD(n * 23, 1074) / 100, 2) AS x, ROUND(MOD(n * 29, 1074) / 100, 2) AS y,
  ROUND(MOD(n * 31, 700) / 100, 2) AS z
FROM UNNEST(GENERATE_ARRAY(1, 5394)) AS n;

CREATE OR REPLACE TABLE {dataset}.batting AS
SELECT CONCAT('player', LPAD(CAST(MOD(n * 7, 1000) AS STRING), 4, '0')) AS playerID, 1871 + MOD(n * 13, 144) AS
  yearID,
  1 + MOD(n, 2) AS stint, CONCAT('T', CAST(MOD(n * 5, 30) AS STRING)) AS teamID,
  ['AL', 'NL', 'NA'][OFFSET(MOD(n, 3))] AS lgID,
  MOD(n * 3, 160) AS G,
  MOD(n * 5, 153) AS AB,
  MOD(n * 7, 146) AS R,
  MOD(n * 9, 139) AS H,
  MOD(n * 11, 132) AS X2B,
  MOD(n * 13, 125) AS X3B,
  MOD(n * 15, 118) AS HR,
  IF(MOD(n, 18) = 0, NULL, MOD(n * 17, 111)) AS RBI,
  IF(MOD(n, 19) = 0, NULL, MOD(n * 19, 104)) AS SB,
  IF(MOD(n, 20) = 0, NULL, MOD(n * 21, 97)) AS CS,
  IF(MOD(n, 21) = 0, NULL, MOD(n * 23, 90)) AS BB,
  IF(MOD(n, 22) = 0, NULL, MOD(n * 25, 83)) AS SO,
  IF(MOD(n, 23) = 0, NULL, MOD(n * 27, 76)) AS IBB,
  IF(MOD(n, 24) = 0, NULL, MOD(n * 29, 69)) AS HBP,
  IF(MOD(n, 25) = 0, NULL, MOD(n * 31, 62)) AS SH,
  IF(MOD(n, 26) = 0, NULL, MOD(n * 33, 55)) AS SF,
  IF(MOD(n, 27) = 0, NULL, MOD(n * 35, 48)) AS GIDP
FROM UNNEST(GENERATE_ARRAY(0, 4999)) AS n;

CREATE OR REPLACE TABLE {dataset}.awards_players AS
SELECT CONCAT('player', LPAD(CAST(MOD(n * 7, 1000) AS STRING), 4, '0')) AS playerID,
  ['Gold Glove', 'MVP', 'Cy Young', 'Rookie'][OFFSET(MOD(n, 4))] AS awardID, 1877 + MOD(n * 11, 136) AS yearID,
  ['AL', 'NL', 'ML'][OFFSET(MOD(n, 3))] AS lgID, IF(MOD(n, 50) = 0, 'Y', NULL) AS tie,
  IF(MOD(n, 3) = 0, ['P', 'C', 'SS'][OFFSET(MOD(n, 3))], NULL) AS notes
FROM UNNEST(GENERATE_ARRAY(0, 6077)) AS n;

CREATE OR REPLACE TABLE {dataset}.astronauts AS
SELECT n AS id, n AS number, MOD(n, 500) AS nationwide_number, CONCAT('Name, ', CAST(n AS STRING)) AS name,
  CONCAT('Name ', CAST(n AS STRING)) AS original_name, IF(MOD(n, 9) = 0, 'female', 'male') AS sex,
  1921 + MOD(n * 3, 63) AS year_of_birth, ['U.S.', 'U.S.S.R/Russia', 'Japan'][OFFSET(MOD(n, 3))] AS nationality,
  IF(MOD(n, 2) = 0, 'military', 'civilian') AS military_civilian, CONCAT('Group ', CAST(MOD(n, 20) AS STRING))
  AS selection,
  1959 + MOD(n, 60) AS year_of_selection, 1 + MOD(n, 7) AS mission_number, 1 + MOD(n, 7) AS total_number_of_missions,
  ['commander', 'pilot', 'MSP'][OFFSET(MOD(n, 3))] AS occupation, 1961 + MOD(n, 59) AS year_of_mission,
  CONCAT('STS-', CAST(n AS STRING)) AS mission_title, 'Shuttle' AS ascend_shuttle, 'ISS' AS in_orbit,
  'Shuttle' AS descend_shuttle, ROUND(MOD(n * 17, 10505) + 0.25, 2) AS hours_mission,
  ROUND(MOD(n * 19, 21083) + 0.5, 2) AS total_hrs_sum, MOD(n, 3) AS field21, ROUND(MOD(n, 90) / 10, 2) AS
  eva_hrs_mission,
  ROUND(MOD(n, 79) + 0.1, 2) AS total_eva_hrs
FROM UNNEST(GENERATE_ARRAY(1, 1277)) AS n;

CREATE OR REPLACE TABLE {dataset}.array_types (x ARRAY<INT64>, y ARRAY<STRING>, z ARRAY<FLOAT64>, grouper STRING,
  scalar_column FLOAT64, multi_dim ARRAY<STRUCT<arr ARRAY<INT64>>>);
INSERT INTO {dataset}.array_types VALUES
  ([1, 2, 3], ['a', 'b', 'c'], [1.0, 2.0, 3.0], 'a', 1.0, [STRUCT([] AS arr), STRUCT([1, 2, 3] AS arr)]),
  ([4, 5], ['d', 'e'], [4.0, 5.0], 'a', 2.0, []),
  ([6], ['f'], [6.0], 'a', 3.0, [STRUCT([] AS arr)]),
  ([1], ['a'], [], 'b', 4.0, [STRUCT([1] AS arr), STRUCT([2] AS arr), STRUCT([] AS arr), STRUCT([3, 4, 5] AS arr)]),
  ([2, 3], ['b', 'c'], NULL, 'b', 5.0, NULL),
  ([4, 5], ['d', 'e'], [4.0, 5.0], 'c', 6.0, [STRUCT([1, 2, 3] AS arr)]);

CREATE OR REPLACE TABLE {dataset}.struct (abc STRUCT<a FLOAT64, b STRING, c INT64>);
INSERT INTO {dataset}.struct VALUES (STRUCT(1.0, 'banana', 2)), (STRUCT(2.0, 'apple', 3)), (STRUCT(3.0, 'orange', 4)),
  (STRUCT(NULL, 'banana', 2)), (STRUCT(2.0, NULL, 3)), (NULL), (STRUCT(3.0, 'orange', NULL));

CREATE OR REPLACE TABLE {dataset}.json_t (rowid INT64, js JSON);
INSERT INTO {dataset}.json_t VALUES
  (1, JSON '{{"a": [1,2,3,4], "b": 1}}'),
  (2, JSON '{{"a":null,"b":2}}'),
  (3, JSON '{{"a":"foo", "c":null}}'),
  (4, JSON 'null'),
  (5, JSON '[42,47,55]'),
  (6, JSON '[]'),
  (7, JSON '"a"'),
  (8, JSON '""'),
  (9, JSON '"b"'),
  (10, NULL),
  (11, JSON 'true'),
  (12, JSON 'false'),
  (13, JSON '42'),
  (14, JSON '37.37');

CREATE OR REPLACE TABLE {dataset}.win (g STRING, x INT64 NOT NULL, y INT64);
INSERT INTO {dataset}.win VALUES ('a', 0, 3), ('a', 1, 2), ('a', 2, 0), ('a', 3, 1), ('a', 4, 1);

CREATE OR REPLACE TABLE {dataset}.topk (x INT64);
INSERT INTO {dataset}.topk VALUES (1), (1), (NULL);

CREATE OR REPLACE TABLE {dataset}.numeric_table (string_col STRING, numeric_col NUMERIC);
INSERT INTO {dataset}.numeric_table VALUES ('1st value', 0.999999999), ('2nd value', 0.000000002);

CREATE OR REPLACE TABLE {dataset}.struct_table (
  array_of_structs_col ARRAY<STRUCT<int_field INT64, string_field STRING>>,
  nested_struct_col STRUCT<sub_struct STRUCT<timestamp_col TIMESTAMP>>, struct_col STRUCT<string_field STRING>);
INSERT INTO {dataset}.struct_table VALUES
  ([STRUCT(12345, 'abcdefg'), STRUCT(NULL, NULL)], STRUCT(STRUCT(NULL)), STRUCT(NULL)),
  ([STRUCT(12345, 'abcdefg'), STRUCT(NULL, 'hijklmnop')], STRUCT(STRUCT(TIMESTAMP '2017-10-20 16:37:50')),
  STRUCT('a'));

CREATE OR REPLACE TABLE {dataset}.timestamp_column_parted (my_timestamp_parted_col TIMESTAMP, string_col STRING,
  int_col INT64) PARTITION BY DATE(my_timestamp_parted_col);

CREATE OR REPLACE TABLE {dataset}.date_column_parted (my_date_parted_col DATE, string_col STRING, int_col INT64)
  PARTITION BY my_date_parted_col;
