"""Arrays of structs in FROM, as exports of analytics have them: fields of an element are columns."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with two events `e` of two parameters each."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("analytics", exists_ok=True)
    made.query_and_wait("""CREATE OR REPLACE TABLE analytics.e AS
    SELECT n, [n, n + 1] AS numbers, [
        STRUCT('page' AS key, STRUCT(CONCAT('/', CAST(n AS STRING)) AS string_value, NULL AS int_value) AS value),
        STRUCT('time', STRUCT(NULL, n * 10))
    ] AS params
    FROM UNNEST([1, 2]) AS n""")
    return made


def rows_of(client: bigquery.Client, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Return a statement's rows; it has parameters."""
    config = bigquery.QueryJobConfig(query_parameters=list(parameters))
    return [tuple(row.values()) for row in client.query_and_wait(sql, job_config=config, retry=None, job_retry=None)]


def names_of(client: bigquery.Client, sql: str) -> list[str]:
    """Return the names of a statement's columns; a dry run has the same."""
    config = bigquery.QueryJobConfig(dry_run=True)
    names = [field.name for field in client.query_and_wait(sql, retry=None, job_retry=None).schema]
    assert [field.name for field in client.query(sql, job_config=config).schema] == names
    return names


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT n, key FROM analytics.e, UNNEST(params) ORDER BY n, key LIMIT 1", [(1, "page")]),
        ("SELECT key, p.key AS same FROM analytics.e, e.params AS p WHERE n = 1 AND key = 'time'", [("time", "time")]),
        ("SELECT n FROM analytics.e LEFT JOIN UNNEST(e.params) ON value.int_value > 15 WHERE n = 2", [(2,)]),
        (
            "SELECT (SELECT value.int_value FROM UNNEST(params) WHERE key = 'time') AS t FROM analytics.e ORDER BY t",
            [(10,), (20,)],
        ),
        (
            """WITH w AS (SELECT * FROM analytics.e) SELECT KEY, SUM(value.int_value) FROM w, UNNEST(params)
            GROUP BY key HAVING COUNT(value.int_value) > 0 ORDER BY key""",
            [("time", 30)],
        ),
        ("SELECT n, params.key FROM analytics.e, e.params WHERE params.value.int_value > 10", [(2, "time")]),
        ("SELECT n, key FROM analytics.e JOIN e.params WHERE value.int_value = 10", [(1, "time")]),
        ("SELECT COUNT(*) FROM analytics.e, e.numbers", [(4,)]),
        ("SELECT z FROM UNNEST([STRUCT([STRUCT(2 AS z)] AS deep)]) AS a, a.deep", [(2,)]),
        ("SELECT w FROM UNNEST([STRUCT([3, 4] AS deep)]) AS a, a.deep AS w ORDER BY w", [(3,), (4,)]),
        ("SELECT -n AS key FROM analytics.e, UNNEST(params) ORDER BY key LIMIT 1", [(-2,)]),
        ("SELECT z FROM UNNEST([STRUCT([STRUCT(2 AS z)] AS deep)]), UNNEST(deep)", [(2,)]),
        (
            """SELECT a.n, day, hex FROM UNNEST([STRUCT(1 AS n, DATETIME('2011-10-01 00:01:02') AS day)]) AS a
            JOIN UNNEST([STRUCT(1 AS n, CAST('F1AC' AS BYTES FORMAT 'HEX') AS hex)]) AS b ON a.n = b.n""",
            [(1, dt.datetime(2011, 10, 1, 0, 1, 2), b"\xf1\xac")],
        ),
        ("SELECT '\\u00e9', '\\\\u', r'\\d', REGEXP_CONTAINS(key, r'\\w') FROM analytics.e, UNNEST(params) LIMIT 1",
         [("é", "\\u", "\\d", True)]),
        ("SELECT COUNT(*), COUNTIF(key = 'page') FROM analytics.e, UNNEST(params)", [(4, 2)]),
        ("SELECT n, EXISTS(SELECT * FROM UNNEST(params) WHERE key = '?') FROM analytics.e LIMIT 1", [(1, False)]),
        ("SELECT p.value FROM analytics.e, UNNEST(params) AS p WHERE n = 1 AND p.key = 'time'",
         [({"string_value": None, "int_value": 10},)]),
        ("SELECT p FROM analytics.e, UNNEST(numbers) AS p ORDER BY p LIMIT 1", [(1,)]),
        ("SELECT key FROM (SELECT params FROM analytics.e), UNNEST(params) GROUP BY 1 ORDER BY 1",
         [("page",), ("time",)]),
    ],
)  # fmt: skip
def test_a_field_is_a_column(client, sql: str, expected: list[tuple[Any, ...]]):
    assert rows_of(client, sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM analytics.e, UNNEST(params)", ["n", "numbers", "params", "key", "value"]),
        ("SELECT * FROM analytics.e, e.params AS p", ["n", "numbers", "params", "key", "value"]),
        ("SELECT *, 1 AS one FROM analytics.e CROSS JOIN UNNEST(params) AS p WITH OFFSET AS place",
         ["n", "numbers", "params", "key", "value", "place", "one"]),
        ("SELECT * EXCEPT (params, value) REPLACE (UPPER(key) AS key) FROM analytics.e, UNNEST(params)",
         ["n", "numbers", "key"]),
        ("SELECT * EXCEPT (params, value, o) FROM (SELECT n, params FROM analytics.e), UNNEST(params) WITH OFFSET o",
         ["n", "key"]),
        ("SELECT * FROM UNNEST([STRUCT(1 AS a, 2 AS b)]), UNNEST([5]) AS c", ["a", "b", "c"]),
        ("SELECT * FROM UNNEST((SELECT ARRAY_AGG(STRUCT(n, n AS m)) FROM analytics.e))", ["n", "m"]),
        ("SELECT p.*, e.n FROM analytics.e, UNNEST(params) AS p", ["key", "value", "n"]),
        ("SELECT * FROM analytics.e, UNNEST(numbers) AS k", ["n", "numbers", "params", "k"]),
        ("SELECT * FROM UNNEST([STRUCT(1 AS a, 'x' AS b), (2, 'y')])", ["a", "b"]),
        ("SELECT * FROM UNNEST([(1, 'x'), (2, 'y')])", ["f0_", "f1_"]),
        ("SELECT n, k.*, 5 FROM analytics.e, UNNEST([(1, 'x')]) AS k", ["n", "f0_", "f1_", "f2_"]),
        ("SELECT 5, * FROM UNNEST([STRUCT(1, 2 AS b, 3)])", ["f0_", "f1_", "b", "f2_"]),
        ("SELECT * EXCEPT (numbers, params) FROM analytics.e, UNNEST([(1, 'x')]) WITH OFFSET",
         ["n", "f0_", "f1_", "offset"]),
    ],
)  # fmt: skip
def test_a_star_has_the_fields_in_the_place_of_the_element(client, sql: str, expected: list[str]):
    assert names_of(client, sql) == expected


def test_a_replaced_field_has_its_value(client):
    sql = (
        "SELECT * EXCEPT (params, numbers, value) REPLACE (UPPER(key) AS key, -n AS n) FROM analytics.e, UNNEST(params)"
    )
    assert rows_of(client, f"{sql} ORDER BY n, key LIMIT 1") == [(-2, "PAGE")]


def test_fields_without_names_have_their_values(client):
    sql = "SELECT * FROM (SELECT 7 AS n), UNNEST([(1, 'x'), (2, 'y')]) AS k ORDER BY n, k.f0_"
    with pytest.raises(exceptions.BadRequest, match="f0_"):
        rows_of(client, sql)
    assert sorted(rows_of(client, sql.partition(" ORDER")[0])) == [(7, 1, "x"), (7, 2, "y")]
    assert sorted(
        rows_of(
            client,
            "SELECT * FROM UNNEST([(1, 'x'), (2, NULL)])",
        )
    ) == [(1, "x"), (2, None)]
    with pytest.raises(exceptions.BadRequest, match="column 1 has no name"):
        rows_of(client, "CREATE OR REPLACE TABLE analytics.nameless AS SELECT * FROM UNNEST([(1, 'x')])")


def test_elements_of_a_parameter(client):
    given = bigquery.ArrayQueryParameter(
        "given",
        "RECORD",
        [
            bigquery.StructQueryParameter(
                None,
                bigquery.ScalarQueryParameter("id", "INT64", number),
                bigquery.ScalarQueryParameter("said", "STRING", f"s{number}"),
            )
            for number in (1, 2)
        ],
    )
    assert rows_of(client, "SELECT * FROM UNNEST(@given) ORDER BY id", given) == [(1, "s1"), (2, "s2")]
    assert rows_of(client, "SELECT said FROM UNNEST(@given) WHERE id = 2", given) == [("s2",)]


def test_what_is_stored_reads_fields_too(client):
    client.query_and_wait(
        "CREATE OR REPLACE VIEW analytics.pages AS SELECT n, value.string_value AS page"
        " FROM analytics.e, UNNEST(params) WHERE key = 'page'"
    )
    assert rows_of(client, "SELECT page FROM analytics.pages ORDER BY n") == [("/1",), ("/2",)]
    client.query_and_wait(
        "CREATE OR REPLACE TABLE analytics.wide AS SELECT * EXCEPT (params) FROM analytics.e, UNNEST(params)"
    )
    assert [field.name for field in client.get_table("analytics.wide").schema] == ["n", "numbers", "key", "value"]
    client.query_and_wait("INSERT analytics.wide (n, key) SELECT n, CONCAT(key, '!') FROM analytics.e, UNNEST(params)")
    assert rows_of(client, "SELECT COUNT(*) FROM analytics.wide WHERE key LIKE '%!'") == [(4,)]
    client.query_and_wait(
        "BEGIN DECLARE wanted STRING DEFAULT 'page';"
        " UPDATE analytics.wide SET n = (SELECT COUNT(*) FROM analytics.e, UNNEST(params) WHERE key = wanted)"
        " WHERE TRUE; END"
    )
    assert rows_of(client, "SELECT DISTINCT n FROM analytics.wide") == [(2,)]


@pytest.mark.parametrize(
    ("sql", "error", "said"),
    [
        ("SELECT n FROM analytics.e, UNNEST([STRUCT(5 AS n)])", exceptions.BadRequest, "n is ambiguous"),
        ("SELECT key FROM analytics.e, UNNEST(params), UNNEST(params)", exceptions.BadRequest, "key is ambiguous"),
        ("SELECT nothing FROM analytics.e, UNNEST(params)", exceptions.BadRequest, "Unrecognized name: nothing"),
        ("SELECT * FROM analytics.e AS a JOIN analytics.e AS b USING (n), UNNEST(a.params)",
         exceptions.MethodNotImplemented, "USING"),
    ],
)  # fmt: skip
def test_what_nobody_can_tell_is_refused(client, sql: str, error: type[Exception], said: str):
    with pytest.raises(error, match=said):
        rows_of(client, sql)


def test_an_export_of_lines_is_read_as_it_lies(client):
    """A loaded table has nested columns as one that was made by a statement."""
    lines = b"\n".join(json.dumps({"id": n, "items": [{"sku": f"s{n}", "price": n / 2}]}).encode() for n in (1, 2))
    schema = [
        bigquery.SchemaField("id", "INTEGER"),
        bigquery.SchemaField(
            "items",
            "RECORD",
            mode="REPEATED",
            fields=[bigquery.SchemaField("sku", "STRING"), bigquery.SchemaField("price", "FLOAT")],
        ),
    ]
    config = bigquery.LoadJobConfig(
        schema=schema, source_format="NEWLINE_DELIMITED_JSON", write_disposition="WRITE_TRUNCATE"
    )
    client.load_table_from_json(
        [json.loads(line) for line in lines.splitlines()], "analytics.orders", job_config=config
    ).result()
    assert rows_of(client, "SELECT sku, SUM(price) FROM analytics.orders, UNNEST(items) GROUP BY sku ORDER BY sku") == [
        ("s1", 0.5),
        ("s2", 1.0),
    ]
