"""What BigQuery refuses for the types of its values, and DuckDB answers; and what looks like it and has an answer.

Facts are from the conversion rules and the reference of operators and functions,
cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from google.api_core.exceptions import BadRequest, GoogleAPICallError, MethodNotImplemented
from google.cloud import bigquery

from packages.localcloud.tests.bigquery.refused_calls import ANSWERED_CALLS, MATCHING, REFUSED_CALLS

ROW = (
    "SELECT 1 AS i, 1.5 AS f, NUMERIC '2' AS n, '5' AS s, DATE '2020-01-02' AS day, TIMESTAMP '2020-01-02' AS ts,"
    " DATETIME '2020-01-02' AS dt, TRUE AS b, [1, 2] AS a, STRUCT(1 AS x) AS st, b'5' AS bytes, JSON '{}' AS j"
)
REFUSED: dict[str, tuple[tuple[str, str], ...]] = {
    **REFUSED_CALLS,
    "comparisons": (
        ("SELECT i = '1' FROM $t", f"{MATCHING} operator = for argument types: INT64, STRING"),
        ("SELECT s = 5 FROM $t", f"{MATCHING} operator = for argument types: STRING, INT64"),
        ("SELECT i FROM $t WHERE i != s", f"{MATCHING} operator != for argument types: INT64, STRING"),
        ("SELECT f > '1' FROM $t", f"{MATCHING} operator > for argument types: FLOAT64, STRING"),
        ("SELECT n > '1' FROM $t", f"{MATCHING} operator > for argument types: NUMERIC, STRING"),
        ("SELECT b = 1 FROM $t", f"{MATCHING} operator = for argument types: BOOL, INT64"),
        ("SELECT ts >= day FROM $t", f"{MATCHING} operator >= for argument types: TIMESTAMP, DATE"),
        ("SELECT day = CURRENT_TIMESTAMP() FROM $t", f"{MATCHING} operator = for argument types: DATE, TIMESTAMP"),
        ("SELECT bytes = s FROM $t", f"{MATCHING} operator = for argument types: BYTES, STRING"),
        ("SELECT i IN ('1', '2') FROM $t", f"{MATCHING} operator IN for argument types: INT64, STRING"),
        ("SELECT i IN (SELECT s FROM $t) FROM $t", f"{MATCHING} operator IN for argument types: INT64, STRING"),
        ("SELECT i BETWEEN '1' AND '2' FROM $t", f"{MATCHING} operator BETWEEN"),
        ("SELECT x.i FROM $t x JOIN $t y ON x.i = y.s", f"{MATCHING} operator ="),
        ("WITH w AS (SELECT i + 1 AS more FROM $t) SELECT more FROM w WHERE more = '2'", f"{MATCHING} operator ="),
        ("SELECT [1, 2] = [1, 2]", "Equality is not defined for arguments of type ARRAY<INT64>"),
        ("SELECT a = a FROM $t", "Equality is not defined for arguments of type ARRAY<INT64>"),
        ("SELECT j = j FROM $t", "Equality is not defined for arguments of type JSON"),
        ("SELECT v FROM UNNEST(['a']) v WITH OFFSET o WHERE o = 'a'", f"{MATCHING} operator ="),
        ("DELETE $t WHERE i = '1'", f"{MATCHING} operator = for argument types: INT64, STRING"),
        ("UPDATE $t SET f = 1 WHERE i = '1'", f"{MATCHING} operator = for argument types: INT64, STRING"),
        ("CREATE TABLE refused.never AS SELECT i FROM $t WHERE i = '1'", f"{MATCHING} operator ="),
        ("INSERT $t (i) SELECT i FROM $t WHERE i = '1'", f"{MATCHING} operator ="),
        ("DECLARE k INT64 DEFAULT 1; SELECT i + k FROM $t WHERE s = 5;", f"{MATCHING} operator ="),
    ),
    "casts and times": (
        ("SELECT CAST(dt AS INT64) FROM $t", "Invalid cast from DATETIME to INT64"),
        ("SELECT SAFE_CAST(ts AS FLOAT64) FROM $t", "Invalid cast from TIMESTAMP to FLOAT64"),
        ("SELECT CAST(b AS FLOAT64) FROM $t", "Invalid cast from BOOL to FLOAT64"),
        ("SELECT CAST(j AS STRING) FROM $t", "Invalid cast from JSON to STRING"),
        ("SELECT CAST(a AS ARRAY<STRING>) FROM $t", "Invalid cast from ARRAY<INT64> to ARRAY<STRING>"),
        ("SELECT CAST(day AS TIME) FROM $t", "Invalid cast from DATE to TIME"),
        ("SELECT CAST(i AS TIMESTAMP) FROM $t", "Invalid cast from INT64 to TIMESTAMP"),
        ("SELECT TIMESTAMP_ADD(ts, INTERVAL 1 MONTH) FROM $t WHERE FALSE", "TIMESTAMP_ADD does not support the MONTH"),
        ("SELECT TIMESTAMP_SUB(ts, INTERVAL i YEAR) FROM $t", "TIMESTAMP_SUB does not support the YEAR"),
        ("SELECT UNIX_SECONDS(dt) FROM $t", f"{MATCHING} function UNIX_SECONDS for argument types: DATETIME"),
        ("SELECT UNIX_MICROS(day) FROM $t", f"{MATCHING} function UNIX_MICROS for argument types: DATE"),
        ("SELECT UNIX_DATE(ts) FROM $t", f"{MATCHING} function UNIX_DATE for argument types: TIMESTAMP"),
        ("SELECT i FROM $t WHERE ts > DATETIME('2020-01-01')", f"{MATCHING} operator >"),
        ("SELECT rowid FROM $t", "Unrecognized name: rowid"),
        ("SELECT i FROM $t WHERE ROWID = 0", "Unrecognized name: rowid"),
    ),
    "one type of several": (
        ("SELECT COALESCE(1, 'a')", f"{MATCHING} function COALESCE for argument types: INT64, STRING"),
        ("SELECT IFNULL(i, '0') FROM $t", "argument types: INT64, STRING"),
        ("SELECT IF(TRUE, 1, 'a')", f"{MATCHING} function IF for argument types: INT64, STRING"),
        ("SELECT CASE WHEN b THEN 1 ELSE 'a' END FROM $t", f"{MATCHING} operator CASE"),
        ("SELECT CASE i WHEN '1' THEN 1 END FROM $t", f"{MATCHING} operator CASE"),
        ("SELECT NULLIF(i, '') FROM $t", f"{MATCHING} function NULLIF"),
        ("SELECT GREATEST(day, ts) FROM $t", f"{MATCHING} function GREATEST for argument types: DATE, TIMESTAMP"),
        ("SELECT [1, 'a']", "do not have a common supertype"),
        (
            "SELECT i FROM $t UNION ALL SELECT s FROM $t",
            "Column 1 in UNION ALL has incompatible types: INT64, STRING",
        ),
    ),
    "truths": (
        ("SELECT 1 FROM $t WHERE i", "WHERE clause should return type BOOL, but returns INT64"),
        ("SELECT i FROM $t GROUP BY i HAVING COUNT(*)", "HAVING clause should return type BOOL, but returns INT64"),
        ("SELECT NOT i FROM $t", f"{MATCHING} operator NOT for argument types: INT64"),
        ("SELECT i AND b FROM $t", f"{MATCHING} operator AND for argument types: INT64, BOOL"),
        ("SELECT IF(i, 1, 2) FROM $t", "should return type BOOL, but returns INT64"),
        ("SELECT LOGICAL_OR(i) FROM $t", f"{MATCHING} aggregate function LOGICAL_OR"),
        ("SELECT i IS TRUE FROM $t", f"{MATCHING} operator IS TRUE"),
    ),
    "functions": (
        ("SELECT LENGTH(i) FROM $t", f"{MATCHING} function LENGTH for argument types: INT64"),
        ("SELECT STRING_AGG(i) FROM $t", f"{MATCHING} aggregate function STRING_AGG for argument types: INT64"),
        ("SELECT MOD(f, 2) FROM $t", f"{MATCHING} function MOD for argument types: FLOAT64, INT64"),
        ("SELECT DIV(f, 2) FROM $t", f"{MATCHING} function DIV for argument types: FLOAT64, INT64"),
        ("SELECT MAX(a) FROM $t", "MAX is not defined for arguments of type ARRAY<INT64>"),
        ("SELECT CAST(a AS STRING) FROM $t", "Invalid cast from ARRAY<INT64> to STRING"),
        ("SELECT s[0] FROM $t", "not supported on values of type STRING"),
        ("SELECT i FROM $t ORDER BY a", "ORDER BY does not support expressions of type ARRAY"),
        ("SELECT RANK() OVER () FROM $t", "Window ORDER BY is required for analytic function rank"),
        ("SELECT LAG(i, -1) OVER (ORDER BY i) FROM $t", "must not be negative"),
    ),
    "parts of times": (
        ("SELECT DATE_DIFF(day, day, HOUR) FROM $t", "DATE_DIFF does not support the HOUR date part"),
        ("SELECT DATE_TRUNC(day, HOUR) FROM $t", "DATE_TRUNC does not support the HOUR date part"),
        ("SELECT DATE_ADD(day, INTERVAL 1 HOUR) FROM $t", "DATE_ADD does not support the HOUR date part"),
        ("SELECT EXTRACT(HOUR FROM day) FROM $t", "EXTRACT from DATE does not support the HOUR date part"),
        ("SELECT TIMESTAMP_DIFF(ts, ts, MONTH) FROM $t", "TIMESTAMP_DIFF does not support the MONTH date part"),
    ),
    "fields of structs": (
        ("SELECT i FROM $t WHERE st.x = '1'", f"{MATCHING} operator = for argument types: INT64, STRING"),
        ("SELECT z.st.X + 1 = s FROM $t z", f"{MATCHING} operator = for argument types: INT64, STRING"),
        ("SELECT 1 FROM $t, UNNEST([STRUCT('a' AS k)]) e WHERE e.k = 1", f"{MATCHING} operator = for argument types"),
        ("SELECT COALESCE(st.x, 'a') FROM $t", f"{MATCHING} function COALESCE for argument types: INT64, STRING"),
        ("SELECT i FROM $t WHERE st.x", "WHERE clause should return type BOOL, but returns INT64"),
        ("SELECT w.st.x = 'a' FROM (SELECT st FROM $t) w", f"{MATCHING} operator = for argument types: INT64, STRING"),
    ),
    "values that are assigned": (
        ("UPDATE $t SET i = '2' WHERE TRUE", "Value of type STRING cannot be assigned to i, which has type INT64"),
        ("UPDATE $t SET i = 2.5 WHERE TRUE", "Value of type FLOAT64 cannot be assigned to i, which has type INT64"),
        ("UPDATE $t SET i = i / 2 WHERE TRUE", "Value of type FLOAT64 cannot be assigned to i"),
        ("UPDATE $t SET s = 4 WHERE TRUE", "Value of type INT64 cannot be assigned to s, which has type STRING"),
        ("UPDATE $t SET n = f WHERE TRUE", "Value of type FLOAT64 cannot be assigned to n, which has type NUMERIC"),
        ("UPDATE $t SET ts = day WHERE TRUE", "Value of type DATE cannot be assigned to ts, which has type TIMESTAMP"),
        ("UPDATE $t SET day = s WHERE TRUE", "Value of type STRING cannot be assigned to day, which has type DATE"),
        ("UPDATE $t SET b = 1 WHERE TRUE", "Value of type INT64 cannot be assigned to b, which has type BOOL"),
        ("UPDATE $t SET j = 'x' WHERE TRUE", "Value of type STRING cannot be assigned to j, which has type JSON"),
        ("UPDATE $t SET a = 1 WHERE TRUE", "Value of type INT64 cannot be assigned to a, which has type ARRAY<INT64>"),
        (
            "UPDATE $t SET st.x = 'a' WHERE TRUE",
            "Value of type STRING cannot be assigned to st.x, which has type INT64",
        ),
        ("UPDATE $t z SET z.i = z.s WHERE TRUE", "Value of type STRING cannot be assigned to i, which has type INT64"),
        (
            "UPDATE $t z SET i = u.k FROM (SELECT 'a' AS k) u WHERE TRUE",
            "Value of type STRING cannot be assigned to i, which has type INT64",
        ),
        ("UPDATE $t SET i = 2 FROM (SELECT 'a' AS k) u WHERE i = u.k", f"{MATCHING} operator ="),
        ("DECLARE k INT64 DEFAULT 1; UPDATE $t SET i = '2' WHERE i = k;", "Value of type STRING cannot be assigned"),
    ),
    "values that are inserted": (
        ("INSERT $t (i) VALUES ('5')", "Value has type STRING which cannot be inserted into column i, which has type"),
        ("INSERT $t (i, s) VALUES (1, 'a'), (2, 3)", "Value has type INT64 which cannot be inserted into column s"),
        ("INSERT $t (i) VALUES (1), (2.5)", "Value has type FLOAT64 which cannot be inserted into column i"),
        (
            "INSERT $t (i, f) SELECT i, s FROM $t",
            "Query column 2 has type STRING which cannot be inserted into column f",
        ),
    ),
    "merges": (
        (
            "MERGE $t USING (SELECT 1 AS k) u ON i = k WHEN MATCHED THEN UPDATE SET s = u.k",
            "Value of type INT64 cannot be assigned to s, which has type STRING",
        ),
        (
            "MERGE $t z USING $t u ON z.i = u.i WHEN NOT MATCHED THEN INSERT (i, s) VALUES (u.i, i)",
            "Value has type INT64 which cannot be inserted into column s, which has type STRING",
        ),
        ("MERGE $t USING (SELECT 1 AS k) u ON s = k WHEN MATCHED THEN DELETE", f"{MATCHING} operator ="),
        ("MERGE $t USING (SELECT 1 AS k) u ON i = k WHEN MATCHED AND s = 1 THEN DELETE", f"{MATCHING} operator ="),
        (
            "MERGE $t USING (SELECT 'a' AS k) u ON s = k WHEN NOT MATCHED AND k = 1 THEN INSERT (s) VALUES (k)",
            f"{MATCHING} operator = for argument types: STRING, INT64",
        ),
    ),
    "names and signs": (
        ("SELECT i AS x FROM $t WHERE x = 1", "Unrecognized name: x"),
        ("SELECT i AS x, x + 1 AS y FROM $t", "Unrecognized name: x"),
        ("SELECT i % 2 FROM $t", 'Illegal input character "%"'),
        ("SELECT i == 1 FROM $t", 'Unexpected "=="'),
        ("SELECT [[i]] FROM $t", "Cannot construct array with element type ARRAY<INT64>"),
    ),
}
NOT_OFFERED = (
    "SELECT day - day FROM $t",
    "SELECT DATE_ADD(ts, INTERVAL 1 DAY) FROM $t",
    "SELECT DATE_SUB(dt, INTERVAL 1 DAY) FROM $t",
    "SELECT STRING_AGG(bytes, b',' ORDER BY i) FROM $t",
    "SELECT SUBSTR(bytes, 2) FROM $t",
    "SELECT UPPER(bytes) FROM $t",
    "SELECT SUM(INTERVAL i DAY) FROM $t",
    "SELECT bytes & b'1' FROM $t",
    "CREATE TABLE refused.copied COPY $t",
    "/* all of it */ CREATE OR REPLACE TABLE `refused`.`copied` COPY $t",
    "LOAD DATA INTO refused.loaded FROM FILES (format = 'CSV', uris = ['gs://bucket/*.csv'])",
    "GRANT `roles/bigquery.dataViewer` ON TABLE $t TO 'user:ada@example.com'",
    "REVOKE `roles/bigquery.dataViewer` ON TABLE $t FROM 'user:ada@example.com'",
    "CREATE SEARCH INDEX words ON $t(ALL COLUMNS)",
    "SELECT * FROM $t |> LIMIT 1",
    "SELECT @@row_count",
    "SET @@time_zone = 'UTC'; SELECT 1",
    "BEGIN SELECT 1 / 0; EXCEPTION WHEN ERROR THEN SELECT @@error.message; END",
)
ANSWERED = (
    "SELECT '@@row_count', 1 -- @@row_count",
    "SELECT i = 1.0, i < n, f = n, i IN (1.5, 2), n BETWEEN 1 AND 2.5 FROM $t",
    "SELECT day = '2020-01-02', ts > '2020-01-01', dt = '2020-01-02', day IN ('2020-01-02') FROM $t",
    "SELECT day = dt, day BETWEEN '2020-01-01' AND '2020-01-03' FROM $t",
    "SELECT st = st, st IN (STRUCT(1 AS x)) FROM $t",
    "SELECT COALESCE(i, 1.5), COALESCE(NULL, 'a'), IFNULL(day, '2020-01-01'), IF(b, i, NULL) FROM $t",
    "SELECT CASE i WHEN 1 THEN 'a' WHEN NULL THEN NULL ELSE 'b' END FROM $t",
    "SELECT CONCAT('a', 1, day), MOD(n, 2), MOD(i, 2), GREATEST(i, f) FROM $t",
    "SELECT i FROM $t WHERE b AND NOT b OR TRUE GROUP BY i HAVING COUNT(*) > 0 AND i > 0",
    "SELECT i AS x FROM $t GROUP BY x HAVING x > 0 ORDER BY x",
    "SELECT i AS x FROM $t QUALIFY ROW_NUMBER() OVER (PARTITION BY s ORDER BY i) = 1",
    "SELECT f AS i, i + 1 AS y FROM $t WHERE i = 1",
    "SELECT o AS o, v AS v FROM $t, UNNEST(a) v WITH OFFSET o WHERE o = 1 AND v = 2",
    "SELECT p FROM (SELECT o AS p FROM UNNEST(['a', 'b']) v WITH OFFSET o WHERE o < 2) WHERE p = 1",
    "SELECT offset = 1 AS second, offset FROM $t, UNNEST(['a', 'b']) WITH OFFSET WHERE offset IN (0, 1)",
    "SELECT s AS x, (SELECT MAX(x) FROM UNNEST(a) x) AS y FROM $t",
    "SELECT x FROM (SELECT i AS x FROM $t) WHERE x = 1",
    "SELECT i FROM $t UNION ALL SELECT f FROM $t",
    "SELECT i, s FROM $t UNION ALL SELECT 1, NULL",
    "SELECT x.i FROM $t x JOIN $t y USING (i) WHERE i = 1",
    "SELECT st.x = 1, a[OFFSET(0)] = 1, JSON_VALUE(j, '$.a') = '1' FROM $t",
    "SELECT (SELECT AS STRUCT 1 AS k).k = 1, ARRAY(SELECT 1) IS NULL FROM $t",
    "SELECT TIMESTAMP_DIFF(ts, ts, DAY), DATETIME_DIFF(dt, dt, MONTH), EXTRACT(HOUR FROM ts), ts - ts FROM $t",
    "SELECT DATE_TRUNC(day, MONTH) = day, TIMESTAMP_TRUNC(ts, DAY) = ts, DATE(ts) = day FROM $t",
    "SELECT TIMESTAMP_ADD(dt, INTERVAL 1 DAY) > dt FROM $t",
    "SELECT TIMESTAMP_SUB(DATETIME_ADD(ts, INTERVAL 1 DAY), INTERVAL 1 DAY) = ts FROM $t",
    "SELECT DATETIME_ADD(ts, INTERVAL 1 DAY) > ts, TIMESTAMP_TRUNC(dt, DAY) = dt FROM $t",
    "BEGIN UPDATE $t SET dt = TIMESTAMP_ADD(dt, INTERVAL 1 HOUR) WHERE i = 99; END",
    "SELECT '100 %', 'a == b' -- 5 % == 3",
    "DECLARE x INT64 DEFAULT 1; SELECT i AS y FROM $t WHERE i = x;",
    *ANSWERED_CALLS,
)

CHANGES = (
    "UPDATE $t SET f = 1, n = 1 WHERE TRUE",
    "UPDATE $t SET n = 1.5, f = n, dt = day WHERE TRUE",
    "UPDATE $t SET n = -1.5, day = '2020-01-03', ts = '2020-01-03', dt = '2020-01-03 01:00:00' WHERE TRUE",
    "UPDATE $t SET bytes = 'abc', s = NULL, i = NULL, a = [], b = i IS NULL WHERE TRUE",
    "UPDATE $t SET i = CAST('5' AS INT64), f = i / 2, s = CONCAT(s, i), j = TO_JSON(st) WHERE TRUE",
    "UPDATE $t SET n = ROUND(n, 1), i = DIV(i, 2), a = [1, 2], st = STRUCT(5 AS x) WHERE TRUE",
    "UPDATE $t SET dt = DATETIME(ts), i = (SELECT MAX(x) FROM UNNEST(a) x) WHERE TRUE",
    "UPDATE $t z SET z.f = u.k, st.x = u.k FROM (SELECT 7 AS k) u WHERE z.s = 's' OR TRUE",
    "UPDATE $t SET a = ARRAY(SELECT x + 1 FROM UNNEST(a) x), s = IF(b, s, NULL) WHERE st.x = 7",
    "INSERT $t (i, n, f, day, ts) VALUES (1, 1.5, 1, '2020-01-01', '2020-01-01'), (DEFAULT, NULL, 2.5, NULL, NULL)",
    "INSERT $t (f, n, dt, s) SELECT i, i, day, s FROM $t",
    "INSERT INTO $t (day) SELECT DATE '2020-01-01' UNION ALL SELECT NULL",
    "MERGE $t z USING (SELECT 1 AS i) u ON z.i = u.i WHEN MATCHED THEN UPDATE SET f = u.i, z.day = '2020-01-05'",
    "MERGE $t z USING (SELECT 99 AS i) u ON z.i = u.i WHEN NOT MATCHED THEN INSERT (i, f, n) VALUES (i, i, u.i)",
    "MERGE $t z USING $t u ON z.i = u.i AND FALSE WHEN NOT MATCHED BY SOURCE AND z.i = 99 THEN DELETE",
)


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """Google's client, with a table of one row."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("refused", exists_ok=True)
    made.query_and_wait(f"CREATE OR REPLACE TABLE refused.one AS {ROW}")
    made.query_and_wait(f"CREATE OR REPLACE TABLE refused.changed AS {ROW}")
    return made


def refusals(
    client: bigquery.Client, statements: Iterable[str], table: str = "refused.one", **settings: object
) -> dict[str, str]:
    """Return what is said of each statement; "" of one that has an answer."""
    said = {}
    for statement in statements:
        config = bigquery.QueryJobConfig(**settings)
        try:
            job = client.query(statement.replace("$t", table), job_config=config, retry=None, job_retry=None)
            job.result(retry=None)
            said[statement] = ""
        except GoogleAPICallError as error:
            said[statement] = f"{type(error).__name__}: {error}"
    return said


@pytest.mark.parametrize("group", REFUSED)
def test_it_is_refused_in_the_words_of_the_service(client, group):
    found = refusals(client, dict(REFUSED[group]))
    assert {
        statement: found[statement]
        for statement, words in REFUSED[group]
        if BadRequest.__name__ not in found[statement] or words not in found[statement]
    } == {}
    (row,) = client.query_and_wait("SELECT i, f FROM refused.one")
    assert (row.i, row.f) == (1, 1.5)  # nothing was changed


def test_what_has_another_type_there_is_refused_by_name(client):
    found = refusals(client, NOT_OFFERED)
    assert {each: said for each, said in found.items() if MethodNotImplemented.__name__ not in said} == {}


def test_what_looks_like_it_is_answered(client):
    assert {each: said for each, said in refusals(client, ANSWERED).items() if said} == {}


def test_what_looks_like_it_is_written(client):
    assert {each: said for each, said in refusals(client, CHANGES, "refused.changed").items() if said} == {}


DRY = ("values that are assigned", "values that are inserted", "merges", "fields of structs")


@pytest.mark.parametrize("group", DRY)
def test_a_dry_run_refuses_it_too(client, group):
    """As check-queries asks before anything is deployed; scripts are not looked into there."""
    asked = {statement: words for statement, words in REFUSED[group] if ";" not in statement}
    found = refusals(client, asked, dry_run=True)
    assert {each: found[each] for each, words in asked.items() if words not in found[each]} == {}


def test_a_dry_run_takes_what_is_answered(client):
    asked = [each for each in (*ANSWERED, *CHANGES) if ";" not in each]
    assert {each: said for each, said in refusals(client, asked, dry_run=True).items() if said} == {}


PARAMETERS = {
    "whole": bigquery.ScalarQueryParameter("whole", "INT64", 1),
    "text": bigquery.ScalarQueryParameter("text", "STRING", "2020-01-02"),
    "number": bigquery.ScalarQueryParameter("number", "FLOAT64", 1.5),
    "time": bigquery.ScalarQueryParameter("time", "TIMESTAMP", "2020-01-02T00:00:00Z"),
    "nothing": bigquery.ScalarQueryParameter("nothing", "STRING", None),
    "texts": bigquery.ArrayQueryParameter("texts", "STRING", ["1", "2020-01-02"]),
    "wholes": bigquery.ArrayQueryParameter("wholes", "INT64", [1, 2]),
    "pair": bigquery.StructQueryParameter("pair", bigquery.ScalarQueryParameter("k", "INT64", 1)),
}
REFUSED_PARAMETERS = {
    "SELECT i FROM $t WHERE i = @text": f"{MATCHING} operator = for argument types: INT64, STRING",
    "SELECT i FROM $t WHERE @Nothing = i": f"{MATCHING} operator = for argument types: STRING, INT64",
    "SELECT i FROM $t WHERE day >= @time": f"{MATCHING} operator >= for argument types: DATE, TIMESTAMP",
    "SELECT i FROM $t WHERE bytes = @text": f"{MATCHING} operator = for argument types: BYTES, STRING",
    "SELECT i FROM $t WHERE s BETWEEN @whole AND 'b'": f"{MATCHING} operator BETWEEN",
    "SELECT i FROM $t WHERE i IN (@text)": f"{MATCHING} operator IN for argument types: INT64, STRING",
    "SELECT i FROM $t WHERE i IN UNNEST(@texts)": "operator IN UNNEST for argument types: INT64, ARRAY<STRING>",
    "SELECT COALESCE(i, @text) FROM $t": f"{MATCHING} function COALESCE for argument types: INT64, STRING",
    "SELECT i FROM $t WHERE @whole": "WHERE clause should return type BOOL, but returns INT64",
    "SELECT i FROM $t WHERE s = @pair.k": f"{MATCHING} operator = for argument types: STRING, INT64",
    "SELECT i FROM $t, UNNEST(@texts) v WHERE v = i": f"{MATCHING} operator = for argument types: STRING, INT64",
    "UPDATE $t SET i = @text WHERE TRUE": "Value of type STRING cannot be assigned to i, which has type INT64",
    "UPDATE $t SET n = @number WHERE TRUE": "Value of type FLOAT64 cannot be assigned to n, which has type NUMERIC",
    "INSERT $t (i) VALUES (@text)": "Value has type STRING which cannot be inserted into column i",
}
ANSWERED_PARAMETERS = (
    "SELECT i = @whole, f > @whole, n < @number, s = @text, ts >= @time, s IS NULL OR s = @nothing FROM $t",
    "SELECT day = @text, dt >= @text, ts >= @text, day BETWEEN @text AND '2021-01-01', day IN (@text) FROM $t",
    "SELECT i IN UNNEST(@wholes), f IN UNNEST(@wholes), s IN UNNEST(@texts), st.x = @pair.k FROM $t",
    "SELECT @whole, COALESCE(i, @whole), IF(b, @text, 'a'), DATE_DIFF(day, @text, DAY) FROM $t LIMIT @whole",
    "SELECT '@text' = s, i -- = @text\nFROM $t",
    "SELECT v = @whole FROM UNNEST(@wholes) v WITH OFFSET o WHERE o < @whole",
)


def test_types_of_parameters_are_known(client):
    asked = {"query_parameters": list(PARAMETERS.values())}
    for dry in (False, True):
        found = refusals(client, REFUSED_PARAMETERS, **asked, dry_run=dry)
        assert {each: found[each] for each, words in REFUSED_PARAMETERS.items() if words not in found[each]} == {}


def test_what_a_parameter_is_coerced_to_is_answered(client):
    """A text to dates and times, whole numbers to others."""
    asked = {"query_parameters": list(PARAMETERS.values())}
    assert {each: said for each, said in refusals(client, ANSWERED_PARAMETERS, **asked).items() if said} == {}


@pytest.mark.parametrize(
    ("statement", "values", "words"),
    [
        ("SELECT i FROM $t WHERE i = ? AND s = ?", ("1", "5"), f"{MATCHING} operator ="),
        ("SELECT '?' = s, i FROM $t WHERE s = ? AND i = ? -- ?", ("5", 1), ""),
        (
            "SELECT i FROM $t WHERE s = '? = 1' OR s = ?",
            (5,),
            f"{MATCHING} operator = for argument types: STRING, INT64",
        ),
        ("UPDATE $t SET s = ?, i = ? WHERE FALSE", (1, 1), "Value of type INT64 cannot be assigned to s"),
        ("UPDATE $t SET s = ?, i = ? WHERE FALSE", ("a", 1), ""),
    ],
    ids=["first", "both fit", "after a text", "assigned", "assigned and fits"],
)
def test_types_of_positional_parameters(client, statement, values, words):
    kinds = {str: "STRING", int: "INT64"}
    parameters = [bigquery.ScalarQueryParameter(None, kinds[type(value)], value) for value in values]
    (said,) = refusals(client, [statement], query_parameters=parameters).values()
    assert words in said
    assert bool(words) == bool(said)
