"""Materialized views, as people and dbt write them."""

from __future__ import annotations

import datetime as dt

import pytest
from google.api_core import exceptions
from google.cloud import bigquery


@pytest.fixture
def client(local_cloud) -> bigquery.Client:
    """The real client, with a dataset that has one table."""
    made = bigquery.Client(project=local_cloud.project)
    made.delete_dataset("materialized", delete_contents=True, not_found_ok=True)
    made.create_dataset("materialized")
    made.query_and_wait("CREATE TABLE materialized.t AS SELECT 1 AS n, DATE '2024-01-02' AS d")
    return made


def run(client: bigquery.Client, sql: str) -> list[tuple[object, ...]]:
    """Return a statement's rows."""
    return [tuple(row.values()) for row in client.query_and_wait(sql, retry=None, job_retry=None)]


def test_a_view_with_options_is_one(client):
    run(
        client,
        "/* dbt */ CREATE MATERIALIZED VIEW `materialized`.`v` PARTITION BY d CLUSTER BY n OPTIONS"
        " (enable_refresh = false, refresh_interval_minutes = 60, description = 'Sums.', labels = [('team', 'a')],"
        " tags = [('local-project/cost', 'b')])"
        " AS SELECT d, n, COUNT(*) AS c FROM materialized.t GROUP BY d, n",
    )
    view = client.get_table("materialized.v")
    assert (view.table_type, view.description, view.labels) == ("MATERIALIZED_VIEW", "Sums.", {"team": "a"})
    assert (view.mview_enable_refresh, view.mview_refresh_interval) == (False, dt.timedelta(hours=1))
    assert "COUNT(*)" in view.mview_query
    assert view.resource_tags == {"local-project/cost": "b"}
    assert (view.clustering_fields, view.time_partitioning.field) == (["n"], "d")
    assert {table.table_id: table.table_type for table in client.list_tables("materialized")} == {
        "t": "TABLE",
        "v": "MATERIALIZED_VIEW",
    }
    run(client, "INSERT materialized.t (n, d) VALUES (1, DATE '2024-01-02')")
    assert run(client, "SELECT c FROM materialized.v") == [(2,)]
    assert run(client, "SELECT table_name FROM materialized.INFORMATION_SCHEMA.MATERIALIZED_VIEWS") == [("v",)]


def test_if_not_exists_and_or_replace(client):
    create = "MATERIALIZED VIEW {}materialized.v AS SELECT n + {} AS m FROM materialized.t"
    run(client, "CREATE " + create.format("IF NOT EXISTS ", 1))
    run(client, "CREATE " + create.format("IF NOT EXISTS ", 2))
    assert run(client, "SELECT m FROM materialized.v") == [(2,)]
    run(client, "CREATE OR REPLACE " + create.format("", 3))
    assert run(client, "SELECT m FROM materialized.v") == [(4,)]
    with pytest.raises(exceptions.Conflict):
        run(client, "CREATE " + create.format("", 4))


def test_a_replacement_that_fails_leaves_the_view(client):
    run(client, "CREATE MATERIALIZED VIEW materialized.v OPTIONS (description = 'x') AS SELECT n FROM materialized.t")
    with pytest.raises(exceptions.GoogleAPICallError):
        run(client, "CREATE OR REPLACE MATERIALIZED VIEW materialized.v AS SELECT nothing FROM materialized.t")
    assert run(client, "SELECT n FROM materialized.v") == [(1,)]
    assert client.get_table("materialized.v").description == "x"
    run(client, "CREATE OR REPLACE MATERIALIZED VIEW materialized.v AS SELECT n + 1 AS n FROM materialized.t")
    assert [table.table_id for table in client.list_tables("materialized")] == ["t", "v"]


def test_it_is_dropped(client):
    run(client, "CREATE MATERIALIZED VIEW materialized.v OPTIONS (description = 'x') AS SELECT n FROM materialized.t")
    run(client, "-- away\nDROP MATERIALIZED VIEW materialized.v")
    assert [table.table_id for table in client.list_tables("materialized")] == ["t"]
    run(client, "DROP MATERIALIZED VIEW IF EXISTS materialized.v")
    with pytest.raises(exceptions.NotFound):
        run(client, "DROP MATERIALIZED VIEW materialized.v")


def test_a_script_makes_one(client):
    rows = run(
        client,
        "BEGIN CREATE MATERIALIZED VIEW materialized.v OPTIONS (enable_refresh = true) AS SELECT n FROM materialized.t;"
        " SELECT n FROM materialized.v; END",
    )
    assert rows == [(1,)]
    assert client.get_table("materialized.v").table_type == "MATERIALIZED_VIEW"


def test_options_that_are_not_offered_are_named(client):
    with pytest.raises(exceptions.MethodNotImplemented, match="max_staleness"):
        run(
            client,
            "CREATE MATERIALIZED VIEW materialized.v OPTIONS (max_staleness = INTERVAL '4' HOUR)"
            " AS SELECT n FROM materialized.t",
        )
    assert [table.table_id for table in client.list_tables("materialized")] == ["t"]


def test_a_table_keeps_its_clustering(client):
    run(client, "CREATE TABLE materialized.c (a INT64, b STRING) CLUSTER BY b, a")
    assert client.get_table("materialized.c").clustering_fields == ["b", "a"]
    places = "SELECT column_name, clustering_ordinal_position FROM materialized.INFORMATION_SCHEMA.COLUMNS"
    assert run(client, f"{places} WHERE table_name = 'c' ORDER BY 2") == [("b", 1), ("a", 2)]
