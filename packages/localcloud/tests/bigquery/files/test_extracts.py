"""Extract jobs and EXPORT DATA through the real clients: what the files hold, and that their bucket is as before."""

from __future__ import annotations

import gzip
import io
import json
import uuid

import pyarrow.parquet as pq
import pytest
from google.api_core import exceptions
from google.cloud import bigquery, storage

ROW = (
    "SELECT 1 AS n, 'it, \"is\"' AS s, 1.5 AS f, TRUE AS b, b'\\x00\\xff' AS y, DATE '2013-11-20' AS d,"
    " TIMESTAMP '2013-11-20 03:00:00.5' AS t, DATETIME '2013-11-20 03:00:00' AS dt, NUMERIC '2.50' AS u,"
    " CAST(NULL AS STRING) AS z"
)
NESTED = "SELECT 1 AS n, [1, 2] AS l, STRUCT('x' AS a, CAST(NULL AS INT64) AS b) AS r"


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with the tables `extracts.flat` and `extracts.nested`."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("extracts", exists_ok=True)
    made.query_and_wait(f"CREATE OR REPLACE TABLE extracts.flat AS {ROW}")
    made.query_and_wait(f"CREATE OR REPLACE TABLE extracts.nested AS {NESTED}")
    return made


@pytest.fixture(scope="module")
def bucket(local_cloud) -> storage.Bucket:
    """The local cloud's bucket."""
    return storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)


@pytest.fixture
def folder() -> str:
    """A fresh prefix."""
    return f"extracts/{uuid.uuid4().hex}"


def extract(client, bucket, name, table="extracts.flat", **config) -> bytes:
    uri = f"gs://{bucket.name}/{name}"
    job = client.extract_table(table, uri, job_config=bigquery.ExtractJobConfig(**config)).result(timeout=60)
    assert job.destination_uri_file_counts == [1]
    return bucket.blob(name.replace("*", "0" * 12)).download_as_bytes()


CSV_ROW = b'1,"it, ""is""",1.5,true,AP8=,2013-11-20,2013-11-20 03:00:00.500000 UTC,2013-11-20T03:00:00,2.5,\n'


def test_csv(client, bucket, folder):
    """With a header and without, zipped, with another delimiter."""
    header = b"n,s,f,b,y,d,t,dt,u,z\n"
    assert extract(client, bucket, f"{folder}/a.csv") == header + CSV_ROW
    assert extract(client, bucket, f"{folder}/b.csv", print_header=False) == CSV_ROW
    zipped = extract(client, bucket, f"{folder}/c.csv.gz", compression="GZIP")
    assert gzip.decompress(zipped) == header + CSV_ROW
    assert extract(client, bucket, f"{folder}/d.csv", field_delimiter="\t").startswith(b"n\ts\tf")


def test_json(client, bucket, folder):
    """INT64 is a string, NULL is left out, nesting stays."""
    flat = json.loads(extract(client, bucket, f"{folder}/a.json", destination_format="NEWLINE_DELIMITED_JSON"))
    assert flat == {
        "n": "1",
        "s": 'it, "is"',
        "f": 1.5,
        "b": True,
        "y": "AP8=",
        "d": "2013-11-20",
        "u": "2.5",
        "t": "2013-11-20 03:00:00.500000 UTC",
        "dt": "2013-11-20T03:00:00",
    }
    nested = extract(
        client, bucket, f"{folder}/b.json", table="extracts.nested", destination_format="NEWLINE_DELIMITED_JSON"
    )
    assert json.loads(nested) == {"n": "1", "l": ["1", "2"], "r": {"a": "x"}}


def test_parquet_and_avro(client, bucket, folder):
    """Both hold what the table holds."""
    content = extract(client, bucket, f"{folder}/a.parquet", table="extracts.nested", destination_format="PARQUET")
    assert pq.read_table(io.BytesIO(content)).to_pylist() == [{"n": 1, "l": [1, 2], "r": {"a": "x", "b": None}}]
    content = extract(client, bucket, f"{folder}/a.avro", table="extracts.nested", destination_format="AVRO")
    assert content.startswith(b"Obj\x01")
    client.delete_table("extracts.avro", not_found_ok=True)
    config = bigquery.LoadJobConfig(source_format="AVRO")
    uri = f"gs://{bucket.name}/{folder}/a.avro"
    client.load_table_from_uri(uri, "extracts.avro", job_config=config).result(timeout=60)
    tables = [client.get_table(f"extracts.{name}") for name in ("nested", "avro")]
    assert tables[0].schema == tables[1].schema
    assert [dict(row) for row in client.list_rows(tables[0])] == [dict(row) for row in client.list_rows(tables[1])]


def test_a_wildcard_numbers_the_files_and_the_bucket_stays_whole(client, bucket, folder):
    """Twelve digits; objects are listed with their checksums, and what is extracted loads again."""
    extract(client, bucket, f"{folder}/part-*.csv")
    found = {blob.name: blob for blob in bucket.list_blobs(prefix=folder)}
    assert list(found) == [f"{folder}/part-000000000000.csv"]
    assert all(blob.crc32c and blob.size for blob in found.values())
    config = bigquery.LoadJobConfig(
        source_format="CSV", skip_leading_rows=1, schema=client.get_table("extracts.flat").schema
    )
    uri = f"gs://{bucket.name}/{folder}/part-*.csv"
    client.load_table_from_uri(uri, "extracts.again", job_config=config).result(timeout=60)
    both = [[tuple(row.values()) for row in client.list_rows(f"extracts.{name}")] for name in ("flat", "again")]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("table", "uri", "config", "error", "words"),
    [
        ("extracts.nested", "gs://{bucket}/x.csv", {}, exceptions.BadRequest, "nested schema. Field: l"),
        ("extracts.gone", "gs://{bucket}/x.csv", {}, exceptions.NotFound, "Table local-project:extracts.gone"),
        ("extracts.flat", "gs://no-such-bucket/x.csv", {}, exceptions.NotFound, "no-such-bucket"),
        ("extracts.flat", "/srv/x.csv", {}, exceptions.BadRequest, "Invalid"),
        ("extracts.flat", "gs://{bucket}/x", {"compression": "SNAPPY"}, exceptions.MethodNotImplemented, "SNAPPY"),
    ],
    ids=["nested", "table", "bucket", "path", "compression"],
)
def test_what_cannot_be_extracted(client, bucket, table, uri, config, error, words):
    """The job ends with the reason, as the service says it."""
    with pytest.raises(error, match=words):
        client.extract_table(
            table, uri.format(bucket=bucket.name), job_config=bigquery.ExtractJobConfig(**config)
        ).result(timeout=60)


def test_export_data(client, bucket, folder):
    """A query's rows as files; existing ones are replaced only where the statement says so."""
    uri = f"gs://{bucket.name}/{folder}/e-*.json"

    def export(more: str = "") -> None:
        select = "SELECT n, JSON '{\"a\": 1}' AS j FROM extracts.flat"
        client.query(f"EXPORT DATA OPTIONS (uri = '{uri}', format = 'JSON'{more}) AS {select}").result()

    export()
    blob = bucket.blob(f"{folder}/e-000000000000.json")
    assert json.loads(blob.download_as_bytes())["n"] == "1"
    with pytest.raises(exceptions.BadRequest, match="overwrite"):
        export()
    export(", overwrite = true")
    assert [each.name for each in bucket.list_blobs(prefix=folder)] == [blob.name]
