"""Answers over many rows and of tables: macros see types when a statement is bound, and values row by row."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client."""
    return bigquery.Client(project=local_cloud.project)


def test_by_columns_nan_is_as_alone(client: bigquery.Client) -> None:
    """Of a table, whose columns' types are known beforehand: those that are no floats are compared as they are."""
    name = f"`{client.project}`.nans"
    client.create_dataset("nans", exists_ok=True)
    client.query_and_wait(
        f"CREATE OR REPLACE TABLE {name}.rows AS SELECT 1 AS i, 1.0 AS x, 'a' AS s UNION ALL"
        " SELECT 2, CAST('NaN' AS FLOAT64), 'b' UNION ALL SELECT 3, NULL, 'c'"
    )

    def asked(sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in client.query_and_wait(sql.format(t=f"{name}.rows"))]

    assert asked("SELECT i FROM {t} ORDER BY x DESC") == [(1,), (2,), (3,)]
    assert asked("SELECT s, SUM(i) AS n FROM {t} WHERE x > 0 OR s = 'c' GROUP BY s ORDER BY s") == [("a", 1), ("c", 3)]
    assert asked("SELECT COUNT(*) FROM {t} AS a LEFT JOIN {t} AS b ON a.x = b.x AND a.i = b.i WHERE b.i IS NULL") == [
        (2,)
    ]
    assert asked("WITH w AS (SELECT s, x * 2 AS y FROM {t}) SELECT s FROM w WHERE y >= 0 OR NOT y < 5 ORDER BY s") == [
        ("a",),
        ("b",),
    ]
    parameters = [bigquery.ScalarQueryParameter("least", "FLOAT64", math.nan)]
    config = bigquery.QueryJobConfig(query_parameters=parameters)
    found = client.query_and_wait(f"SELECT i FROM {name}.rows WHERE x < @least OR i = 3", job_config=config)
    assert [row["i"] for row in found] == [3]


@pytest.mark.parametrize(
    ("columns", "key", "expected"),
    [
        ("*", "2", [3, 2, 1]),
        ("*", "2 DESC", [1, 2, 3]),
        ("k AS first, *", "3", [3, 2, 1]),
        ("*, -x AS y", "4", [3, 2, 1]),
        ("DISTINCT *", "2", [3, 2, 1]),
        ("t.*", "2", [3, 2, 1]),
        ("* EXCEPT (k), k", "k", [1, 2, 3]),
    ],
)
def test_the_number_of_a_column_behind_a_star_has_nan_first(client: bigquery.Client, columns, key, expected) -> None:
    """NULL, then NaN, then numbers."""
    client.create_dataset("columns", exists_ok=True)
    client.query_and_wait(
        "CREATE OR REPLACE TABLE columns.starred AS SELECT 1 AS k, 1.5 AS x, 'a' AS s UNION ALL"
        " SELECT 2, CAST('NaN' AS FLOAT64), 'b' UNION ALL SELECT 3, NULL, 'c'"
    )
    rows = client.query_and_wait(f"SELECT {columns} FROM columns.starred AS t ORDER BY {key}")
    assert [row.k for row in rows] == expected


def test_what_is_set_is_no_comparison(client: bigquery.Client) -> None:
    """Though it is written as one, with floats and structs that have other names."""
    name = f"`{client.project}`.nans.changed"
    client.create_dataset("nans", exists_ok=True)
    client.query_and_wait(
        f"CREATE OR REPLACE TABLE {name} AS SELECT 1 AS i, 1.5 AS x, 2.5 AS y, STRUCT(1 AS a) AS s UNION ALL"
        " SELECT 2, CAST('NaN' AS FLOAT64), 3.5, STRUCT(2 AS a)"
    )
    client.query_and_wait(f"UPDATE {name} SET x = y, s = STRUCT(i + 1 AS a) WHERE x > 0")
    client.query_and_wait(
        f"MERGE {name} AS t USING (SELECT 2 AS i, 0.5 AS x) AS n ON t.i = n.i WHEN MATCHED THEN UPDATE SET y = n.x"
    )
    rows = client.query_and_wait(f"SELECT i, IF(IS_NAN(x), NULL, x) AS x, y, s.a AS a FROM {name} ORDER BY i")
    assert [tuple(row.values()) for row in rows] == [(1, 2.5, 2.5, 2), (2, None, 0.5, 2)]


def test_of_many_rows_decimals_keep_their_digits(client: bigquery.Client) -> None:
    """By columns, groups and windows."""
    rows = client.query_and_wait(
        "SELECT k, AVG(x) AS mean, SUM(x) / COUNT(*) AS same, AVG(AVG(x)) OVER () AS both, SUM(n) AS total FROM ("
        "SELECT 'a' AS k, NUMERIC '10' AS x, 1 AS n UNION ALL SELECT 'a', NUMERIC '0.000000001', 2"
        " UNION ALL SELECT 'b', NUMERIC '20', NULL) GROUP BY k ORDER BY k"
    )
    half, whole = Decimal("5.000000001"), Decimal(20)  # half a billionth is rounded up
    assert [tuple(row.values()) for row in rows] == [
        ("a", half, half, Decimal("12.500000001"), 3),
        ("b", whole, whole, Decimal("12.500000001"), None),
    ]


def test_a_struct_of_a_column_is_compared_by_position(client: bigquery.Client) -> None:
    """With one that is written out, whatever its names."""
    rows = client.query_and_wait("SELECT s = STRUCT(1 AS b) AS v FROM (SELECT STRUCT(1 AS a) AS s)")
    assert [tuple(row.values()) for row in rows] == [(True,)]


def test_of_many_rows_each_gets_its_answer(client: bigquery.Client) -> None:
    """By columns, with NULLs: macros see types when a statement is bound, and values row by row."""
    rows = client.query_and_wait(
        "SELECT CAST(x AS INT64) AS whole, CAST(x AS STRING) AS text, SAFE_CAST(t AS INT64) AS number,"
        " SUBSTR(t, p, 2) AS part, a[OFFSET(p)] AS element, TO_JSON_STRING(STRUCT(x, t)) AS json"
        " FROM (SELECT 0.5 AS x, '12' AS t, 0 AS p, [7, 8] AS a UNION ALL SELECT NULL, '1.5', 1, [7, 8]"
        " UNION ALL SELECT 2.0, NULL, 1, NULL) ORDER BY x"
    )
    assert [tuple(row) for row in rows] == [
        (None, None, None, "1.", 8, '{"x":null,"t":"1.5"}'),
        (1, "0.5", 12, "12", 7, '{"x":0.5,"t":"12"}'),
        (2, "2", None, None, None, '{"x":2,"t":null}'),
    ]


def test_numbers_of_json_are_written_short_and_texts_that_look_like_them_stay(client: bigquery.Client) -> None:
    """In one column: rows that take the quick way, and those whose texts need a look."""
    rows = client.query_and_wait(
        "SELECT TO_JSON_STRING(STRUCT(s, x)) AS v FROM (SELECT 'a1.0,b' AS s, 2.0 AS x UNION ALL SELECT 'plain', 3.0"
        " UNION ALL SELECT 'NaN', 7.0 UNION ALL SELECT '\"1.0,', CAST('inf' AS FLOAT64) UNION ALL SELECT NULL, 0.5)"
        " ORDER BY x"
    )
    assert [row["v"] for row in rows] == [
        '{"s":null,"x":0.5}',
        '{"s":"a1.0,b","x":2}',
        '{"s":"plain","x":3}',
        '{"s":"NaN","x":7}',
        '{"s":"\\"1.0,","x":"Infinity"}',
    ]


def test_fields_keep_their_names_beside_a_table(client: bigquery.Client) -> None:
    rows = client.query_and_wait(
        "SELECT f.n AS n, f.v AS v FROM (SELECT 1.5 AS x), UNNEST([STRUCT('a' AS n, CAST(x AS STRING) AS v),"
        " STRUCT('b' AS n, CAST(x + 0.5 AS STRING) AS v)]) AS f ORDER BY n"
    )
    assert [tuple(row) for row in rows] == [("a", "1.5"), ("b", "2")]
