"""GoogleSQL that is stored and read later answers as it does in a statement of its own."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a table `stored.t` of 1 and 2."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("stored", exists_ok=True)
    made.query_and_wait("CREATE OR REPLACE TABLE stored.t AS SELECT n, 'a' AS k FROM UNNEST([1, 2]) AS n")
    return made


def rows_of(client: bigquery.Client, sql: str) -> list[tuple[Any, ...]]:
    """Return a statement's rows."""
    return [tuple(row.values()) for row in client.query_and_wait(sql, retry=None, job_retry=None)]


def test_a_view(client):
    """Also one over REST, one behind another, and one with characters by their numbers."""
    values = "n, CAST(n + 0.5 AS INT64) AS half, n / NUMERIC '3' AS third, '\\u00e9' AS e, -n >> 62 AS bits"
    body = f"SELECT {values} FROM `{client.project}.stored.t`"
    view = bigquery.Table(f"{client.project}.stored.over_rest")
    view.view_query = body
    client.delete_table(view, not_found_ok=True)
    client.create_table(view)
    client.query_and_wait(f"CREATE OR REPLACE VIEW stored.by_statement AS {body}")
    client.query_and_wait("CREATE OR REPLACE VIEW stored.behind AS SELECT * FROM stored.by_statement WHERE half > 0")
    expected = rows_of(client, f"{body} ORDER BY n")
    assert expected[0][:4] == (1, 2, Decimal("0.333333333"), "é")
    for name in ("over_rest", "by_statement", "behind"):
        assert rows_of(client, f"SELECT * FROM stored.{name} ORDER BY n") == expected, name


def test_json_that_is_written_out_beside_a_table(client):
    values = """JSON_VALUE('{"a": "x"}', '$.a') AS x, JSON_EXTRACT_SCALAR('{"b": 2}', '$.b') AS y"""
    sql = f"SELECT {values} FROM stored.t LIMIT 1"
    assert rows_of(client, sql) == [("x", "2")]
    client.query_and_wait(f"CREATE OR REPLACE VIEW stored.of_json AS {sql}")
    assert rows_of(client, "SELECT x, y FROM stored.of_json") == [("x", "2")]


def test_a_materialized_view_when_it_is_made_and_made_anew(client):
    client.query_and_wait("CREATE OR REPLACE TABLE stored.changing AS SELECT 'a' AS k, 2.5 AS x")
    client.query_and_wait(
        "CREATE MATERIALIZED VIEW stored.sums AS SELECT k, SUM(CAST(x AS INT64)) AS s FROM stored.changing GROUP BY k"
    )
    assert rows_of(client, "SELECT k, s FROM stored.sums") == [("a", 3)]
    client.query_and_wait("INSERT stored.changing VALUES ('a', 4.5)")
    assert rows_of(client, "SELECT k, s FROM stored.sums") == [("a", 8)]
    client.delete_table("stored.sums")


@pytest.mark.parametrize("scope", ["stored.", "TEMP "])
def test_a_function(client, scope: str):
    kind, dataset = ("TEMP ", "") if scope == "TEMP " else ("OR REPLACE ", scope)
    first = "CREATE TEMP FUNCTION" if kind == "TEMP " else "CREATE OR REPLACE FUNCTION"
    script = (
        f"{first} {dataset}rounded(x FLOAT64) AS (CAST(x AS INT64));"
        f"{first} {dataset}shifted(x INT64) RETURNS INT64 AS (x >> 1);"
        f"{first} {dataset}third(x NUMERIC) AS (x / 3);"
        f"{first} {dataset}accent(x STRING) AS (CONCAT('\\u00e9', x));"
        f"SELECT {dataset}rounded(2.5), {dataset}shifted(-1), {dataset}third(NUMERIC '1'), {dataset}accent('t')"
        " FROM stored.t"
    )
    expected = (3, 9223372036854775807, Decimal("0.333333333"), "ét")
    assert rows_of(client, script) == [expected, expected]


def test_columns_of_functions_and_fields_have_the_names_of_the_service(client):
    client.query_and_wait("CREATE OR REPLACE FUNCTION stored.plus(x INT64) AS (x + 1)")
    sql = "SELECT stored.plus(1), STRUCT(1 AS z).z, (SELECT AS STRUCT 2 AS y).y, stored.plus(2) AS named"
    assert [field.name for field in client.query_and_wait(sql).schema] == ["f0_", "z", "y", "named"]


def test_a_table_function(client):
    client.query_and_wait(
        "CREATE OR REPLACE TABLE FUNCTION stored.from_on(least INT64) AS"
        " SELECT CAST(n + 0.5 AS INT64) AS half FROM stored.t WHERE n >= least"
    )
    assert rows_of(client, "SELECT half FROM stored.from_on(2)") == [(3,)]


def test_the_condition_of_a_row_access_policy(client):
    client.query_and_wait("CREATE OR REPLACE TABLE stored.guarded AS SELECT n FROM UNNEST([1, 2]) AS n")
    client.query_and_wait(
        "CREATE ROW ACCESS POLICY halves ON stored.guarded GRANT TO ('allUsers')"
        " FILTER USING (CAST(n + 0.5 AS INT64) = 3)"
    )
    assert rows_of(client, "SELECT n FROM stored.guarded") == [(2,)]
    client.query_and_wait("DROP ALL ROW ACCESS POLICIES ON stored.guarded")


def test_what_is_not_offered_is_refused_in_a_view_too(client):
    client.query_and_wait("CREATE OR REPLACE TABLE stored.texts AS SELECT 'b' AS x")
    view = bigquery.Table(f"{client.project}.stored.refused")
    view.view_query = "SELECT APPROX_TOP_SUM(x, 1, 1) AS v FROM stored.texts"
    with pytest.raises(exceptions.MethodNotImplemented, match="APPROX_TOP_SUM"):
        client.create_table(view, retry=None)
    with pytest.raises(exceptions.NotFound):
        client.get_table(view)


def test_a_script_with_variables_reads_characters_by_their_numbers(client):
    """It writes its statements anew, with the variables' values."""
    script = "DECLARE s STRING; SET s = '\\u00e9'; IF s = '\\u00e9' THEN SELECT s, '\\x41\\\"', r'\\d'; END IF"
    assert rows_of(client, script) == [("é", 'A"', "\\d")]
