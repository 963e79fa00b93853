"""Query, load and streaming jobs through the real BigQuery client."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid

import pytest
from google.api_core import exceptions
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a dataset `jobs` and a table `jobs.people` of three rows."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("jobs", exists_ok=True)
    made.query_and_wait(
        "CREATE OR REPLACE TABLE jobs.people AS SELECT 'Ada' AS name, 36 AS age, 1.5 AS height"
        " UNION ALL SELECT 'Grace', 85, 1.6 UNION ALL SELECT 'Émilie', NULL, 1.7"
    )
    return made


def run(client, sql, **config):
    return client.query(sql, job_config=bigquery.QueryJobConfig(**config), job_retry=None)


def test_repeated_job_id_is_409(client):
    """A job id is used once; the first job and its rows are found under it."""
    job_id = f"once-{uuid.uuid4().hex}"
    client.query("SELECT 1 AS n", job_id=job_id, job_retry=None).result()
    with pytest.raises(exceptions.Conflict, match=f"Already Exists: Job local-project:US.{job_id}"):
        client.query("SELECT 2 AS n", job_id=job_id, job_retry=None)
    found = client.get_job(job_id)
    assert [row.n for row in found.result()] == [1]


def test_one_of_many_wins_a_job_id(client, local_cloud):
    """At the same time, too."""
    job_id = f"race-{uuid.uuid4().hex}"
    body = {
        "jobReference": {"projectId": local_cloud.project, "jobId": job_id},
        "configuration": {"query": {"query": "SELECT 1", "useLegacySql": False}},
    }
    url = f"https://bigquery.googleapis.com/bigquery/v2/projects/{local_cloud.project}/jobs"
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda: codes.append(local_cloud.http.post(url, json=body, timeout=30).status_code))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [200, 409, 409, 409, 409, 409]


def test_dry_run_counts_the_bytes_of_the_columns_read(client):
    """INT64 takes 8 bytes a value, STRING 2 more than its UTF-8 length; nothing runs."""
    ages = run(client, "SELECT age FROM jobs.people", dry_run=True)
    names = run(client, "SELECT name FROM jobs.people", dry_run=True)
    rows = run(client, "SELECT TO_JSON_STRING(p) FROM jobs.people p", dry_run=True)
    assert ages.total_bytes_processed == 2 * 8
    assert names.total_bytes_processed == 3 * 2 + len("AdaGraceÉmilie".encode())
    assert rows.total_bytes_processed == ages.total_bytes_processed + names.total_bytes_processed + 3 * 8
    assert run(client, "SELECT COUNT(*) FROM jobs.people", dry_run=True).total_bytes_processed == 0
    assert [field.name for field in ages.schema] == ["age"]


def test_dry_run_stores_no_job_and_creates_nothing(client):
    """The job id is free afterwards, the table is not there."""
    job_id = f"dry-{uuid.uuid4().hex}"
    sql = "CREATE TABLE jobs.not_made AS SELECT * FROM jobs.people"
    config = bigquery.QueryJobConfig(dry_run=True)
    job = client.query(sql, job_config=config, job_id=job_id, job_retry=None)
    assert job.total_bytes_processed > 0
    assert job.statement_type == "CREATE_TABLE_AS_SELECT"
    with pytest.raises(exceptions.NotFound):
        client.get_table("jobs.not_made")
    client.query("SELECT 1", job_id=job_id, job_retry=None).result()


def test_a_job_gives_its_parameters_back_as_texts(client):
    """As the service's documents have them: clients read a number from its digits."""
    job = run(
        client,
        "SELECT @x + @n AS v, @b AS b",
        query_parameters=[
            bigquery.ScalarQueryParameter("x", "FLOAT64", 1.5),
            bigquery.ScalarQueryParameter("n", "INT64", 2),
            bigquery.ScalarQueryParameter("b", "BOOL", True),
        ],
    )
    assert [tuple(row) for row in job.result()] == [(3.5, True)]
    stored = client.get_job(job.job_id)._properties["configuration"]["query"]["queryParameters"]
    assert [each["parameterValue"]["value"] for each in stored] == ["1.5", "2", "true"]


def test_a_table_of_more_columns_than_a_sum_may_have_terms(client):
    """DuckDB's expressions are at most 1,000 deep; a table has up to 10,000 columns."""
    columns = ", ".join(f"{number} * n AS c{number}" for number in range(1_500))
    run(client, f"CREATE OR REPLACE TABLE jobs.wide AS SELECT n, {columns} FROM UNNEST([1, 2]) AS n").result()
    rows = list(run(client, "SELECT * FROM jobs.wide ORDER BY n").result())
    assert [(len(row), row["c1499"]) for row in rows] == [(1_501, 1_499), (1_501, 2_998)]


@pytest.mark.parametrize(
    "sql", ["SELECT nope FROM jobs.people", "CREATE TABLE jobs.x AS SELECT nope FROM jobs.people", "SELEC 1"]
)
def test_dry_run_finds_errors(client, sql):
    """A statement that cannot run is refused before it does, also inside CREATE TABLE."""
    with pytest.raises(exceptions.BadRequest):
        run(client, sql, dry_run=True)


def test_jobs_say_what_they_processed(client):
    """The same number as the dry run's, with at least 10 MiB billed."""
    job = run(client, "SELECT age FROM jobs.people")
    job.result()
    assert job.total_bytes_processed == 16
    assert job.total_bytes_billed == 10 * 1024 * 1024


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("SELECT 1 +", exceptions.BadRequest, "yntax"),
        ("SELECT nope FROM jobs.people", exceptions.BadRequest, "nope"),
        ("SELECT NOPE(1)", exceptions.BadRequest, "Function not found"),
        ("SELECT ERROR('told you')", exceptions.BadRequest, "told you"),
        ("SELECT * FROM jobs.nobody", exceptions.NotFound, "jobs.nobody"),
        ("SELECT * FROM nowhere.nobody", exceptions.NotFound, "nowhere"),
        ("SELECT * FROM `other-project.jobs.people`", exceptions.NotFound, "other-project"),
    ],
)
def test_errors_are_told(client, sql, error, words):
    """With the status and the words of what is wrong, at once."""
    with pytest.raises(error, match=words):
        run(client, sql).result(timeout=30)


def test_unknown_project_is_refused(local_cloud):
    """Not made up."""
    other = bigquery.Client(project="other-project")
    with pytest.raises(exceptions.Forbidden, match="other-project"):
        other.query("SELECT 1", job_retry=None)


def test_faults_of_the_emulator_are_not_retried(client, local_cloud):
    """An internal fault is answered with 501 and its text, which no client repeats."""
    url = f"https://bigquery.googleapis.com/bigquery/v2/projects/{local_cloud.project}/queries/no-such-job"
    assert local_cloud.http.get(url, timeout=30).status_code == 404
    url = f"https://bigquery.googleapis.com/bigquery/v2/projects/{local_cloud.project}/jobs"
    answer = local_cloud.http.post(url, json={"configuration": {"query": {"query": ["not", "text"]}}}, timeout=30)
    assert answer.status_code in (400, 501)
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"query": "SELECT 1"}, 501),
        ({"query": "SELECT 1", "useLegacySql": True}, 501),
        ({"query": "#legacySQL\nSELECT 1", "useLegacySql": False}, 501),
        ({"query": "SELECT x FROM [local-project:d.t]"}, 501),
        ({"query": "SELECT 1", "useLegacySql": False}, 200),
        ({"query": " #standardsql\nSELECT 1"}, 200),
        ({"query": "#standardSQL\nSELECT 1", "useLegacySql": True}, 200),
    ],
    ids=["left out", "asked for", "by its prefix", "its names", "GoogleSQL", "GoogleSQL by its prefix", "prefix first"],
)
def test_legacy_sql_is_refused_by_name(local_cloud, query, status):
    """Of both methods; it is what a request asks for that does not say otherwise."""
    url = f"https://bigquery.googleapis.com/bigquery/v2/projects/{local_cloud.project}"
    answers = [
        local_cloud.http.post(f"{url}/queries", json=query, timeout=30),
        local_cloud.http.post(f"{url}/jobs", json={"configuration": {"query": query}}, timeout=30),
    ]
    assert [answer.status_code for answer in answers] == [status, status]
    if status == 501:
        assert all("Legacy SQL" in answer.json()["error"]["message"] for answer in answers)


def test_parameters_are_bound(client):
    """Of every type that the project uses."""
    at = dt.datetime(2013, 11, 20, 3, tzinfo=dt.UTC)
    parameters = [
        bigquery.ScalarQueryParameter("s", "STRING", "it's"),
        bigquery.ScalarQueryParameter("i", "INT64", 7),
        bigquery.ScalarQueryParameter("f", "FLOAT64", 0.5),
        bigquery.ScalarQueryParameter("b", "BOOL", True),
        bigquery.ScalarQueryParameter("t", "TIMESTAMP", at),
        bigquery.ScalarQueryParameter("d", "DATE", at.date()),
        bigquery.ScalarQueryParameter("n", "STRING", None),
        bigquery.ArrayQueryParameter("a", "STRING", ["x", "y"]),
    ]
    sql = "SELECT @s s, @i i, @f f, @b b, @t t, @d d, @n n, ARRAY_LENGTH(@a) a"
    (row,) = run(client, sql, query_parameters=parameters).result()
    assert dict(row) == {"s": "it's", "i": 7, "f": 0.5, "b": True, "t": at, "d": at.date(), "n": None, "a": 2}


@pytest.mark.parametrize(
    "sql",
    [
        "-- every row since @a: see @a\nSELECT @a AS x, '@a' AS y",
        "SELECT @a AS x, /* not @a,\nnot @a */ '@a' AS y # @a",
        "CREATE OR REPLACE TABLE jobs.commented AS -- @a\nSELECT @A AS x, '@a' AS y",
    ],
    ids=["line", "block", "create"],
)
def test_parameters_in_comments_and_strings_are_none(client, sql):
    """A statement may name its parameters in a comment and in a string; their names do not mind case."""
    parameters = [bigquery.ScalarQueryParameter("a", "INT64", 7)]
    assert run(client, sql, query_parameters=parameters, dry_run=True).total_bytes_processed == 0
    rows = run(client, sql, query_parameters=parameters).result()
    if sql.startswith("CREATE"):
        rows = client.query_and_wait("SELECT * FROM jobs.commented")
    assert [tuple(row) for row in rows] == [(7, "@a")]


def test_failed_query_and_wait_raises(client):
    """jobs.query answers with the error, too."""
    with pytest.raises(exceptions.BadRequest, match="nope"):
        client.query_and_wait("SELECT nope FROM jobs.people")
    with pytest.raises(exceptions.NotFound, match="nobody"):
        client.query_and_wait("SELECT * FROM jobs.nobody")


def test_streamed_rows(client):
    """insertAll: rows are there at once; unknown fields are refused row by row and nothing is written."""
    schema = [
        bigquery.SchemaField("endpoint", "STRING"),
        bigquery.SchemaField("logging_time", "TIMESTAMP"),
        bigquery.SchemaField("request_id", "NUMERIC"),
        bigquery.SchemaField("request_payload", "STRING", mode="REPEATED"),
    ]
    table = client.create_table(bigquery.Table(f"{client.project}.jobs.requests_{uuid.uuid4().hex[:8]}", schema))
    row = {"endpoint": "1", "logging_time": "2013-11-20T03:00:00Z", "request_id": "7", "request_payload": ['{"a": 1}']}
    assert client.insert_rows_json(table, [row, row]) == []
    errors = client.insert_rows_json(table, [row, {**row, "nope": 1}])
    assert [(each["index"], each["errors"][0]["reason"]) for each in errors] == [(0, "stopped"), (1, "invalid")]
    assert client.get_table(table).num_rows == 2
    sql = f"SELECT JSON_VALUE(p, '$.a') a, logging_time t FROM jobs.{table.table_id}, UNNEST(request_payload) p"
    rows = list(run(client, sql).result())
    assert [(each.a, each.t) for each in rows] == [("1", dt.datetime(2013, 11, 20, 3, tzinfo=dt.UTC))] * 2


@pytest.mark.parametrize("disposition", ["WRITE_TRUNCATE", "WRITE_APPEND", "WRITE_EMPTY"])
def test_load_creates_a_missing_table(client, disposition):
    """A load job makes its table, whatever it does with an existing one."""
    name = f"{client.project}.jobs.loaded_{disposition.lower()}"
    client.delete_table(name, not_found_ok=True)
    config = bigquery.LoadJobConfig(
        write_disposition=disposition,
        schema=[bigquery.SchemaField("a", "INTEGER"), bigquery.SchemaField("b", "STRING")],
    )
    job = client.load_table_from_json([{"a": 1, "b": "x"}, {"a": 2, "b": None}], name, job_config=config)
    job.result(timeout=30)
    assert (job.output_rows, client.get_table(name).num_rows) == (2, 2)


def test_tables_tell_rows_bytes_and_expiration(client):
    """As they are now, also for a table that a query made."""
    expires = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)
    parameters = [bigquery.ScalarQueryParameter("until", "TIMESTAMP", expires)]
    sql = "CREATE OR REPLACE TABLE jobs.until OPTIONS(expiration_timestamp = @until) AS SELECT * FROM jobs.people"
    run(client, sql, query_parameters=parameters).result()
    table = client.get_table("jobs.until")
    assert (table.num_rows, table.expires) == (3, expires)
    listed = {item.table_id: item.expires for item in client.list_tables("jobs")}
    assert listed["until"] == expires
    assert listed["people"] is None
    assert table.num_bytes == 16 + 3 * 2 + len("AdaGraceÉmilie".encode()) + 3 * 8


def test_expired_tables_are_dropped(client):
    """By themselves, soon after their time."""
    option = "OPTIONS(expiration_timestamp = TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 1 SECOND))"
    run(client, f"CREATE OR REPLACE TABLE jobs.brief {option} AS SELECT 1 AS n").result()
    assert client.get_table("jobs.brief").expires is not None
    deadline = time.monotonic() + 20
    while any(table.table_id == "brief" for table in client.list_tables("jobs")) and time.monotonic() < deadline:
        time.sleep(0.2)
    with pytest.raises(exceptions.NotFound):
        client.get_table("jobs.brief")


def test_conflicts_and_missing_resources(client):
    """409 for what is there, 404 for what is not."""
    with pytest.raises(exceptions.Conflict):
        client.create_dataset("jobs")
    with pytest.raises(exceptions.Conflict):
        client.create_table(bigquery.Table(f"{client.project}.jobs.people"))
    for call in (client.get_table, client.delete_table):
        with pytest.raises(exceptions.NotFound):
            call("jobs.nobody")
    with pytest.raises(exceptions.NotFound):
        client.get_dataset("nowhere")


def test_a_table_in_a_dataset_that_is_not_there_is_not_found(client):
    """As the service says it, so that a caller may make the dataset and try again."""
    with pytest.raises(exceptions.NotFound, match=r"Dataset \S+:not_there"):
        client.create_table(bigquery.Table(f"{client.project}.not_there.rows"), timeout=30)


def test_a_default_dataset_holds_for_both_ways_to_ask(client, local_cloud):
    """`jobs.query` as `jobs.insert`: names of tables alone are in it, to read and to make them."""
    config = bigquery.QueryJobConfig(default_dataset=f"{local_cloud.project}.jobs")
    name = f"made_{uuid.uuid4().hex}"
    client.query_and_wait(f"CREATE TABLE {name} AS SELECT name FROM people", job_config=config)
    assert client.get_table(f"jobs.{name}").num_rows == 3
    for ask in (client.query_and_wait, lambda sql, job_config: client.query(sql, job_config=job_config).result()):
        assert [row.n for row in ask(f"SELECT COUNT(*) AS n FROM {name}", job_config=config)] == [3]
    with pytest.raises(exceptions.BadRequest, match="must be qualified with a dataset"):
        client.query_and_wait(f"CREATE TABLE {name} AS SELECT 1 AS n", retry=None, job_retry=None)


def test_a_table_beside_results(client):
    """As Ibis puts frames in memory: in the anonymous dataset of a query, which no list has."""
    beside = client.query("SELECT 1 AS n").destination
    table = f"{beside.project}.{beside.dataset_id}.t{uuid.uuid4().hex}"
    client.load_table_from_json([{"n": 1}, {"n": 2}], table).result(timeout=60)
    assert [row.n for row in client.query_and_wait(f"SELECT SUM(n) AS n FROM `{table}`")] == [3]
    assert sorted(row.n for row in client.list_rows(table)) == [1, 2]
    assert beside.dataset_id not in {dataset.dataset_id for dataset in client.list_datasets()}
    client.delete_table(table)
    with pytest.raises(exceptions.NotFound):
        client.get_table(table)
