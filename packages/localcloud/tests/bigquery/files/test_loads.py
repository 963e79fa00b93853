"""Load jobs through the real client: formats, CSV's options, tables that a file makes, and loads that fail whole."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import uuid
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.api_core import exceptions
from google.cloud import bigquery, storage

LETTERS = [bigquery.SchemaField("a", "STRING"), bigquery.SchemaField("n", "INTEGER")]


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a dataset `loads`."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("loads", exists_ok=True)
    return made


@pytest.fixture
def table(client) -> str:
    """A name that no table has."""
    return f"{client.project}.loads.t{uuid.uuid4().hex}"


def load(client, table, content: bytes, **config):
    job = client.load_table_from_file(
        io.BytesIO(content), table, job_config=bigquery.LoadJobConfig(**config), num_retries=0
    )
    return job.result(timeout=60)


def rows(client, table) -> list[tuple]:
    return sorted((tuple(row.values()) for row in client.list_rows(table)), key=repr)


@pytest.mark.parametrize(
    ("content", "config", "expected"),
    [
        (b"x,1\ny,2\n", {}, [("x", 1), ("y", 2)]),
        (b"a,n\nx,1\n", {"skip_leading_rows": 1}, [("x", 1)]),
        (b"some\nwords,\nx,1\n", {"skip_leading_rows": 2}, [("x", 1)]),
        (b'x,\n,2\n"",3\n', {}, [("", 3), ("x", None), (None, 2)]),
        (b"NA,1\nx,NA\n", {"null_marker": "NA"}, [("x", None), (None, 1)]),
        (b"x\t1\n", {"field_delimiter": "\t"}, [("x", 1)]),
        (b"'x,y',1\n", {"quote_character": "'"}, [("x,y", 1)]),
        (b"x\ny,2\n", {"allow_jagged_rows": True}, [("x", None), ("y", 2)]),
        (b"x,1,more\n", {"ignore_unknown_values": True}, [("x", 1)]),
        (b"x,1\ny,two\n", {"max_bad_records": 1}, [("x", 1)]),
        ("Émilie,1\n".encode("latin-1"), {"encoding": "ISO-8859-1"}, [("Émilie", 1)]),
        (gzip.compress(b"x,1\n"), {}, [("x", 1)]),
    ],
    ids=lambda value: ",".join(value) or "plain" if isinstance(value, dict) else None,
)
def test_csv_is_read_as_its_options_say(client, table, content, config, expected):
    """Every row counts: none is taken for a header unless the job says so."""
    job = load(client, table, content, schema=LETTERS, source_format="CSV", **config)
    assert rows(client, table) == expected
    assert job.output_rows == len(expected)


@pytest.mark.parametrize(
    ("content", "config", "expected"),
    [
        (b"name,age\nAda,36\n", {}, [("name", "STRING"), ("age", "INTEGER")]),
        (b"36,1.5\n85,1.6\n", {}, [("int64_field_0", "INTEGER"), ("double_field_1", "FLOAT")]),
        (b"junk\nday,ok\n2013-11-20,true\n", {"skip_leading_rows": 2}, [("day", "DATE"), ("ok", "BOOLEAN")]),
    ],
    ids=["header", "no header", "skipped"],
)
def test_csv_says_what_it_holds(client, table, content, config, expected):
    """Autodetect names and types, and takes a row of names for no row."""
    load(client, table, content, source_format="CSV", autodetect=True, **config)
    stored = client.get_table(table)
    assert [(field.name, field.field_type) for field in stored.schema] == expected
    assert stored.num_rows == content.count(b"\n") - content.count(b"name,") - content.count(b"junk\nday,ok\n") * 2


def parquet(**columns) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("source_format", "content"),
    [
        ("PARQUET", parquet(a=["x", None], n=[1, 2])),
        ("NEWLINE_DELIMITED_JSON", b'{"a": "x", "n": 1}\n{"n": 2}\n'),
    ],
    ids=["parquet", "json"],
)
def test_a_file_makes_its_table(client, table, source_format, content):
    """Parquet brings its schema (and Avro: test_bigquery_extracts); JSON's is guessed where the job allows it."""
    config = {"autodetect": True} if "JSON" in source_format else {}
    load(client, table, content, source_format=source_format, **config)
    assert {field.name: field.field_type for field in client.get_table(table).schema} == {"a": "STRING", "n": "INTEGER"}
    assert sorted((row.n, row.a) for row in client.list_rows(table)) == [(1, "x"), (2, None)]
    again = load(client, table, content, source_format=source_format, write_disposition="WRITE_APPEND")
    assert (again.output_rows, client.get_table(table).num_rows) == (2, 4)


def test_parquet_times_and_lists(client, table):
    """A time with a zone is a TIMESTAMP, one without a DATETIME; lists are arrays where the job asks for it."""
    at = dt.datetime(2013, 11, 20, 3)
    content = parquet(t=[at.replace(tzinfo=dt.UTC)], d=[at], tags=[["a", "b"]])
    with pytest.raises(exceptions.MethodNotImplemented, match=r"tags.*enableListInference"):
        load(client, table, content, source_format="PARQUET")
    options = bigquery.ParquetOptions()
    options.enable_list_inference = True
    load(client, table, content, source_format="PARQUET", parquet_options=options)
    schema = {field.name: (field.field_type, field.mode) for field in client.get_table(table).schema}
    assert schema == {"t": ("TIMESTAMP", "NULLABLE"), "d": ("DATETIME", "NULLABLE"), "tags": ("STRING", "REPEATED")}
    assert [tuple(row.values()) for row in client.list_rows(table)] == [(at.replace(tzinfo=dt.UTC), at, ["a", "b"])]


@pytest.mark.parametrize(
    ("content", "config", "error", "words"),
    [
        (b"x,1\ny,two\n", {}, exceptions.BadRequest, "two"),
        (b"x,1\ny,two\nz,three\n", {"max_bad_records": 1}, exceptions.BadRequest, "too many errors"),
        (
            b'{"a": "x", "m": 1}\n',
            {"source_format": "NEWLINE_DELIMITED_JSON"},
            exceptions.BadRequest,
            "No such field: m",
        ),
        (b"x,1\n", {"schema": None}, exceptions.BadRequest, "No schema"),
        (
            b"x,1\n",
            {"projection_fields": ["a"]},
            exceptions.MethodNotImplemented,
            "projectionFields",
        ),
        (b"x", {"source_format": "ORC"}, exceptions.MethodNotImplemented, "ORC"),
        (b"x,1\n", {"encoding": "UTF-32"}, exceptions.MethodNotImplemented, "UTF-32"),
        (b"x,1\n", {"create_disposition": "CREATE_NEVER"}, exceptions.NotFound, "Not found: Table"),
    ],
    ids=["value", "bad rows", "field", "schema", "option", "format", "encoding", "never"],
)
def test_a_load_that_fails_leaves_nothing(client, table, content, config, error, words):
    """With the reason in its error; the table is not made, or keeps what it has."""
    wanted = {"schema": LETTERS, "source_format": "CSV", **config}
    if wanted["schema"] is None:
        del wanted["schema"]
    with pytest.raises(error, match=words):
        load(client, table, content, **wanted)
    with pytest.raises(exceptions.NotFound):
        client.get_table(table)


def test_a_failed_truncation_keeps_the_rows(client, table):
    load(client, table, b"x,1\n", schema=LETTERS, source_format="CSV")
    with pytest.raises(exceptions.BadRequest):
        load(client, table, b"y,two\n", source_format="CSV", write_disposition="WRITE_TRUNCATE")
    assert rows(client, table) == [("x", 1)]
    for other in ("a", "b"):
        schema = [bigquery.SchemaField(other, "INTEGER")]
        with pytest.raises(exceptions.BadRequest):
            load(client, table, b"y\n", schema=schema, source_format="CSV", write_disposition="WRITE_TRUNCATE")
        assert rows(client, table) == [("x", 1)]
        assert client.get_table(table).schema == LETTERS
    with pytest.raises(exceptions.Conflict, match="Already Exists: Table"):
        load(client, table, b"y,2\n", source_format="CSV", write_disposition="WRITE_EMPTY")
    load(
        client,
        table,
        b"7\n",
        schema=[bigquery.SchemaField("b", "INTEGER")],
        source_format="CSV",
        write_disposition="WRITE_TRUNCATE",
    )
    assert [field.name for field in client.get_table(table).schema] == ["b"]


def test_objects_are_loaded_by_address(client, table, local_cloud):
    """One, or those that a wildcard finds; an address without an object is an error."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    folder = f"loads/{uuid.uuid4().hex}"
    for index in range(3):
        bucket.blob(f"{folder}/part-{index}.csv").upload_from_string(f"x,{index}\n")
    config = bigquery.LoadJobConfig(schema=LETTERS, source_format="CSV")
    uri = f"gs://{local_cloud.bucket}/{folder}"
    job = client.load_table_from_uri(f"{uri}/part-*.csv", table, job_config=config).result(timeout=60)
    assert (job.input_files, job.output_rows) == (3, 3)
    job = client.load_table_from_uri([f"{uri}/part-1.csv"], table, job_config=config).result(timeout=60)
    assert (job.output_rows, client.get_table(table).num_rows) == (1, 4)
    with pytest.raises(exceptions.NotFound, match="Not found: URI"):
        client.load_table_from_uri(f"{uri}/other-*.csv", table, job_config=config).result(timeout=60)
    bucket.blob(f"{folder}/part-3.csv").upload_from_string(gzip.compress(b"x,3\n"))
    with pytest.raises(exceptions.BadRequest, match="Compressed and uncompressed files"):
        client.load_table_from_uri(f"{uri}/part-*.csv", table, job_config=config).result(timeout=60)
    with pytest.raises(exceptions.BadRequest, match="Invalid source"):
        client.load_table_from_uri("file:///etc/passwd", table, job_config=config).result(timeout=60)


def test_an_uploaded_load_keeps_its_id(client, table):
    """So that a second one of the same id is refused, as from Cloud Storage."""
    config = bigquery.LoadJobConfig(schema=LETTERS, source_format="CSV")
    job_id = f"upload-{uuid.uuid4().hex}"
    client.load_table_from_file(io.BytesIO(b"x,1\n"), table, job_config=config, job_id=job_id).result(timeout=60)
    assert client.get_job(job_id).output_rows == 1
    with pytest.raises(exceptions.Conflict, match=job_id):
        client.load_table_from_file(io.BytesIO(b"x,1\n"), table, job_config=config, job_id=job_id)
    assert client.get_table(table).num_rows == 1


# As Airflow's GCSToBigQueryOperator and BigQueryInsertJobOperator send them: each option, most of them null.
_NULLS = {
    "load": dict.fromkeys(
        (
            *("quote", "nullMarker", "encoding", "fieldDelimiter", "allowQuotedNewlines", "allowJaggedRows", "schema"),
            *("skipLeadingRows", "maxBadRecords", "ignoreUnknownValues", "timePartitioning", "clustering"),
            *("projectionFields", "schemaUpdateOptions", "destinationEncryptionConfiguration", "writeDisposition"),
            *("createDisposition", "parquetOptions", "destinationTableProperties", "nullMarkers", "labels"),
        )
    ),
    "query": dict.fromkeys(
        (
            *("destinationTable", "writeDisposition", "createDisposition", "defaultDataset", "queryParameters"),
            *("maximumBytesBilled", "priority", "useQueryCache", "timePartitioning", "parameterMode", "clustering"),
            *("schemaUpdateOptions", "connectionProperties", "userDefinedFunctionResources", "tableDefinitions"),
        )
    ),
    "extract": dict.fromkeys(
        ("compression", "fieldDelimiter", "printHeader", "destinationFormat", "useAvroLogicalTypes", "sourceModel")
    ),
}


def run_job(local_cloud, configuration):
    """Run a job by REST, as the client that drops nulls would not; give it once it is done."""
    url = f"https://bigquery.googleapis.com/bigquery/v2/projects/{local_cloud.project}/jobs"
    body = {
        "configuration": {"labels": None, "dryRun": None, "jobTimeoutMs": None, **configuration},
        "jobReference": None,
    }
    answer = local_cloud.http.post(url, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    job = bigquery.Client(project=local_cloud.project).get_job(answer.json()["jobReference"]["jobId"])
    job.result()
    return job


def test_a_null_option_is_not_there(local_cloud, client, table):
    """Load, query and extract take every optional field as null for one that is not given."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    name = f"nulls/{table.replace('.', '/')}"
    bucket.blob(f"{name}.csv").upload_from_string('"x",1\n,2\n"N""one",3\n')
    project, dataset, table_id = bigquery.TableReference.from_string(table, client.project).path.split("/")[2::2]
    where = {"projectId": project, "datasetId": dataset, "tableId": table_id}
    schema = {
        "fields": [{"name": "a", "type": "STRING", "mode": None}, {"name": "n", "type": "INTEGER", "policyTags": None}]
    }
    uris = [f"gs://{bucket.name}/{name}.csv"]
    load_config = {
        **_NULLS["load"],
        "sourceFormat": None,
        "sourceUris": uris,
        "destinationTable": where,
        "schema": schema,
    }
    run_job(local_cloud, {"load": load_config, "query": None, "extract": None})
    assert sorted((row.n, row.a) for row in client.list_rows(table)) == [(1, "x"), (2, None), (3, 'N"one')]
    sql = f"SELECT n, @p IS NULL AS is_null FROM `{table}` WHERE n > 1"
    job = run_job(
        local_cloud,
        {"query": {**_NULLS["query"], "query": sql.replace("@p", "a"), "useLegacySql": False}, "load": None},
    )
    assert sorted(tuple(row.values()) for row in job.result()) == [(2, True), (3, False)]
    extract = {**_NULLS["extract"], "sourceTable": where, "destinationUris": [f"gs://{bucket.name}/{name}.out"]}
    run_job(local_cloud, {"extract": {**extract, "destinationUri": None}})
    assert bucket.blob(f"{name}.out").download_as_text().splitlines()[0] == "a,n"
    parameter = bigquery.ScalarQueryParameter("p", "INT64", None)
    config = bigquery.QueryJobConfig(query_parameters=[parameter])
    assert [tuple(row.values()) for row in client.query_and_wait("SELECT @p AS v", job_config=config)] == [(None,)]


def test_gcs_to_bigquery_operator(local_cloud, client, table):
    """Airflow's own operator loads a CSV file with its defaults."""
    from airflow.providers.google.cloud.transfers.gcs_to_bigquery import GCSToBigQueryOperator

    name = f"nulls/{table.replace('.', '/')}/operator.csv"
    storage.Client(project=local_cloud.project).bucket(local_cloud.bucket).blob(name).upload_from_string("a,n\nx,1\n")
    operator = GCSToBigQueryOperator(
        task_id="load",
        bucket=local_cloud.bucket,
        source_objects=[name],
        destination_project_dataset_table=f"{client.project}.{table}" if table.count(".") == 1 else table,
        schema_fields=[{"name": "a", "type": "STRING"}, {"name": "n", "type": "INTEGER"}],
        skip_leading_rows=1,
        autodetect=False,
        project_id=client.project,
    )
    operator.execute({"ti": mock.MagicMock()})  # it keeps a link there
    assert [tuple(row.values()) for row in client.list_rows(table)] == [("x", 1)]
