"""CREATE TABLE with columns and a query: the columns have the names, types and modes that the statement says."""

from __future__ import annotations

from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a table `k` of two rows."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("declared", exists_ok=True)
    made.query_and_wait("CREATE OR REPLACE TABLE declared.k AS SELECT 1 AS id, 'x' AS s UNION ALL SELECT 2, NULL")
    return made


def run(client: bigquery.Client, sql: str) -> list[tuple[Any, ...]]:
    """Return a statement's rows."""
    return [tuple(row.values()) for row in client.query_and_wait(sql, retry=None, job_retry=None)]


def columns_of(client: bigquery.Client, table: str) -> list[tuple[str, str, str]]:
    return [(field.name, field.field_type, field.mode) for field in client.get_table(table).schema]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT * FROM declared.k", [(1.0, "x"), (2.0, None)]),
        ("SELECT * FROM declared.k WHERE id = 1 UNION ALL SELECT 3, 'c'", [(1.0, "x"), (3.0, "c")]),
        ("WITH w AS (SELECT 1 AS x, 'b' AS y) SELECT * FROM w", [(1.0, "b")]),
        ("SELECT k.* FROM declared.k ORDER BY id DESC LIMIT 1", [(2.0, None)]),
        ("(SELECT * FROM declared.k LIMIT 1)", [(1.0, "x")]),
        ("SELECT id, s FROM declared.k", [(1.0, "x"), (2.0, None)]),
        ("(SELECT id, s FROM (SELECT 1 AS id, 'p' AS s) AS inside)", [(1.0, "p")]),
        ("SELECT * FROM UNNEST([STRUCT(5 AS a, 'z' AS b)])", [(5.0, "z")]),
    ],
)
def test_columns_come_from_the_statement_and_rows_from_the_query(client, query, rows):
    run(client, f"CREATE OR REPLACE TABLE declared.made (number FLOAT64, text STRING) AS {query}")
    assert columns_of(client, "declared.made") == [("number", "FLOAT", "NULLABLE"), ("text", "STRING", "NULLABLE")]
    assert run(client, "SELECT * FROM declared.made ORDER BY 1") == rows


def test_a_table_is_made_of_itself(client):
    run(client, "CREATE OR REPLACE TABLE declared.self (a INT64, b STRING) AS SELECT * FROM declared.k")
    run(client, "CREATE OR REPLACE TABLE declared.self (c STRING, d STRING) AS SELECT * FROM declared.self")
    assert run(client, "SELECT * FROM declared.self ORDER BY c") == [("1", "x"), ("2", None)]


def test_types_are_those_of_the_statement(client):
    run(
        client,
        "CREATE OR REPLACE TABLE declared.types (n NUMERIC, b BIGNUMERIC, d DATE, t TIMESTAMP, a ARRAY<INT64>,"
        " s STRUCT<x INT64, y ARRAY<STRING>>, j JSON, o BYTES) AS"
        " SELECT * FROM (SELECT 1, 2, DATE '2024-01-02', TIMESTAMP '2024-01-02 03:04:05+00', [1, 2],"
        """ STRUCT(1 AS x, ['q'] AS y), JSON '{"k": 1}', b'z')""",
    )
    assert [kind for _, kind, _ in columns_of(client, "declared.types")] == [
        "NUMERIC", "BIGNUMERIC", "DATE", "TIMESTAMP", "INTEGER", "RECORD", "JSON", "BYTES",
    ]  # fmt: skip
    assert run(client, "SELECT n, b, d, a, s, o FROM declared.types")[0][3:] == ([1, 2], {"x": 1, "y": ["q"]}, b"z")


def test_a_struct_may_have_required_fields(client):
    sql = "(st STRUCT<x INT64 NOT NULL, y STRING>) AS SELECT * FROM (SELECT STRUCT(1 AS x, 'a' AS y) AS st)"
    run(client, f"CREATE OR REPLACE TABLE declared.fields {sql}")
    assert run(client, "SELECT st FROM declared.fields") == [({"x": 1, "y": "a"},)]


def test_a_required_column_stays_so(client):
    for query in ("SELECT 1, 'a'", "SELECT * FROM declared.k WHERE id = 1"):
        run(client, f"CREATE OR REPLACE TABLE declared.required (id INT64 NOT NULL, s STRING) AS {query}")
        assert columns_of(client, "declared.required") == [("id", "INTEGER", "REQUIRED"), ("s", "STRING", "NULLABLE")]
        with pytest.raises(exceptions.BadRequest, match=r"id"):
            run(client, "INSERT declared.required (s) VALUES ('no id')")
    with pytest.raises(exceptions.BadRequest, match="Required field s cannot be null"):
        run(client, "CREATE TABLE declared.not_made (id INT64, s STRING NOT NULL) AS SELECT * FROM declared.k")
    with pytest.raises(exceptions.NotFound):
        client.get_table("declared.not_made")


def test_a_table_that_is_there_keeps_its_modes(client):
    run(client, "CREATE OR REPLACE TABLE declared.kept (id INT64, s STRING) AS SELECT * FROM declared.k")
    run(client, "CREATE TABLE IF NOT EXISTS declared.kept (id INT64 NOT NULL, s STRING) AS SELECT * FROM declared.k")
    assert columns_of(client, "declared.kept")[0] == ("id", "INTEGER", "NULLABLE")


@pytest.mark.parametrize("query", ["SELECT 1", "SELECT 1, 'a', 2", "SELECT *, 3 FROM declared.k"])
def test_another_number_of_columns_is_refused(client, query):
    with pytest.raises(exceptions.BadRequest, match=r"numbers? of"):
        run(client, f"CREATE OR REPLACE TABLE declared.counted (id INT64, s STRING) AS {query}")


def test_a_session_has_such_a_table(client):
    config = bigquery.QueryJobConfig(create_session=True)
    made = client.query(
        "CREATE TEMP TABLE numbers(id INT64) AS SELECT * FROM UNNEST([1, 2, 3]) AS id", job_config=config
    )
    made.result()
    config = bigquery.QueryJobConfig(
        connection_properties=[bigquery.ConnectionProperty("session_id", made.session_info.session_id)]
    )
    assert [tuple(row) for row in client.query("SELECT SUM(id) FROM numbers", job_config=config).result()] == [(6,)]
