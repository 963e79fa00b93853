"""No array that is written has a NULL: whichever way it comes."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.api_core.exceptions import BadRequest
from google.cloud import bigquery

ARRAY = bigquery.SchemaField("a", "INTEGER", "REPEATED")
REFUSED = (
    "INSERT full_arrays.t (a) VALUES ([1]), ([1, NULL])",
    "INSERT full_arrays.t (a) SELECT ARRAY_AGG(x) FROM UNNEST([1, NULL]) AS x",
    "INSERT full_arrays.t (a) VALUES (ARRAY(SELECT x FROM UNNEST([1, NULL]) AS x))",
    "UPDATE full_arrays.t SET a = ARRAY_CONCAT(a, [NULL]) WHERE TRUE",
    "MERGE full_arrays.t AS t USING (SELECT 1 AS k) u ON FALSE WHEN NOT MATCHED THEN INSERT (a) VALUES ([u.k, NULL])",
    "CREATE TABLE full_arrays.never AS SELECT ARRAY_AGG(x) AS a FROM UNNEST([1, NULL]) AS x",
    "CREATE TABLE full_arrays.never AS SELECT [1, NULL] AS a",
    "BEGIN INSERT full_arrays.t (a) VALUES ([NULL]); END",
)
TAKEN = (
    "INSERT full_arrays.t (a) VALUES ([]), ([3])",
    "INSERT full_arrays.t (a) SELECT ARRAY_AGG(x IGNORE NULLS) FROM UNNEST([1, NULL]) AS x",
    "UPDATE full_arrays.t SET a = ARRAY_CONCAT(a, [9]) WHERE TRUE",
    "CREATE OR REPLACE TABLE full_arrays.made AS SELECT a, ARRAY_LENGTH(a) AS n FROM full_arrays.t",
)


@pytest.fixture
def client(local_cloud) -> bigquery.Client:
    """Google's client, with a table of one row."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("full_arrays", exists_ok=True)
    made.query_and_wait("CREATE OR REPLACE TABLE full_arrays.t AS SELECT [1, 2] AS a")
    return made


def rows(client: bigquery.Client) -> list[list[int]]:
    """Return what the table has."""
    return sorted(row.a for row in client.query_and_wait("SELECT a FROM full_arrays.t"))


@pytest.mark.parametrize("statement", REFUSED)
def test_a_statement_that_writes_a_null_is_refused(client, statement):
    with pytest.raises(BadRequest, match="Array cannot have a null element"):
        client.query_and_wait(statement)
    assert rows(client) == [[1, 2]]


def test_other_arrays_are_written(client):
    for statement in TAKEN:
        client.query_and_wait(statement)
    assert rows(client) == [[1, 2, 9], [1, 9], [3, 9], [9]]
    made = [tuple(row.values()) for row in client.query_and_wait("SELECT a, n FROM full_arrays.made WHERE n = 3")]
    assert made == [([1, 2, 9], 3)]


def test_files_with_a_null_are_refused(client):
    table = io.BytesIO()
    pq.write_table(pa.table({"a": [[5], [1, None]]}), table)
    lines = io.BytesIO("\n".join(json.dumps({"a": value}) for value in ([5], [1, None])).encode())
    for source, source_format in ((table, "PARQUET"), (lines, "NEWLINE_DELIMITED_JSON")):
        options = bigquery.ParquetOptions()
        options.enable_list_inference = True
        config = bigquery.LoadJobConfig(source_format=source_format, schema=[ARRAY])
        if source_format == "PARQUET":
            config.parquet_options = options
        with pytest.raises(BadRequest, match="Only optional fields can be set to NULL"):
            client.load_table_from_file(source, "full_arrays.t", rewind=True, job_config=config).result()
    assert rows(client) == [[1, 2]]


def test_streamed_rows_with_a_null_are_refused(client):
    (wrong, other) = client.insert_rows_json("full_arrays.t", [{"a": [1, None]}, {"a": [2]}])
    assert (wrong["errors"][0]["reason"], other["errors"][0]["reason"]) == ("invalid", "stopped")
    assert rows(client) == [[1, 2]]
