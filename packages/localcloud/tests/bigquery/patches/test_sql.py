"""The GoogleSQL that this project's queries use gives BigQuery's answers."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a table `sql.rows` of 1,000 rows."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("sql", exists_ok=True)
    made.query_and_wait(
        "CREATE OR REPLACE TABLE sql.rows CLUSTER BY span, part OPTIONS(description = 'x') AS SELECT"
        " CAST(i AS STRING) AS key, DATE_ADD(DATE '2013-09-01', INTERVAL MOD(i, 5) DAY) AS span, i * 1.5 AS x,"
        " IF(MOD(i, 7) = 0, NULL, CONCAT('c', CAST(MOD(i, 3) AS STRING))) AS c,"
        " IF(MOD(i, 10) = 0, 'validation', 'train') AS part FROM UNNEST(GENERATE_ARRAY(1, 1000)) AS i"
    )
    return made


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT FARM_FINGERPRINT('x') v", [-4503883598042011646]),
        ("SELECT ABS(MOD(CAST(-9223372036854775808 AS INT64), 100)) v", [8]),
        ("SELECT [10, 20, 30][OFFSET(1)] v", [20]),
        ("SELECT [10, 20, 30][ORDINAL(1)] v", [10]),
        ("SELECT [10, 20, 30][SAFE_OFFSET(9)] v", [None]),
        ("SELECT [10, 20, 30][OFFSET(o)] v FROM UNNEST([2, 0]) o", [30, 10]),
        ("SELECT o v FROM UNNEST(['a', 'b']) WITH OFFSET o ORDER BY o", [0, 1]),
        (
            "SELECT r[OFFSET(o)] v FROM (SELECT ['a', 'b'] p, ['x', 'y'] r), UNNEST(p) WITH OFFSET o ORDER BY o",
            ["x", "y"],
        ),
        ("SELECT ARRAY_AGG(DISTINCT x IGNORE NULLS ORDER BY x) v FROM UNNEST([2, 1, NULL, 2]) x", [[1, 2]]),
        ("SELECT ARRAY_AGG(DISTINCT x IGNORE NULLS ORDER BY x LIMIT 1) v FROM UNNEST([2, NULL, 2]) x", [[2]]),
        (
            (
                "DECLARE d ARRAY<INT64>; SET (d) = (SELECT AS STRUCT ARRAY_AGG(DISTINCT x IGNORE NULLS)"
                " FROM UNNEST([2, NULL, 2]) x); SELECT d AS v;"
            ),
            [[2]],
        ),
        ("DECLARE o INT64 DEFAULT 1; SELECT [10, 20][OFFSET(o)] AS v;", [20]),
        ("SELECT COUNTIF(c IS NULL) v FROM sql.rows", [142]),
        ("SELECT APPROX_QUANTILES(x, 4) v FROM sql.rows", [[1.5, 375.0, 750.0, 1125.0, 1500.0]]),
        ("SELECT APPROX_QUANTILES(x, 20)[OFFSET(10)] v FROM sql.rows", [750.0]),
        (
            "SELECT APPROX_TOP_COUNT(c, 3) v FROM sql.rows WHERE c IS NOT NULL",
            [[{"value": value, "count": 286} for value in ("c0", "c1", "c2")]],
        ),
        ("SELECT APPROX_TOP_COUNT(c, 1) v FROM sql.rows WHERE c IS NULL", [[{"value": None, "count": 142}]]),
        (
            (
                "SELECT ARRAY(SELECT AS STRUCT part AS value, COUNT(*) AS count FROM sql.rows GROUP BY part"
                " ORDER BY count DESC, value LIMIT 5) v"
            ),
            [[{"value": "train", "count": 900}, {"value": "validation", "count": 100}]],
        ),
        (
            "SELECT ARRAY_AGG(STRUCT(key, x AS twice) ORDER BY x DESC LIMIT 1) v FROM sql.rows",
            [[{"key": "1000", "twice": 1500.0}]],
        ),
        (
            (
                "SELECT part.value v FROM (SELECT CAST(key AS FLOAT64) / 2 x FROM sql.rows WHERE key = '1') t,"
                " UNNEST([STRUCT('half' AS name, x / 2 AS value)]) part"
            ),
            [0.25],
        ),
        ("SELECT TO_JSON_STRING(STRUCT(key, c)) v FROM sql.rows WHERE key = '1'", ['{"key":"1","c":"c1"}']),
        ("SELECT TO_JSON_STRING(t) v FROM (SELECT 1 AS a, 'é' AS b, NULL AS c) t", ['{"a":1,"b":"é","c":null}']),
        ("SELECT CAST(9223372036854775807 AS NUMERIC) * 4 v", [Decimal(36893488147419103228)]),
        (
            "SELECT SUM(CAST(f AS NUMERIC)) v FROM UNNEST([9223372036854775807, 9223372036854775807]) f",
            [Decimal(2**64 - 2)],
        ),
        (
            "SELECT CAST(SUM(CAST(f AS BIGNUMERIC)) AS STRING) v FROM UNNEST([9223372036854775807, 1]) f",
            ["9223372036854775808"],
        ),
        ("SELECT DIV(n, 2 * 5) v FROM UNNEST([95]) n", [9]),
        ("SELECT 100 - DIV(n + 1, 3) * 2 v FROM UNNEST([95]) n", [36]),
        ("SELECT MOD(DIV(DIV(n, 3), 10), 2) v FROM UNNEST([95]) n", [1]),
        ("SELECT 10 * MOD(n, 3) v FROM UNNEST([95]) n", [20]),
        ("SELECT MOD(n, 3) * 10.0 v FROM UNNEST([95]) n", [20.0]),
        ("SELECT 100 / MOD(n, 10) v FROM UNNEST([95]) n", [20.0]),
        ("SELECT MOD(n + 1, 2 * 5) - MOD(-n, 4) v FROM UNNEST([95]) n", [9]),
        ("SELECT BIT_XOR(f) v FROM UNNEST([5, 3, 5]) f", [3]),
        ("SELECT SAFE_CAST(JSON_VALUE('{\"n\": \"x\"}', '$.n') AS FLOAT64) v", [None]),
        ("SELECT JSON_VALUE('{\"a\": {\"b\": 1.5}}', '$.a.b') v", ["1.5"]),
        ("SELECT SAFE_DIVIDE(1, 0) v", [None]),
        ("SELECT DATE(TIMESTAMP '2013-01-01T03:15:00Z', 'America/New_York') v", [dt.date(2012, 12, 31)]),
        ("SELECT EXTRACT(HOUR FROM TIMESTAMP '2013-07-01T05:15:00Z' AT TIME ZONE 'America/New_York') v", [1]),
        (
            "SELECT FORMAT_TIMESTAMP('%Y-%m-%dT%H:%M:%SZ', TIMESTAMP '2013-01-01 05:15:00+00') v",
            ["2013-01-01T05:15:00Z"],
        ),
        ("SELECT TO_HEX(MD5('a')) v", ["0cc175b9c0f1b6a831c399e269772661"]),
        ("SELECT c v FROM sql.rows QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1", ["c1"]),
        ("SELECT STDDEV(x) IS NOT NULL AND MIN(x) = 1.5 AND MAX(x) = 1500 v FROM sql.rows", [True]),
        ("DECLARE n INT64 DEFAULT 3; SELECT n + 1 AS v;", [4]),
    ],
)
def test_answers(client, sql, expected):
    """One column `v` with the rows that BigQuery gives."""
    assert [row.v for row in client.query(sql, job_retry=None).result(timeout=60)] == expected


def test_a_struct_survives_a_row_as_text(client):
    """`*` beside a function of the whole row, through another level of names."""
    client.query_and_wait("CREATE OR REPLACE TABLE sql.places AS SELECT 1 AS id, STRUCT('x' AS city) AS place")
    sql = (
        "WITH e AS (SELECT * FROM sql.places),"
        " w AS (SELECT e.*, BYTE_LENGTH(TO_JSON_STRING(e)) AS n, FARM_FINGERPRINT(TO_JSON_STRING(e)) AS h FROM e)"
        " SELECT w.* EXCEPT (n) FROM w"
    )
    assert [field.name for field in client.query_and_wait(sql).schema] == ["id", "place", "h"]


def test_fingerprints_of_spans_do_not_depend_on_order(client):
    """COUNT, BIT_XOR and SUM of the row's fingerprint, per span and part: the same for the same rows in any order."""
    sql = (
        "SELECT span, part, COUNT(*) n, BIT_XOR(f) x, SUM(CAST(f AS NUMERIC)) s FROM"
        " (SELECT span, part, FARM_FINGERPRINT(TO_JSON_STRING(t)) f FROM {table} t) GROUP BY span, part ORDER BY 1, 2"
    )
    client.query_and_wait("CREATE OR REPLACE TABLE sql.shuffled AS SELECT * FROM sql.rows ORDER BY MD5(key)")
    first, second = (
        [tuple(row) for row in client.query_and_wait(sql.format(table=table))] for table in ("sql.rows", "sql.shuffled")
    )
    assert first == second
    assert sum(row[2] for row in first) == 1000


def test_text_is_not_rewritten(client):
    """What looks like SQL inside a string stays as it is."""
    (row,) = client.query_and_wait("SELECT 'a[OFFSET(1)] AS DECIMAL STRUCT(x)' AS v, [1, 2][OFFSET(0)] AS w")
    assert (row.v, row.w) == ("a[OFFSET(1)] AS DECIMAL STRUCT(x)", 1)
