"""Calls, windows, joins and names of results that BigQuery refuses and DuckDB answers, with a part of what it says.

Facts are from cloud.google.com/bigquery/docs/reference/standard-sql: functions-all, window-function-calls,
query-syntax, and of the signatures in github.com/google/zetasql.
"""

from __future__ import annotations

MATCHING = "No matching signature for"
CALLS: dict[str, str] = {
    "REPEAT(s, f)": "STRING, FLOAT64", "REPEAT(s, '2')": "STRING, STRING", "LPAD(s, '3')": "STRING, STRING",
    "LEFT(s, '1')": "STRING, STRING", "SUBSTR(s, '1')": "STRING, STRING", "SUBSTR(s, f)": "STRING, FLOAT64",
    "TO_HEX(s)": "STRING", "TO_HEX(i)": "INT64", "BYTE_LENGTH(i)": "INT64",
    "ARRAY_TO_STRING(a, ',')": "ARRAY<INT64>, STRING", "GENERATE_ARRAY('1', '3')": "STRING, STRING",
    "GENERATE_ARRAY(1, 3, '1')": "INT64, INT64, STRING", "GENERATE_DATE_ARRAY(ts, ts)": "TIMESTAMP, TIMESTAMP",
    "DATE_DIFF(ts, day, DAY)": "TIMESTAMP, DATE, DATE_TIME_PART",
    "TIME_ADD(ts, INTERVAL 1 HOUR)": "TIMESTAMP", "LAST_DAY(ts)": "TIMESTAMP", "TIMESTAMP_SECONDS(f)": "FLOAT64",
    "TIMESTAMP_MILLIS(s)": "STRING", "DATE_FROM_UNIX_DATE(f)": "FLOAT64", "STRING(i)": "INT64", "STRING(s)": "STRING",
    "STRING(b)": "BOOL", "INT64(s)": "STRING", "FLOAT64(i)": "INT64", "JSON_VALUE(i, '$')": "INT64, STRING",
    "JSON_VALUE(day, '$')": "DATE, STRING", "JSON_EXTRACT(a, '$')": "ARRAY<INT64>, STRING", "PARSE_JSON(i)": "INT64",
    "PARSE_JSON(j)": "JSON", "IEEE_DIVIDE(s, 2)": "STRING, INT64", "ROUND(f, '1')": "FLOAT64, STRING",
    "BIT_COUNT(f)": "FLOAT64", "UPPER(i)": "INT64", "SUM(s)": "STRING", "COUNTIF(i)": "INT64",
    "STRPOS(bytes, s)": "BYTES, STRING", "CORR(s, i)": "STRING, INT64", "SAFE_DIVIDE(s, 2)": "STRING, INT64",
    "FORMAT_DATE('%Y', s)": "STRING, STRING", "SAFE.REPEAT(s, f)": "STRING, FLOAT64",
}  # fmt: skip
"""With types that no signature of the function takes."""
REFUSED_CALLS: dict[str, tuple[tuple[str, str], ...]] = {
    "calls": tuple(
        (
            f"SELECT {call} FROM $t",
            f"function {call.removeprefix('SAFE.').partition('(')[0]} for argument types: {kinds}",
        )
        for call, kinds in CALLS.items()
    ),
    "values that are not defined": (
        ("SELECT MIN(st) FROM $t", "MIN is not defined for arguments of type STRUCT"),
        ("SELECT MAX(a) FROM $t", "MAX is not defined for arguments of type ARRAY"),
        ("SELECT ARRAY_AGG(a) FROM $t", "The argument to ARRAY_AGG must not be an array type but was ARRAY<INT64>"),
        ("SELECT APPROX_COUNT_DISTINCT(a) FROM $t", "APPROX_COUNT_DISTINCT is not defined for arguments of type ARRAY"),
        ("SELECT GREATEST(a, a) FROM $t", "GREATEST is not defined for arguments of type ARRAY"),
        ("SELECT COUNT(DISTINCT j) FROM $t", "DISTINCT cannot be used with arguments of type JSON"),
        ("SELECT FORMAT('%s', i) FROM $t", "Invalid type for argument 2 to FORMAT; Expected STRING; Got INT64"),
        ("SELECT FORMAT('%5d-%s', i, day) FROM $t", "Invalid type for argument 3 to FORMAT; Expected STRING; Got DATE"),
        ("SELECT FORMAT('%d', b) FROM $t", "Invalid type for argument 2 to FORMAT; Expected INT64; Got BOOL"),
        ("SELECT JSON_VALUE(j, s) FROM $t", "JSONPath must be a string literal or query parameter"),
        ("SELECT a['0'] FROM $t", "Array position in [] must be coercible to INT64 type, but has type STRING"),
        ("SELECT CAST(st AS STRING) FROM $t", "Invalid cast from STRUCT to STRING"),
    ),
    "operators": (
        ("SELECT a + a FROM $t", f"{MATCHING} operator + for argument types: ARRAY<INT64>, ARRAY<INT64>"),
        ("SELECT ts - day FROM $t", f"{MATCHING} operator - for argument types: TIMESTAMP, DATE"),
        ("SELECT i << '1' FROM $t", f"{MATCHING} operator << for argument types: INT64, STRING"),
        ("SELECT i & f FROM $t", f"{MATCHING} operator & for argument types: INT64, FLOAT64"),
        ("SELECT s * 2 FROM $t", f"{MATCHING} operator * for argument types: STRING, INT64"),
        ("SELECT st > st FROM $t", "Greater than is not defined for arguments of type STRUCT"),
    ),
    "windows": (
        ("SELECT ROW_NUMBER() OVER (PARTITION BY f) FROM $t", "Partitioning by expressions of type FLOAT64"),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY a) FROM $t", "Partitioning by expressions of type ARRAY"),
        ("SELECT SUM(DISTINCT i) OVER (ORDER BY i) FROM $t", "Window ORDER BY is not allowed if DISTINCT is specified"),
        ("SELECT ARRAY_AGG(i ORDER BY i) OVER () FROM $t", "are not allowed in analytic function array_agg"),
        ("SELECT SUM(i) OVER (ORDER BY day RANGE 1 PRECEDING) FROM $t", "but has type DATE"),
        (
            "SELECT SUM(i) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) FROM $t",
            "but has type TIMESTAMP",
        ),
        ("SELECT SUM(i) OVER (ORDER BY i, f RANGE 1 PRECEDING) FROM $t", "must have exactly one ORDER BY key"),
        ("SELECT FIRST_VALUE(i) OVER () FROM $t", "Window ORDER BY is required for analytic function first_value"),
        ("SELECT RANK() OVER (ORDER BY i ROWS 1 PRECEDING) FROM $t", "framing clause is not allowed"),
        ("SELECT SUM(i) OVER (ORDER BY i GROUPS 1 PRECEDING) FROM $t", "GROUPS"),
        ("SELECT SUM(i) OVER (ORDER BY i ROWS 1 PRECEDING EXCLUDE CURRENT ROW) FROM $t", "EXCLUDE"),
        (
            "SELECT NTILE('2') OVER (ORDER BY i) FROM $t",
            f"{MATCHING} analytic function NTILE for argument types: STRING",
        ),
        (
            "SELECT LAG(i, '1') OVER (ORDER BY i) FROM $t",
            f"{MATCHING} analytic function LAG for argument types: INT64, STRING",
        ),
    ),
    "clauses": (
        ("SELECT i FROM $t ORDER BY st", "ORDER BY does not support expressions of type STRUCT"),
        ("SELECT 1 FROM $t GROUP BY j", "Grouping by expressions of type JSON is not allowed"),
        ("SELECT DISTINCT j FROM $t", "of type JSON cannot be used in SELECT DISTINCT"),
        ("SELECT DISTINCT i FROM $t ORDER BY s", "column s which is not visible after SELECT DISTINCT"),
        ("SELECT i FROM $t LIMIT '1'", "Unexpected string literal 1"),
        ("SELECT i FROM $t LIMIT 1.5", "Unexpected floating point literal 1.5"),
        ("SELECT x.i FROM $t x LEFT JOIN $t y", "LEFT JOIN must have an immediately following ON or USING clause"),
        ("SELECT x.i FROM $t x FULL JOIN $t y ON x.i > 0", "FULL OUTER JOIN cannot be used without a condition"),
        ("SELECT x.i FROM $t x FULL JOIN $t y ON x.i > y.i", "FULL OUTER JOIN cannot be used without a condition"),
    ),
    "names of results": (
        ("CREATE TABLE refused.never AS SELECT 1 AS x, 2 AS X", "Found duplicate(s): x"),
        ("CREATE TABLE refused.never AS SELECT x.*, y.i FROM $t x JOIN $t y ON x.i = y.i", "Found duplicate(s): i"),
        ("CREATE TABLE refused.never AS SELECT *, CAST(i AS STRING) AS i FROM $t", "Found duplicate(s): i"),
        ("CREATE TABLE refused.never AS SELECT i, st.x, x FROM $t, UNNEST(a) AS x", "Found duplicate(s): x"),
        ("CREATE VIEW refused.never AS SELECT i, f AS i FROM $t", "Found duplicate(s): i"),
        ("CREATE TABLE refused.never AS SELECT 1 AS x, 2 AS x UNION ALL SELECT 3, 4", "Found duplicate(s): x"),
        ("SELECT x FROM (SELECT 1 AS x, 2 AS x)", "Column name x is ambiguous"),
    ),
}
ANSWERED_CALLS: tuple[str, ...] = (
    "SELECT CONCAT(i, s), CONCAT(day, s), i + day, TIMESTAMP_DIFF(day, dt, DAY), DATETIME_DIFF(ts, ts, DAY) FROM $t",
    "SELECT TIMESTAMP_TRUNC(day, MONTH), FORMAT_DATE('%Y', ts), FORMAT_DATE('%Y', ts, 'UTC') FROM $t",
    "SELECT FORMAT_TIMESTAMP('%Y', dt), FORMAT_DATETIME('%Y', ts), LAST_DAY(dt), LAST_DAY(day, WEEK) FROM $t",
    "SELECT day + INTERVAL 1 DAY, INTERVAL 1 DAY * 2, ts + INTERVAL i HOUR, dt - INTERVAL 1 DAY FROM $t",
    "SELECT ROUND(n, 1), POW(i, f), SQRT(i), SAFE_DIVIDE(i, n), IEEE_DIVIDE(i, f), LOG(f, 2), ABS(i) FROM $t",
    "SELECT DATETIME(day, TIME(ts)), CAST(ts AS TIME), CAST(dt AS TIME), SAFE_CAST('x' AS TIME) FROM $t",
    "SELECT MOD(i, 2), DIV(n, 2), GENERATE_ARRAY(1, 2.5, 0.5), ATAN2(i, 1), RANGE_BUCKET(i, a) FROM $t",
    "SELECT REPEAT(bytes, 2), LENGTH(bytes), SPLIT(s), TO_HEX(bytes) FROM $t",
    "SELECT FORMAT('%d %s %5.2f %%', i, s, f) FROM $t",
    "SELECT DATE(ts), DATE(ts, 'UTC'), DATE(dt), DATE(2020, 1, i), TIME(ts) FROM $t",
    "SELECT TIMESTAMP(day, 'UTC'), TIMESTAMP(s) IS NULL, STRING(ts, 'UTC'), STRING(day) FROM $t WHERE FALSE",
    "SELECT DATE_DIFF('2020-01-03', day, DAY), DATE_ADD('2020-01-01', INTERVAL i DAY), UNIX_DATE('2020-01-01') FROM $t",
    "SELECT SUM(DISTINCT i), STRING_AGG(DISTINCT s, ',' ORDER BY s LIMIT 1), ANY_VALUE(j), COUNT(DISTINCT day) FROM $t",
    "SELECT ARRAY_AGG(st IGNORE NULLS ORDER BY i LIMIT 1), APPROX_QUANTILES(f, 2), MAX_BY(a, i), MAX(b) FROM $t",
    "SELECT SUM(f) OVER (ORDER BY i RANGE BETWEEN 1 PRECEDING AND CURRENT ROW), COUNT(DISTINCT i) OVER () FROM $t",
    "SELECT SUM(f) OVER (PARTITION BY day ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM $t",
    "SELECT LAST_VALUE(f IGNORE NULLS) OVER w, RANK() OVER (w) FROM $t WINDOW w AS (PARTITION BY s ORDER BY i)",
    "SELECT LAG(i, 1, 0) OVER (ORDER BY f), NTH_VALUE(i, 1) OVER (ORDER BY i ROWS 1 PRECEDING) FROM $t",
    "SELECT DISTINCT i AS k, s FROM $t ORDER BY k, s LIMIT 1",
    "SELECT 1 FROM $t GROUP BY st, a, f",
    "SELECT x.i, y.i AS other, st.x FROM $t x FULL JOIN (SELECT i FROM $t) y ON y.i = x.i AND x.f > 1",
    "SELECT x.i FROM $t x FULL JOIN $t y ON TRUE AND 1 = 1",
    "SELECT x.i FROM $t x LEFT JOIN UNNEST(x.a) AS e LEFT JOIN x.a AS o",
    "SELECT COUNT(*), COUNT(*), i + 1, i + 1, CAST(i AS STRING), i, 1, 1 FROM $t GROUP BY i",
    "SELECT * FROM (SELECT i, s FROM $t) JOIN (SELECT i, f FROM $t) USING (i)",
    "SELECT * FROM (SELECT 1 AS x, 2 AS x)",
    "SELECT y FROM (SELECT 1 AS x, 2 AS x, 3 AS y)",
    "SELECT x.i, y.i FROM $t x JOIN $t y ON x.i = y.i",
    "SELECT a[0], a[OFFSET(i - 1)], a[SAFE_ORDINAL(9)], j['k'], j.k.l FROM $t",
    "SELECT LAX_INT64(j.k), INT64(JSON '1'), JSON_VALUE(s, '$'), JSON_SET(j, '$.a', i), TO_JSON(day) FROM $t",
)
