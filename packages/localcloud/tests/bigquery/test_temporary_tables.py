"""Temporary tables are there for their script or their session, and for nobody else."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a table `temporary.a` of one row."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("temporary", exists_ok=True)
    made.query_and_wait("CREATE OR REPLACE TABLE temporary.a AS SELECT 'stored' AS n")
    return made


def run(client: bigquery.Client, sql: str, session: str | None = None, **config: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a statement, one of a session where there is one."""
    if session:
        config["connection_properties"] = [bigquery.ConnectionProperty("session_id", session)]
    job = client.query(sql, job_config=bigquery.QueryJobConfig(**config), retry=None, job_retry=None)
    return [tuple(row.values()) for row in job.result(retry=None, job_retry=None)]


def new_session(client: bigquery.Client, sql: str) -> str:
    job = client.query(sql, job_config=bigquery.QueryJobConfig(create_session=True))
    job.result()
    return str(job.session_info.session_id)


@pytest.mark.parametrize(
    ("script", "rows"),
    [
        ("CREATE TEMP TABLE a AS SELECT 1 AS n; SELECT * FROM a", [(1,)]),
        ("CREATE TEMP TABLE a AS SELECT 2 AS n; SELECT a.n, b.n FROM a JOIN a AS b ON a.n = b.n", [(2, 2)]),
        (("CREATE TEMP TABLE a (n INT64); INSERT a VALUES (3); INSERT INTO a (n) SELECT n + 1 FROM a;"
         " UPDATE a SET n = a.n + 10 WHERE a.n = 4; DELETE FROM a WHERE a.n = 3; SELECT n FROM a"), [(14,)]),
        (("CREATE TEMP TABLE a AS SELECT 1 AS n; MERGE a USING (SELECT 1 AS n, 5 AS m) AS b ON a.n = b.n"
         " WHEN MATCHED THEN UPDATE SET n = b.m; SELECT n FROM a"), [(5,)]),
        ("CREATE TEMP TABLE a AS SELECT 1 AS n; SELECT a.n, t.n FROM a, temporary.a AS t", [(1, "stored")]),
        ("CREATE TEMP TABLE a AS SELECT 1 AS n; WITH a AS (SELECT 6 AS n) SELECT n FROM a", [(6,)]),
        (("CREATE TEMP TABLE a AS SELECT 1 AS n; CREATE OR REPLACE TEMP TABLE a AS SELECT n + 1 AS n FROM a;"
         " SELECT n FROM a"), [(2,)]),
        (("CREATE TEMP TABLE a AS SELECT 1 AS n; DROP TABLE a; CREATE TEMPORARY TABLE a AS SELECT 7 AS n;"
         " SELECT n FROM a"), [(7,)]),
        ("CREATE TEMP TABLE a AS SELECT 1 AS n; TRUNCATE TABLE a; SELECT COUNT(*) FROM a", [(0,)]),
        (("DECLARE s INT64 DEFAULT 0; CREATE TEMP TABLE a AS SELECT n FROM UNNEST([1, 2, 3]) AS n;"
         " SET s = (SELECT SUM(n) FROM a); IF EXISTS (SELECT * FROM a WHERE n = 3) THEN SET s = s * 10; END IF;"
         " FOR r IN (SELECT n FROM a) DO SET s = s + r.n; END FOR; SELECT s"), [(66,)]),
        ("BEGIN CREATE TEMP TABLE a AS SELECT 8 AS n; EXECUTE IMMEDIATE 'SELECT n FROM a'; END", [(8,)]),
        (("CREATE OR REPLACE TABLE temporary.made AS SELECT 1 AS n; CREATE TEMP TABLE a AS SELECT n + 1 AS n"
         " FROM temporary.made; INSERT temporary.made SELECT n FROM a; SELECT SUM(n) FROM temporary.made"), [(3,)]),
    ],
)  # fmt: skip
def test_a_script_has_its_own_and_may_run_again(client, script, rows):
    assert [run(client, script) for _ in range(2)] == [rows, rows]
    with pytest.raises(exceptions.GoogleAPICallError):
        run(client, "SELECT * FROM a")


@pytest.mark.parametrize(("end", "rows"), [("ROLLBACK", [(1,)]), ("COMMIT", [(1,), (2,)])])
def test_a_transaction_has_them_too(client, end, rows):
    script = "CREATE TEMP TABLE a AS SELECT 1 AS n; BEGIN TRANSACTION; INSERT a (n) VALUES (2); {} TRANSACTION;"
    assert run(client, f"{script.format(end)} SELECT n FROM a ORDER BY n") == rows


def test_a_script_that_fails_leaves_none(client):
    script = "CREATE TEMP TABLE a AS SELECT 1 AS n; SELECT ERROR('broken'); SELECT 2"
    for _ in range(2):
        with pytest.raises(exceptions.BadRequest, match="broken"):
            run(client, script)


def test_scripts_at_the_same_time_do_not_share_them(client):
    found: dict[int, list[tuple[Any, ...]]] = {}

    def ask(number: int) -> None:
        sql = f"CREATE TEMP TABLE a AS SELECT {number} AS n; INSERT a SELECT n FROM a; SELECT SUM(n) FROM a"
        found[number] = run(client, sql)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [(2 * number,)] for number in range(4)}


@pytest.mark.parametrize("create", ["CREATE TEMP TABLE b AS SELECT {} AS n", "CREATE TEMP TABLE b (n INT64)"])
def test_a_session_has_its_own(client, create):
    first, second = (new_session(client, create.format(number)) for number in (1, 2))
    for number, session in enumerate((first, second), 1):
        run(client, f"INSERT b VALUES ({number * 10})", session)
        assert max(run(client, "SELECT n FROM b", session)) == (number * 10,)
        assert run(client, "SELECT MAX(b.n) FROM b", session, dry_run=False) == [(number * 10,)]
    with pytest.raises(exceptions.GoogleAPICallError):
        run(client, "SELECT * FROM b")
    run(client, "DROP TABLE b", first)
    with pytest.raises(exceptions.GoogleAPICallError):
        run(client, "SELECT * FROM b", first)
    assert max(run(client, "SELECT n FROM b", second)) == (20,)


def test_a_dry_run_in_a_session_knows_its_tables(client):
    session = new_session(client, "CREATE TEMP TABLE dry AS SELECT 1 AS n")
    config = bigquery.QueryJobConfig(
        dry_run=True, connection_properties=[bigquery.ConnectionProperty("session_id", session)]
    )
    assert [field.name for field in client.query("SELECT n FROM dry", job_config=config).schema] == ["n"]


def test_a_default_dataset_has_no_temporary_tables(client):
    config = {"default_dataset": f"{client.project}.temporary"}
    assert run(client, "CREATE TEMP TABLE b AS SELECT n FROM a; SELECT a.n, b.n FROM a, b", **config) == [
        ("stored", "stored")
    ]
    assert [table.table_id for table in client.list_tables("temporary") if table.table_id == "b"] == []


def test_a_session_with_a_default_dataset_has_its_own(client):
    """Of `jobs.insert` and of `jobs.query`."""
    session = new_session(client, "CREATE TEMP TABLE d AS SELECT 1 AS n")
    config = bigquery.QueryJobConfig(
        default_dataset=f"{client.project}.temporary",
        connection_properties=[bigquery.ConnectionProperty("session_id", session)],
    )
    sql = "SELECT d.n, a.n FROM d, a"
    assert [tuple(row) for row in client.query(sql, job_config=config).result()] == [(1, "stored")]
    assert [tuple(row) for row in client.query_and_wait(sql, job_config=config)] == [(1, "stored")]


@pytest.mark.parametrize(
    "statement", ["CREATE TEMP TABLE c AS SELECT 1 AS n", "CREATE OR REPLACE TEMP TABLE c (n INT64)"]
)
def test_outside_of_scripts_and_sessions_there_are_none(client, statement):
    with pytest.raises(exceptions.BadRequest, match="requires a script or session"):
        run(client, statement)
