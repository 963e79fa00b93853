"""Each file of `bigquery/patches` patches a fault that bqemulator still has: with it right, without it wrong."""

from __future__ import annotations

import decimal
import io
import os
import subprocess
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import bigquery

import localcloud
from packages.localcloud.tests.bigquery.patches.conftest import rows_of, run, what_comes
from tests.support.local_cloud import LOCALCLOUD_PYTHON

PACKAGE = Path(localcloud.__file__).with_name("bigquery")
NUMBER = bigquery.SchemaField("n", "INTEGER")


def table_of(client: bigquery.Client, sql: str = "SELECT n FROM UNNEST([1, 2, 3]) n", options: str = "") -> str:
    """Create a table and return its name."""
    client.create_dataset("patched", exists_ok=True)
    name = f"{client.project}.patched.t{uuid.uuid4().hex}"
    run(client, f"CREATE TABLE `{name}` {options} AS {sql}").result()
    return name


def about(table: str, statement: str) -> str:
    """Return a statement with a table's name in the place of `$t`."""
    return statement.replace("$t", f"`{table}`")


def use_a_job_id_twice(client: bigquery.Client) -> None:
    job_id = f"twice-{uuid.uuid4().hex}"
    run(client, "SELECT 1", job_id=job_id).result()
    run(client, "SELECT 2", job_id=job_id)


def count_bytes(client: bigquery.Client) -> int:
    return run(client, about(table_of(client), "SELECT n FROM $t")).total_bytes_processed


def name_what_is_read(client: bigquery.Client) -> list[list[str]]:
    name = table_of(client)
    sql = about(name, "WITH odd AS (SELECT n FROM $t WHERE MOD(n, 2) = 1) SELECT n FROM odd JOIN $t USING (n)")
    jobs = [run(client, sql, job_config=bigquery.QueryJobConfig(dry_run=dry)) for dry in (True, False)]
    return [["the table" if str(table) == name else str(table) for table in job.referenced_tables] for job in jobs]


def read_by_a_wildcard(client: bigquery.Client) -> object:
    name = table_of(client, "SELECT 9 AS n, 'the prefix alone' AS t")
    run(client, about(f"{name}_1", "CREATE TABLE $t AS SELECT 'a' AS t, 1 AS n")).result()
    run(client, about(f"{name}_2", "CREATE TABLE $t AS SELECT 2 AS n, 'b' AS t")).result()
    return rows_of(client, about(f"{name}*", "SELECT * FROM $t WHERE _TABLE_SUFFIX = '_1' OR n = 2 ORDER BY n"))


def assign_a_field(client: bigquery.Client) -> object:
    name = table_of(client, "SELECT STRUCT(1 AS x, 'a' AS y) AS st")
    run(client, about(name, "UPDATE $t SET st.x = 2 WHERE TRUE")).result()
    return rows_of(client, about(name, "SELECT st FROM $t"))


def drop_the_last_policy(client: bigquery.Client) -> None:
    name = table_of(client)
    run(client, about(name, "CREATE ROW ACCESS POLICY p ON $t GRANT TO ('allUsers') FILTER USING (n > 1)")).result()
    run(client, about(name, "DROP ROW ACCESS POLICY p ON $t")).result(retry=None)


def try_a_wrong_column(client: bigquery.Client) -> None:
    name = table_of(client)
    dry = bigquery.QueryJobConfig(dry_run=True)
    run(client, about(name, "CREATE TABLE patched.copied AS SELECT missing FROM $t"), job_config=dry)


def read_expiration(client: bigquery.Client) -> int:
    options = "OPTIONS(expiration_timestamp = TIMESTAMP '2999-01-01 00:00:00+00')"
    expires = client.get_table(table_of(client, options=options)).expires
    return expires.year if expires else 0


def fail_at_once(client: bigquery.Client) -> None:
    client.query_and_wait(about(table_of(client), "SELECT missing FROM $t"), retry=None, job_retry=None)


def count_updates(client: bigquery.Client) -> int | None:
    job = run(client, about(table_of(client), "UPDATE $t SET n = 0 WHERE n > 1"))
    job.result()
    return job.dml_stats and job.dml_stats.updated_row_count


def write_a_destination(client: bigquery.Client) -> list[dict[str, object]]:
    name = table_of(client)
    run(client, "SELECT 7 AS n", job_config=bigquery.QueryJobConfig(destination=f"{name}_written")).result()
    return rows_of(client, about(f"{name}_written", "SELECT n FROM $t"))


def list_an_anonymous_table(client: bigquery.Client) -> list[dict[str, object]]:
    job = run(client, "SELECT 7 AS n", job_id=f"named-{uuid.uuid4().hex}")
    job.result()
    return [dict(row) for row in client.list_rows(job.destination, selected_fields=[NUMBER], retry=None)]


def type_of_a_result(client: bigquery.Client) -> str:
    return run(client, "SELECT [JSON '1'] AS j").result().schema[0].field_type


def type_of_a_created_column(client: bigquery.Client) -> str:
    return client.get_table(table_of(client, "SELECT JSON '1' AS j")).schema[0].field_type


def upload_rows(client: bigquery.Client) -> int:
    target = f"{table_of(client)}_uploaded"
    config = bigquery.LoadJobConfig(schema=[NUMBER])
    return client.load_table_from_json([{"n": 1}], target, job_config=config).result(retry=None).output_rows


def upload_a_file(client: bigquery.Client) -> int:
    """Send a file without a header, of which each row counts."""
    config = bigquery.LoadJobConfig(schema=[NUMBER], source_format="CSV")
    target = f"{table_of(client)}_loaded"
    return client.load_table_from_file(io.BytesIO(b"1\n2\n"), target, job_config=config).result(retry=None).output_rows


def name_a_parameter_in_a_comment(client: bigquery.Client) -> list[dict[str, object]]:
    config = bigquery.QueryJobConfig(query_parameters=[bigquery.ScalarQueryParameter("a", "INT64", 7)])
    return rows_of(client, "SELECT @a AS n, @`A` AS quoted, '@`a`' AS text -- @a, @`a`\n", job_config=config)


def send_what_is_no_text(client: bigquery.Client) -> None:
    body = {"configuration": {"query": {"query": ["not", "text"], "useLegacySql": False}}}
    client._connection.api_request(method="POST", path=f"/projects/{client.project}/jobs", data=body)


def list_what_is_not_there(client: bigquery.Client) -> list[object]:
    return list(client.list_datasets(project="nobody", retry=None))


def count_rows(client: bigquery.Client) -> int:
    name = table_of(client)
    client.insert_rows_json(name, [{"n": 4}], retry=None)
    run(client, about(name, "INSERT $t (n) SELECT 5")).result()
    return client.get_table(name).num_rows


def insert_a_strange_field(client: bigquery.Client) -> list[str]:
    answers = client.insert_rows_json(table_of(client), [{"strange": 1}], retry=None)
    return [error["reason"] for answer in answers for error in answer["errors"]]


def create_without_a_name(client: bigquery.Client) -> None:
    table_of(client, "SELECT 1")


def name_columns_by_a_star(client: bigquery.Client) -> list[str]:
    name = table_of(client, "SELECT 1 AS id, STRUCT(2 AS b) AS s")
    return sorted(rows_of(client, about(name, "SELECT *, FARM_FINGERPRINT('a') AS f FROM $t"))[0])


def write_a_null_in_an_array(client: bigquery.Client) -> None:
    rows_of(client, about(table_of(client), "CREATE OR REPLACE TABLE $t AS SELECT [1, NULL] AS a"))


def aggregate_as_another_database(client: bigquery.Client) -> None:
    rows_of(client, "SELECT LISTAGG(x, ',') FROM UNNEST(['a']) AS x")


def name_with_a_space(client: bigquery.Client) -> list[dict[str, object]]:
    name = f"{table_of(client)} größer"
    run(client, f"CREATE OR REPLACE TABLE `{name}` AS SELECT 1 AS n").result(retry=None)
    assert client.get_table(name).num_rows == 1
    return rows_of(client, f"SELECT n FROM `{name}`")


def compare_with_another_type(client: bigquery.Client) -> None:
    rows_of(client, about(table_of(client), "SELECT n FROM $t WHERE n = '1'"))


def set_two_variables(client: bigquery.Client) -> list[dict[str, object]]:
    return rows_of(client, "DECLARE a, b INT64; SET (a, b) = (SELECT AS STRUCT 1 AS x, 2 AS y); SELECT a, b;")


def create_in_no_dataset(client: bigquery.Client) -> None:
    run(client, "CREATE OR REPLACE TABLE in_no_dataset AS SELECT 1 AS n").result(retry=None)


def keep_capitals(client: bigquery.Client) -> list[str]:
    name = table_of(client, "SELECT 1 AS TVnews, 2 AS other")
    return list(rows_of(client, about(name, "SELECT *, FARM_FINGERPRINT('a') AS Print FROM $t"))[0])


def cast_to_numeric(client: bigquery.Client) -> decimal.Decimal:
    return rows_of(client, "SELECT CAST('0.123456789' AS NUMERIC) AS n")[0]["n"]


def fingerprint_of_a_long_text(client: bigquery.Client) -> int:
    return rows_of(client, "SELECT FARM_FINGERPRINT(REPEAT('a', 100)) AS n")[0]["n"]


def read_labels_again(client: bigquery.Client) -> dict[str, str]:
    job = run(client, "SELECT 1", job_config=bigquery.QueryJobConfig(labels={"team": "growth"}))
    return client.get_job(job.job_id, location=job.location, retry=None).labels


def count_pages(client: bigquery.Client) -> int:
    dataset = table_of(client).split(".")[-2]
    table_of(client)
    listed = client.list_tables(dataset, page_size=1, retry=None)
    return 2 if len(list(listed)) > 1 else 1


def train_nothing(client: bigquery.Client) -> None:
    name = table_of(client)
    rows_of(
        client, about(f"{name}_model", f"CREATE MODEL $t OPTIONS(model_type='linear_reg') AS SELECT n FROM `{name}`")
    )


def words_of_a_null(client: bigquery.Client) -> bool:
    name = f"{table_of(client)}_required"
    rows_of(client, about(name, "CREATE TABLE $t (a INT64 NOT NULL)"))
    try:
        rows_of(client, about(name, "INSERT INTO $t (a) VALUES (NULL)"))
    except exceptions.BadRequest as error:
        return "Required field a cannot be null" in str(error)
    return False


def change_rows(client: bigquery.Client) -> list[bool]:
    name, moved = table_of(client), []
    for change in ("INSERT $t (n) SELECT 4", "UPDATE $t SET n = 0 WHERE n = 1", "DELETE $t WHERE n = 2"):
        before = client.get_table(name).modified
        run(client, about(name, change)).result()
        moved.append(client.get_table(name).modified > before)
    before = client.get_table(name).modified
    run(client, about(name, "SELECT n FROM $t")).result()
    return [*moved, client.get_table(name).modified > before]


def delete_a_view(client: bigquery.Client) -> list[object]:
    """A view of a view: what a query of it reads; then it is deleted, and what it read is not."""
    name = table_of(client)
    first, second = f"{name}_first", f"{name}_second"
    run(client, f"CREATE VIEW `{first}` AS SELECT n FROM `{name}`").result()
    run(client, f"CREATE VIEW `{second}` AS SELECT n FROM `{first}`").result()
    read = run(client, f"SELECT n FROM `{second}`", job_config=bigquery.QueryJobConfig(dry_run=True)).referenced_tables
    client.delete_table(second, retry=None)
    dataset, _, stem = name.rpartition(".")
    left = {table.table_id.removeprefix(stem) for table in client.list_tables(dataset)}
    return [len(read), sorted(left & {"", "_first", "_second"})]


def bytes_of_a_parameter(client: bigquery.Client) -> bytes:
    given = bigquery.ScalarQueryParameter("b", "BYTES", b"\xffa")
    return rows_of(client, "SELECT @b AS b", job_config=bigquery.QueryJobConfig(query_parameters=[given]))[0]["b"]


def delete_a_dataset_in_use(client: bigquery.Client) -> None:
    client.delete_dataset(table_of(client).split(".")[-2], retry=None)


def alter_a_table(client: bigquery.Client) -> list[str]:
    name = f"{table_of(client)}_altered"
    rows_of(client, about(name, "CREATE TABLE $t (a INT64, b INT64)"))
    for change in ("ADD COLUMN c STRING", "DROP COLUMN b", "RENAME COLUMN a TO d"):
        rows_of(client, about(name, f"ALTER TABLE $t {change}"))
    return [field.name for field in client.get_table(name, retry=None).schema]


def take_of_a_json_literal(client: bigquery.Client) -> object:
    return rows_of(client, "SELECT JSON '[1, 2]'[0] AS v")[0]["v"]


def cast_to_digits(client: bigquery.Client) -> object:
    name = f"{table_of(client)}_digits"
    rows_of(client, about(name, "CREATE OR REPLACE VIEW $t AS SELECT CAST(1.256 AS NUMERIC(5, 2)) AS v"))
    return rows_of(client, about(name, "SELECT v FROM $t"))[0]["v"]


def rename_a_table(client: bigquery.Client) -> list[str]:
    name, new = (f"{table_of(client)}_{word}" for word in ("named", "renamed"))
    for table in (name, new):
        client.delete_table(table, not_found_ok=True, retry=None)
    rows_of(client, about(name, "CREATE TABLE $t (a INT64)"))
    rows_of(client, about(name, f"ALTER TABLE $t RENAME TO {new.rpartition('.')[2]}"))
    return [field.name for field in client.get_table(new, retry=None).schema]


def set_options(client: bigquery.Client) -> list[object]:
    name = f"{table_of(client)}_described"
    rows_of(client, about(name, "CREATE TABLE $t (a INT64)"))
    rows_of(client, about(name, "ALTER TABLE $t SET OPTIONS (description = 'Rows.', labels = [('team', 'growth')])"))
    table = client.get_table(name, retry=None)
    return [table.description, table.labels]


def round_in_a_view(client: bigquery.Client) -> object:
    name = table_of(client)
    run(client, about(f"{name}_rounded", "CREATE VIEW $t AS SELECT CAST(2.5 AS INT64) AS v")).result()
    return rows_of(client, about(f"{name}_rounded", "SELECT v FROM $t"))


def name_a_field(client: bigquery.Client) -> object:
    name = table_of(client, "SELECT [STRUCT(1 AS x)] AS parts")
    return rows_of(client, about(name, "SELECT x FROM $t, UNNEST(parts)"))


def declare_columns(client: bigquery.Client) -> list[str]:
    name = table_of(client)
    run(client, about(f"{name}_declared", f"CREATE TABLE $t (m INT64 NOT NULL) AS SELECT * FROM `{name}`")).result()
    return [f"{field.name} {field.mode}" for field in client.get_table(f"{name}_declared", retry=None).schema]


def cast_a_struct(client: bigquery.Client) -> list[dict[str, object]]:
    return rows_of(client, "SELECT CAST(STRUCT(1 AS b, 2 AS a) AS STRUCT<a INT64, b INT64>).a")


def run_a_script_twice(client: bigquery.Client) -> list[int]:
    name = f"t{uuid.uuid4().hex}"
    script = f"CREATE TEMP TABLE {name} AS SELECT 7 AS n; SELECT n FROM {name}"
    return [rows_of(client, script)[0]["n"] for _ in range(2)]


def repeat_until(client: bigquery.Client) -> list[dict[str, object]]:
    return rows_of(client, "DECLARE x INT64 DEFAULT 0; REPEAT SET x = x + 1; UNTIL x > 1 END REPEAT; SELECT x")


def name_a_variable_like_a_column(client: bigquery.Client) -> list[dict[str, object]]:
    return rows_of(client, about(table_of(client), "DECLARE n INT64 DEFAULT 100; SELECT n FROM $t WHERE n = 2"))


def name_a_parameter_like_a_column(client: bigquery.Client) -> list[dict[str, object]]:
    name = table_of(client)
    run(
        client, about(name, "CREATE TABLE FUNCTION patched.f$s(n INT64) AS (SELECT n FROM $t)".replace("$s", name[-8:]))
    )
    return rows_of(client, f"SELECT n FROM patched.f{name[-8:]}(5)")


def write_a_price(client: bigquery.Client) -> list[dict[str, object]]:
    name = table_of(client)
    run(client, about(f"{name}_prices", "CREATE TABLE $t (n NUMERIC(5, 2))")).result()
    run(client, about(f"{name}_prices", "INSERT INTO $t (n) VALUES (1.005)")).result()
    return rows_of(client, about(f"{name}_prices", "SELECT n FROM $t"))


def give_a_name(client: bigquery.Client) -> list[dict[str, object]]:
    return rows_of(client, "EXECUTE IMMEDIATE 'SELECT @a + @a AS n' USING 1 AS a")


def declare_a_date(client: bigquery.Client) -> list[dict[str, object]]:
    return rows_of(client, "DECLARE day DATE DEFAULT '2024-01-02'; SELECT EXTRACT(YEAR FROM Day) AS y")


def list_the_jobs_of_a_script(client: bigquery.Client) -> int:
    job = run(client, "SELECT 1; SELECT 2")
    job.result()
    return len(list(client.list_jobs(parent_job=job.job_id)))


def give_a_routine_an_argument(client: bigquery.Client) -> bool:
    dataset = client.create_dataset("patched", exists_ok=True)
    whole = bigquery.StandardSqlDataType(bigquery.StandardSqlTypeNames.INT64)
    argument = bigquery.RoutineArgument(name="x", data_type=whole)
    routine = bigquery.Routine(
        dataset.routine(f"r{uuid.uuid4().hex}"),
        type_="SCALAR_FUNCTION",
        language="SQL",
        body="x",
        arguments=[argument],
        return_type=whole,
    )
    return client.create_routine(routine).arguments == [argument]


def count_columns(client: bigquery.Client) -> list[dict[str, object]]:
    dataset, _, name = table_of(client).rpartition(".")
    view = f"`{dataset}`.INFORMATION_SCHEMA.COLUMN_FIELD_PATHS"
    return rows_of(client, f"SELECT COUNT(*) AS n FROM {view} AS c WHERE c.table_name = '{name}'")


def make_a_materialized_view(client: bigquery.Client) -> str:
    name = table_of(client)
    options = "OPTIONS (enable_refresh = true)"
    run(client, about(f"{name}_view", f"CREATE MATERIALIZED VIEW $t {options} AS SELECT n FROM `{name}`")).result()
    return client.get_table(f"{name}_view", retry=None).table_type


def update_from_two_rows(client: bigquery.Client) -> None:
    name = table_of(client)
    run(client, about(name, "UPDATE $t t SET n = x FROM UNNEST([7, 8]) x WHERE n = 1")).result()


def type_of_a_date_in_javascript(client: bigquery.Client) -> object:
    """As a function in JavaScript has it."""
    made = "CREATE TEMP FUNCTION f(x DATE) RETURNS STRING LANGUAGE js AS 'return typeof x'"
    return rows_of(client, f"{made}; SELECT f(DATE '2020-01-02') AS kind")[0]["kind"]


# Patch: what is asked, and what BigQuery answers.
FAULTS: dict[str, tuple[Callable[[bigquery.Client], object], object]] = {
    "altered_options": (set_options, ["Rows.", {"team": "growth"}]),
    "altered_tables": (alter_a_table, ["d", "c"]),
    "anonymous_tables": (list_an_anonymous_table, [{"n": 7}]),
    "assigned_arrays": (write_a_null_in_an_array, "BadRequest"),
    "assigned_fields": (assign_a_field, [{"st": {"x": 2, "y": "a"}}]),
    "assigned_numbers": (write_a_price, [{"n": Decimal("1.01")}]),
    "assigned_structs": (cast_a_struct, [{"a": 1}]),
    "cast_digits": (cast_to_digits, Decimal("1.26")),
    "changed_tables": (change_rows, [True, True, True, False]),
    "child_jobs": (list_the_jobs_of_a_script, 2),
    "column_case": (keep_capitals, ["TVnews", "other", "Print"]),
    "created_types": (type_of_a_created_column, "JSON"),
    "declared_columns": (declare_columns, ["m REQUIRED"]),
    "destinations": (write_a_destination, [{"n": 7}]),
    "dml_counts": (count_updates, 2),
    "dynamic_statements": (give_a_name, [{"n": 2}]),
    "dry_runs": (try_a_wrong_column, "BadRequest"),
    "error_words": (words_of_a_null, True),
    "expirations": (read_expiration, 2999),
    "failed_queries": (fail_at_once, "BadRequest"),
    "function_columns": (name_a_parameter_like_a_column, "MethodNotImplemented"),
    "fingerprints": (fingerprint_of_a_long_text, -5292745882565470998),
    "information_schema": (count_columns, [{"n": 1}]),
    "inserted_rows": (insert_a_strange_field, ["invalid"]),
    "internal_errors": (send_what_is_no_text, "MethodNotImplemented"),
    "javascript_functions": (type_of_a_date_in_javascript, "object"),
    "job_ids": (use_a_job_id_twice, "Conflict"),
    "json_literals": (take_of_a_json_literal, 1),
    "kept_fields": (read_labels_again, {"team": "growth"}),
    "language": (aggregate_as_another_database, "BadRequest"),
    "last_policies": (drop_the_last_policy, "BadRequest"),
    "loads": (upload_a_file, 2),
    "matched_once": (update_from_two_rows, "BadRequest"),
    "materialized_views": (make_a_materialized_view, "MATERIALIZED_VIEW"),
    "media_types": (upload_rows, 1),
    "numerics": (cast_to_numeric, decimal.Decimal("0.123456789")),
    "pages": (count_pages, 2),
    "parameter_names": (name_a_parameter_in_a_comment, [{"n": 7, "quoted": 7, "text": "@`a`"}]),
    "parameter_values": (bytes_of_a_parameter, b"\xffa"),
    "query_bytes": (count_bytes, 24),
    "referenced_tables": (name_what_is_read, [["the table"], ["the table"]]),
    "refused_statements": (train_nothing, "MethodNotImplemented"),
    "renamed_tables": (rename_a_table, ["a"]),
    "result_types": (type_of_a_result, "JSON"),
    "routine_arguments": (give_a_routine_an_argument, True),
    "script_columns": (name_a_variable_like_a_column, [{"n": 2}]),
    "script_statements": (repeat_until, [{"x": 2}]),
    "script_targets": (set_two_variables, [{"a": 1, "b": 2}]),
    "script_variables": (declare_a_date, [{"y": 2024}]),
    "signatures": (compare_with_another_type, "BadRequest"),
    "star_columns": (name_columns_by_a_star, ["f", "id", "s"]),
    "stored_sql": (round_in_a_view, [{"v": 3}]),
    "table_names": (name_with_a_space, [{"n": 1}]),
    "table_resources": (count_rows, 5),
    "temporary_tables": (run_a_script_twice, [7, 7]),
    "unknown_projects": (list_what_is_not_there, "Forbidden"),
    "unnamed_columns": (create_without_a_name, "BadRequest"),
    "unnested_fields": (name_a_field, [{"x": 1}]),
    "unqualified_tables": (create_in_no_dataset, "BadRequest"),
    "used_datasets": (delete_a_dataset_in_use, "BadRequest"),
    "views": (delete_a_view, [3, ["", "_first"]]),
    "wildcards": (read_by_a_wildcard, [{"n": 1, "t": "a"}, {"n": 2, "t": "b"}]),
}
TWO_RESULTS = """
import asyncio, sys, threading
from bqemulator import config
from bqemulator.storage.engine import DuckDBEngine
from localcloud.bigquery.patches import shared_connection

def ask(engine):
    first = engine.execute("SELECT 1")
    engine.execute("SELECT 2")
    print(first.fetchone()[0])

async def main():
    engine = DuckDBEngine(config.Settings(persistence_mode=config.PersistenceMode.EPHEMERAL))
    await engine.start()
    thread = threading.Thread(target=ask, args=(engine,))
    thread.start()
    thread.join()
    await engine.stop()

if sys.argv[1] == "patched":
    shared_connection.apply()
asyncio.run(main())
"""


def test_each_patch_has_its_fault() -> None:
    """And no fault is tried that has no patch any more; loads are our own (`files`) for the faults of theirs."""
    files = {path.stem for path in Path(PACKAGE / "patches").glob("*.py")} - {"__init__"}
    assert set(FAULTS) - {"loads"} | {"shared_connection"} == files


@pytest.mark.parametrize("patch", FAULTS)
def test_patched_it_is_right(local_cloud, patch: str) -> None:
    """As BigQuery."""
    ask, expected = FAULTS[patch]
    assert what_comes(lambda: ask(bigquery.Client(project=local_cloud.project))) == expected


@pytest.mark.parametrize("patch", FAULTS)
def test_unpatched_it_is_wrong(unpatched: bigquery.Client, patch: str) -> None:
    """When this fails bqemulator has become right: remove the patch, and its row here."""
    ask, expected = FAULTS[patch]
    assert what_comes(lambda: ask(unpatched)) != expected


@pytest.mark.parametrize(("mode", "expected"), [("patched", "1"), ("unpatched", "2")])
def test_a_result_outlives_the_next_question(mode: str, expected: str) -> None:
    """When `unpatched` fails bqemulator has become right: remove `shared_connection`."""
    environ = {**os.environ, "PYTHONPATH": str(PACKAGE.parents[1])}
    command = [LOCALCLOUD_PYTHON, "-c", TWO_RESULTS, mode]
    done = subprocess.run(command, env=environ, text=True, capture_output=True, check=False, timeout=60)
    assert done.stdout.splitlines()[-1:] == [expected], done.stderr
