"""What a query leaves: its result by every way to read it, the names of columns, changed rows, destinations."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from google.api_core import exceptions
from google.cloud import bigquery

from localcloud.bigquery.types.results import ANONYMOUS_DATASET, PROJECT, BoundedResults

ROWS = 30_000


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a dataset `results`."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("results", exists_ok=True)
    return made


@pytest.fixture
def table(client) -> str:
    """A name that no table has."""
    return f"{client.project}.results.t{uuid.uuid4().hex}"


SQL = f"SELECT n, JSON '{{\"a\": 1}}' AS j, [n] AS l FROM UNNEST(GENERATE_ARRAY(1, {ROWS})) AS n"


@pytest.mark.parametrize("run", ["query", "query_and_wait"])
def test_results_as_arrow_and_dataframes(client, run):
    """Through the Storage Read API, which finds the anonymous table of a job whatever the job's id."""
    rows = client.query_and_wait(SQL) if run == "query_and_wait" else client.query(SQL).result()
    table = rows.to_arrow()
    assert table.num_rows == ROWS
    assert set(table.slice(7, 1).to_pylist()[0]) == {"n", "j", "l"}
    named = client.query("SELECT 7 AS n", job_id=f"a_name-of_{uuid.uuid4().hex}", job_retry=None)
    assert named.to_dataframe()["n"].tolist() == [7]
    assert named.to_arrow().to_pylist() == [{"n": 7}]


def test_an_anonymous_table_is_a_table(client):
    """It is described and listed by the name that its job tells."""
    job = client.query("SELECT 7 AS n UNION ALL SELECT 8", job_id=f"of-a_job-{uuid.uuid4().hex}", job_retry=None)
    job.result()
    found = client.get_table(job.destination)
    assert (found.num_rows, [field.name for field in found.schema]) == (2, ["n"])
    assert sorted(row.n for row in client.list_rows(found)) == [7, 8]
    gone = f"{job.destination.dataset_id}.anonnothing"
    with pytest.raises(exceptions.NotFound):
        client.get_table(gone)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT COUNT(*), 1, (n), n + 1 FROM UNNEST([1]) AS n GROUP BY n", ["f0_", "f1_", "n", "f2_"]),
        ("SELECT * FROM (SELECT COUNT(*), MAX(n) AS m FROM UNNEST([1]) AS n)", ["f0_", "m"]),
        ("WITH w AS (SELECT UPPER('x')) SELECT * FROM w", ["f0_"]),
        ("SELECT s.a, s.a + 1 FROM (SELECT STRUCT(1 AS a) AS s)", ["a", "f0_"]),
        ("SELECT 1 UNION ALL SELECT 2", ["f0_"]),
        ("SELECT CAST(n AS STRING), [n][OFFSET(0)] FROM UNNEST([1]) AS n", ["f0_", "f1_"]),
    ],
    ids=["aggregate", "subquery", "with", "field", "union", "functions"],
)
def test_columns_without_a_name(client, sql, names):
    """They are called f0_, f1_ and so on."""
    assert [field.name for field in client.query(sql).result().schema] == names


@pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
def test_a_table_needs_names(client, table, kind):
    """As the service says it."""
    with pytest.raises(exceptions.BadRequest, match=f"CREATE {kind} columns must be named, but column 2 has no name"):
        client.query(f"CREATE {kind} `{table}` AS SELECT 1 AS a, COUNT(*) FROM UNNEST([1])").result()
    if kind == "TABLE":
        client.query(f"CREATE TABLE `{table}` (a INT64, b INT64) AS SELECT 1, COUNT(*) FROM UNNEST([1])").result()
        assert [tuple(row.values()) for row in client.list_rows(table)] == [(1, 1)]


@pytest.mark.parametrize(
    ("statement", "inserted", "updated", "deleted"),
    [
        ("INSERT INTO {t} (n) VALUES (3), (4)", 2, 0, 0),
        ("UPDATE {t} SET n = 9 WHERE n > 1", 0, 1, 0),
        ("DELETE FROM {t} WHERE TRUE", 0, 0, 2),
        ("TRUNCATE TABLE {t}", 0, 0, 2),
        (
            (
                "MERGE {t} AS a USING (SELECT 1 AS n UNION ALL SELECT 7) AS b ON a.n = b.n WHEN MATCHED THEN UPDATE SET"
                " n = 11 WHEN NOT MATCHED THEN INSERT (n) VALUES (b.n) WHEN NOT MATCHED BY SOURCE THEN DELETE"
            ),
            *(1, 1, 1),
        ),
    ],
    ids=["insert", "update", "delete", "truncate", "merge"],
)
def test_changed_rows_are_counted(client, table, statement, inserted, updated, deleted):
    """By what happened to them, in a job and in the answer of jobs.query."""
    for run in (client.query, client.query_and_wait):
        client.query_and_wait(f"CREATE OR REPLACE TABLE `{table}` AS SELECT 1 AS n UNION ALL SELECT 2")
        found = run(statement.format(t=f"`{table}`"))
        if run == client.query:
            found.result()
            stats = found.dml_stats
            counts = (stats.inserted_row_count, stats.updated_row_count, stats.deleted_row_count)
            assert counts == (inserted, updated, deleted)
        assert found.num_dml_affected_rows == inserted + updated + deleted


def test_a_destination_is_written(client, table):
    """As its dispositions say; a SELECT with one is still a SELECT."""

    def run(sql, disposition, **config):
        config = bigquery.QueryJobConfig(destination=table, write_disposition=disposition, **config)
        return sorted(row.n for row in client.query(sql, job_config=config).result())

    with pytest.raises(exceptions.NotFound):
        run("SELECT 1 AS n", "WRITE_EMPTY", create_disposition="CREATE_NEVER")
    parameters = [bigquery.ScalarQueryParameter("n", "INT64", 1)]
    assert run("SELECT @n AS n, JSON '{}' AS j", "WRITE_EMPTY", query_parameters=parameters) == [1]
    assert [field.field_type for field in client.get_table(table).schema] == ["INTEGER", "JSON"]
    with pytest.raises(exceptions.Conflict, match="Already Exists: Table"):
        run("SELECT 2 AS n", "WRITE_EMPTY")
    assert run("SELECT 2 AS n", "WRITE_APPEND") == [1, 2]
    with pytest.raises(exceptions.BadRequest, match="Cannot add fields"):
        run("SELECT 3 AS n, 4 AS more", "WRITE_APPEND")
    with pytest.raises(exceptions.BadRequest, match=r"destination table is present\. Found duplicate\(s\): n"):
        run("SELECT 3 AS n, 4 AS N", "WRITE_TRUNCATE")
    assert client.get_table(table).num_rows == 2
    assert run("SELECT 5 AS n", "WRITE_TRUNCATE") == [5]
    assert [field.name for field in client.get_table(table).schema] == ["n"]
    assert [row.n for row in client.list_rows(table)] == [5]


def test_anonymous_tables_are_of_their_project():
    """As the Storage Read API finds them, which has no request of REST's around it."""
    results = BoundedResults()
    token = PROJECT.set("one")
    results["a-b"] = pa.table({"n": [1]})
    PROJECT.reset(token)
    assert results.rows_of("one", ANONYMOUS_DATASET, "anonab").to_pylist() == [{"n": 1}]
    assert results.rows_of("two", ANONYMOUS_DATASET, "anonab") is None
    assert results.rows_of("one", "d", "anonab") is None
    assert (list(results), len(results)) == ([], 0)
