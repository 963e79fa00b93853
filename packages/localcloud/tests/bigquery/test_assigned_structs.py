"""Structs that become another struct's type: field by field, by position.

https://cloud.google.com/bigquery/docs/reference/standard-sql/conversion_functions#cast-as-struct
"""

from __future__ import annotations

import datetime as dt

import pytest
from google.cloud import bigquery

BOTH = "s STRUCT<a INT64, b INT64>"
MOMENT = dt.datetime(2017, 10, 20, 16, 37, 50, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """Google's client, with a dataset."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("positions", exists_ok=True)
    return made


@pytest.mark.parametrize(
    ("columns", "statement", "stored"),
    [
        (BOTH, "INSERT positions.t VALUES (STRUCT(1 AS b, 2 AS a))", {"a": 1, "b": 2}),
        (BOTH, "INSERT positions.t VALUES (STRUCT(1, 2))", {"a": 1, "b": 2}),
        (BOTH, "INSERT INTO positions.t (s) VALUES ((1, 2))", {"a": 1, "b": 2}),
        (BOTH, "INSERT positions.t VALUES (STRUCT(1 AS x, 2 AS y))", {"a": 1, "b": 2}),
        (BOTH, "INSERT positions.t VALUES (STRUCT<b INT64, a INT64>(1, 2))", {"a": 1, "b": 2}),
        (BOTH, "INSERT positions.t VALUES (NULL)", None),
        (BOTH, "INSERT positions.t VALUES (SAFE_CAST(('1', 2) AS STRUCT<b INT64, a INT64>))", {"a": 1, "b": 2}),
        (
            BOTH,
            "INSERT positions.t SELECT STRUCT(b, a AS `from`) FROM (SELECT 2 AS a, 1 AS b) WHERE a = 2",
            {"a": 1, "b": 2},
        ),
        (
            BOTH,
            "INSERT positions.t (SELECT STRUCT(1 AS b, 2 AS a) AS s UNION ALL SELECT STRUCT(1 AS b, 2) LIMIT 1)",
            {"a": 1, "b": 2},
        ),
        (
            BOTH,
            "INSERT positions.t VALUES ((1, 2)); UPDATE positions.t SET s = STRUCT(5 AS b, 6 AS a) WHERE TRUE",
            {"a": 5, "b": 6},
        ),
        (
            BOTH,
            ("MERGE positions.t USING (SELECT 1 AS n) ON FALSE WHEN NOT MATCHED THEN INSERT (s) VALUES"
            " (STRUCT(n AS b, 2 AS a))"),
            {"a": 1, "b": 2},
        ),
        (
            BOTH,
            ("INSERT positions.t VALUES ((1, 2)); MERGE positions.t USING (SELECT 1) ON TRUE WHEN MATCHED THEN UPDATE"
            " SET s = STRUCT(3 AS b, 4 AS a)"),
            {"a": 3, "b": 4},
        ),
        (
            "s ARRAY<STRUCT<a INT64, b STRING>>",
            "INSERT positions.t VALUES ([STRUCT(1 AS b, 'x' AS a), (2, 'y'), STRUCT(NULL, NULL)])",
            [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": None, "b": None}],
        ),
        (
            "s STRUCT<deep STRUCT<`at` TIMESTAMP>>",
            f"INSERT positions.t VALUES (STRUCT(STRUCT(TIMESTAMP '{MOMENT:%Y-%m-%d %H:%M:%S}')))",
            {"deep": {"at": MOMENT}},
        ),
        ("s STRUCT<deep STRUCT<`at` TIMESTAMP>>", "INSERT positions.t VALUES (STRUCT(STRUCT(NULL)))",
         {"deep": {"at": None}}),
    ],
)  # fmt: skip
def test_what_is_written(client, columns, statement, stored):
    client.query_and_wait(f"CREATE OR REPLACE TABLE positions.t ({columns})")
    client.query(statement, retry=None, job_retry=None).result(retry=None)
    (row,) = client.query_and_wait("SELECT s FROM positions.t")
    assert row.s == stored


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("CAST(STRUCT(1 AS b, 2 AS a) AS STRUCT<a INT64, b INT64>)", {"a": 1, "b": 2}),
        ("SAFE_CAST((1, '2') AS STRUCT<a INT64, b INT64>)", {"a": 1, "b": 2}),
        ("CAST([(1, 2), (3, 4)] AS ARRAY<STRUCT<b STRING, a INT64>>)", [{"b": "1", "a": 2}, {"b": "3", "a": 4}]),
        ("STRUCT<a INT64, b STRUCT<c STRING, d INT64>>(1, STRUCT('x' AS d, 5 AS c))",
         {"a": 1, "b": {"c": "x", "d": 5}}),
        ("STRUCT(1 AS b, 2 AS a)", {"b": 1, "a": 2}),
    ],
)  # fmt: skip
def test_what_is_cast(client, value, expected):
    (row,) = client.query_and_wait(f"SELECT {value} AS s")
    assert row.s == expected
    assert list(row.s if isinstance(row.s, dict) else row.s[0]) == list(
        expected if isinstance(expected, dict) else expected[0]
    )
