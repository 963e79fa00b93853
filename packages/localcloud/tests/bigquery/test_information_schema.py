"""Views of INFORMATION_SCHEMA, in statements as people and dbt write them."""

from __future__ import annotations

from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery

DATASET = "described"


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a dataset of a table, a view, and another that is empty."""
    made = bigquery.Client(project=local_cloud.project)
    for name in (DATASET, "described_empty", "described_wide"):
        made.create_dataset(name, exists_ok=True)
    made.query_and_wait(
        f'CREATE OR REPLACE TABLE {DATASET}.t (a INT64 NOT NULL OPTIONS (description = "It\'s a."),'
        " b STRUCT<x INT64, y ARRAY<STRING>>, d DATE) PARTITION BY d CLUSTER BY a OPTIONS (description = 'T.')"
    )
    made.query_and_wait(f"INSERT {DATASET}.t (a, d) VALUES (1, DATE '2024-01-02'), (2, NULL)")
    made.query_and_wait(f"CREATE OR REPLACE VIEW {DATASET}.v AS SELECT a FROM {DATASET}.t")
    return made


def run(client: bigquery.Client, sql: str) -> list[tuple[Any, ...]]:
    """Return a statement's rows."""
    return [tuple(row.values()) for row in client.query_and_wait(sql, retry=None, job_retry=None)]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            "SELECT table_name, table_type FROM described.INFORMATION_SCHEMA.TABLES ORDER BY 1",
            [("t", "BASE TABLE"), ("v", "VIEW")],
        ),
        ("SELECT COUNT(*) FROM `described`.INFORMATION_SCHEMA.`TABLES` AS x WHERE x.table_name LIKE 't%'", [(1,)]),
        ("SELECT TABLES.table_name FROM described.INFORMATION_SCHEMA.TABLES WHERE table_type = 'VIEW'", [("v",)]),
        ("SELECT MAX(ordinal_position) FROM `local-project.described.INFORMATION_SCHEMA.COLUMNS`", [(3,)]),
        (
            ("SELECT column_name, is_nullable, data_type FROM `local-project`.described.INFORMATION_SCHEMA.COLUMNS"
            " WHERE table_name = 't' ORDER BY ordinal_position"),
            [("a", "NO", "INT64"), ("b", "YES", "STRUCT<x INT64, y ARRAY<STRING>>"), ("d", "YES", "DATE")],
        ),
        (
            ("SELECT field_path, data_type, description FROM described.INFORMATION_SCHEMA.COLUMN_FIELD_PATHS"
            " WHERE table_name = 't' ORDER BY field_path"),
            [
                ("a", "INT64", "It's a."),
                ("b", "STRUCT<x INT64, y ARRAY<STRING>>", None),
                ("b.x", "INT64", None),
                ("b.y", "ARRAY<STRING>", None),
                ("d", "DATE", None),
            ],
        ),
        (
            ("SELECT JSON_VALUE(option_value) FROM described.INFORMATION_SCHEMA.TABLE_OPTIONS"
            " WHERE option_name = 'description'"),
            [("T.",)],
        ),
        ("SELECT table_id, row_count, size_bytes, type FROM described.__TABLES__ ORDER BY table_id",
         [("t", 2, 24, 1), ("v", 0, 0, 2)]),
        ("SELECT total_rows FROM described.INFORMATION_SCHEMA.TABLE_STORAGE WHERE table_name = 't'", [(2,)]),
        (("SELECT schema_name FROM INFORMATION_SCHEMA.SCHEMATA"
         " WHERE schema_name IN ('described', 'described_empty', 'described_nowhere') ORDER BY 1"),
         [("described",), ("described_empty",)]),
        ("SELECT COUNT(*) FROM described_empty.INFORMATION_SCHEMA.COLUMNS", [(0,)]),
        ("SELECT table_name FROM `region-us`.INFORMATION_SCHEMA.TABLES WHERE table_schema = 'described' ORDER BY 1",
         [("t",), ("v",)]),
        ("SELECT table_name FROM `local-project`.INFORMATION_SCHEMA.VIEWS WHERE table_schema = 'described'", [("v",)]),
        (
            ("SELECT COUNT(*) FROM `local-project`.`region-us`.INFORMATION_SCHEMA.SCHEMATA"
            " WHERE schema_name = 'described_empty'"),
            [(1,)],
        ),
        (
            ("SELECT table_name FROM `region-us`.INFORMATION_SCHEMA.COLUMN_FIELD_PATHS"
            " WHERE table_schema = 'described' AND field_path = 'b.y'"),
            [("t",)],
        ),
        (
            ("WITH w AS (SELECT t.table_name AS n FROM described.INFORMATION_SCHEMA.TABLES AS t JOIN"
            " described.__TABLES__ AS s ON s.table_id = t.table_name) SELECT n, 'INFORMATION_SCHEMA.TABLES' FROM w"
            " WHERE n = 't'"),
            [("t", "INFORMATION_SCHEMA.TABLES")],
        ),
        ("DECLARE n INT64; SET n = (SELECT COUNT(*) FROM described.INFORMATION_SCHEMA.VIEWS); SELECT n", [(1,)]),
    ],
)  # fmt: skip
def test_what_the_views_say(client, sql, rows):
    assert run(client, sql) == rows


@pytest.mark.parametrize("view", ["TABLES", "COLUMNS", "COLUMN_FIELD_PATHS", "MATERIALIZED_VIEWS", "ROUTINES", "VIEWS"])
def test_types_do_not_hang_on_rows(client, view):
    """Of a view that is empty they are those of one that is not."""
    kinds = [
        {
            field.name: field.field_type
            for field in client.query(f"SELECT * FROM {name}.INFORMATION_SCHEMA.{view}").result().schema
        }
        for name in (DATASET, "described_empty")
    ]
    assert kinds[0] == kinds[1]
    assert {kinds[0].get(name, "TIMESTAMP") for name in ("creation_time", "created", "last_refresh_time")} == {
        "TIMESTAMP"
    }
    assert kinds[0].get("ordinal_position", "INTEGER") == "INTEGER"


def test_what_is_not_offered_is_named(client):
    with pytest.raises(exceptions.MethodNotImplemented, match=r"INFORMATION_SCHEMA\.JOBS_BY_USER is not offered"):
        run(client, "SELECT job_id FROM `region-us`.INFORMATION_SCHEMA.JOBS_BY_USER")
    with pytest.raises(exceptions.NotFound, match="nothing_here"):
        run(client, "SELECT * FROM nothing_here.INFORMATION_SCHEMA.TABLES")


def test_a_dry_run_has_the_columns(client):
    config = bigquery.QueryJobConfig(dry_run=True)
    job = client.query(
        "SELECT table_name, COUNT(*) AS n FROM described.INFORMATION_SCHEMA.COLUMNS GROUP BY 1", job_config=config
    )
    assert [(field.name, field.field_type) for field in job.schema] == [("table_name", "STRING"), ("n", "INTEGER")]


def test_a_view_of_many_rows(client):
    """More than an expression may be nested deep."""
    columns = ", ".join(f"c{number} INT64" for number in range(1_200))
    run(client, f"CREATE OR REPLACE TABLE described_wide.t ({columns})")
    for view in ("COLUMNS", "COLUMN_FIELD_PATHS"):
        sql = (
            f"SELECT COUNT(*), MAX(column_name) FROM described_wide.INFORMATION_SCHEMA.{view} WHERE data_type = 'INT64'"
        )
        assert run(client, sql) == [(1_200, "c999")]


def test_any_text_is_given_back(client):
    text = "two\nlines, \"q\", 's', \\n, \\, `b`, [], $[0], ü, \U0001f600"
    table = bigquery.Table(
        f"{client.project}.described_wide.texts", [bigquery.SchemaField("a", "INT64", description=text)]
    )
    client.delete_table(table, not_found_ok=True)
    client.create_table(table)
    sql = "SELECT description FROM described_wide.INFORMATION_SCHEMA.COLUMN_FIELD_PATHS WHERE table_name = 'texts'"
    assert run(client, sql) == [(text,)]


JOBS = "`region-us`.INFORMATION_SCHEMA.JOBS"


def test_jobs_say_what_they_did(client):
    config = bigquery.QueryJobConfig(labels={"team": "growth"}, priority="BATCH")
    job = client.query("SELECT a FROM described.t", job_config=config, retry=None, job_retry=None)
    job.result()
    columns = (
        "creation_time, project_id, job_type, statement_type, priority, query, state, total_bytes_processed,"
        " total_bytes_billed, error_result, cache_hit, referenced_tables, labels, parent_job_id, start_time <= end_time"
    )
    found = run(client, f"SELECT {columns} FROM {JOBS} WHERE job_id = '{job.job_id}'")
    table = {"project_id": "local-project", "dataset_id": "described", "table_id": "t"}
    assert found == [
        (
            job.created, "local-project", "QUERY", "SELECT", "BATCH", "SELECT a FROM described.t", "DONE",
            job.total_bytes_processed, job.total_bytes_billed, None, False, [table],
            [{"key": "team", "value": "growth"}], None, True,
        )
    ]  # fmt: skip


def test_jobs_say_what_went_wrong(client):
    job = client.query("SELECT nothing FROM described.t", retry=None, job_retry=None)
    with pytest.raises(exceptions.BadRequest):
        job.result()
    (found,) = run(client, f"SELECT state, error_result.reason, error_result FROM {JOBS} WHERE job_id = '{job.job_id}'")
    assert found[:2] == ("DONE", "invalidQuery")
    assert found[2] == {
        "reason": "invalidQuery", "location": job.error_result.get("location"), "debug_info": None,
        "message": job.error_result["message"],
    }  # fmt: skip


def test_jobs_of_a_script_say_their_parent(client):
    script = client.query("SELECT 1; SELECT 2", retry=None, job_retry=None)
    script.result()
    sql = f"SELECT COUNT(*), MIN(job_type) FROM {JOBS}_BY_PROJECT WHERE parent_job_id = '{script.job_id}'"
    assert run(client, sql) == [(2, "QUERY")]
    tables = f"`local-project`.{JOBS} AS j, UNNEST(j.referenced_tables) AS t"
    assert run(client, f"SELECT DISTINCT t.table_id FROM {tables} WHERE t.table_id = 't'") == [("t",)]


def test_jobs_of_another_region_are_left_out(client):
    client.query_and_wait("CREATE SCHEMA IF NOT EXISTS described_eu OPTIONS(location = 'EU')")
    job = client.query("SELECT 1", location="EU", retry=None, job_retry=None)
    job.result()
    for region, count in (("region-eu", 1), ("region-us", 0)):
        asked = f"SELECT COUNT(*) FROM `{region}`.INFORMATION_SCHEMA.JOBS WHERE job_id = '{job.job_id}'"
        assert run(client, asked) == [(count,)]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (f"SELECT * FROM {JOBS}", r"no \* of INFORMATION_SCHEMA\.JOBS"),
        (f"SELECT j.* FROM {JOBS} AS j", r"no \* of INFORMATION_SCHEMA\.JOBS"),
        (f"SELECT user_email FROM {JOBS}", "column user_email"),
        (f"SELECT job_id FROM {JOBS} AS j WHERE j.destination_table.table_id = 't'", "column destination_table"),
        (f"SELECT TO_JSON_STRING(j) FROM {JOBS} AS j", "row of INFORMATION_SCHEMA"),
        ("SELECT job_id FROM INFORMATION_SCHEMA.JOBS", "without a region"),
    ],
)
def test_what_jobs_do_not_say_is_named(client, sql, said):
    with pytest.raises(exceptions.MethodNotImplemented, match=said):
        run(client, sql)
