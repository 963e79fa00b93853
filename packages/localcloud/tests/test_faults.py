"""Faults of Cloud Storage and BigQuery, seen through Google's clients: what goes wrong, when, and how often."""

from __future__ import annotations

import time
import uuid

import pyarrow as pa
import pytest
from google.api_core import exceptions
from google.cloud import bigquery, bigquery_storage_v1, storage
from google.cloud.bigquery_storage_v1 import types

SMALL = 10
LARGE = 9 * 1024 * 1024  # above the client's limit for one request: a resumable upload
ROWS = 1_000


@pytest.fixture(scope="module")
def bucket(local_cloud) -> storage.Bucket:
    """The local cloud's bucket."""
    return storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)


@pytest.fixture
def folder() -> str:
    """A fresh prefix."""
    return f"faults/{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a table `faulty.numbers` of ROWS rows."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("faulty", exists_ok=True)
    made.query_and_wait(
        f"CREATE OR REPLACE TABLE faulty.numbers AS SELECT n FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n"
    )
    return made


@pytest.fixture(scope="module")
def reader(client) -> bigquery_storage_v1.BigQueryReadClient:
    """The Storage Read API's own client."""
    return bigquery_storage_v1.BigQueryReadClient()


def upload(bucket, name, data=b"x" * SMALL, **options):
    bucket.blob(name).upload_from_string(data, retry=None, **options)


def open_session(reader, client, **options):
    table = f"projects/{client.project}/datasets/faulty/tables/numbers"
    return reader.create_read_session(
        parent=f"projects/{client.project}",
        read_session=types.ReadSession(table=table, data_format=types.DataFormat.ARROW),
        max_stream_count=1,
        **options,
    )


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["one request", "resumable"])
@pytest.mark.parametrize("condition", [{}, {"if_generation_match": 0}], ids=["plain", "guarded"])
def test_uploads_below_a_prefix_are_unavailable(bucket, folder, add_fault, size, condition):
    """Only the next two, only below the prefix; then all is well and nothing was half written."""
    add_fault(f"storage.objects.insert gs://{bucket.name}/{folder}/spans/*", "error", count=2)
    upload(bucket, f"{folder}/elsewhere", **condition)
    for _ in range(2):
        with pytest.raises(exceptions.ServiceUnavailable, match="Injected fault"):
            upload(bucket, f"{folder}/spans/a", b"y" * size, **condition)
    assert [blob.name for blob in bucket.list_blobs(prefix=folder)] == [f"{folder}/elsewhere"]
    upload(bucket, f"{folder}/spans/a", b"y" * size, **condition)
    assert bucket.blob(f"{folder}/spans/a").download_as_bytes() == b"y" * size


def test_client_waits_out_what_passes(bucket, folder, add_fault):
    """With its usual retries, a caller does not notice."""
    add_fault("storage.objects.insert gs://*", "error", count=1)
    bucket.blob(f"{folder}/a").upload_from_string(b"x", if_generation_match=0)
    add_fault("storage.objects.get gs://*", "error", count=1)
    assert bucket.blob(f"{folder}/a").download_as_bytes() == b"x"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("FAILED_PRECONDITION", exceptions.PreconditionFailed),
        ("PERMISSION_DENIED", exceptions.Forbidden),
        ("RESOURCE_EXHAUSTED", exceptions.TooManyRequests),
        ("INTERNAL", exceptions.InternalServerError),
    ],
)
def test_codes_are_those_of_storage(bucket, folder, add_fault, code, error):
    """412 on create, 403, 429, 500."""
    add_fault(f"storage.objects.insert gs://{bucket.name}/{folder}*", "error", code=code, message="no")
    with pytest.raises(error, match="no"):
        upload(bucket, f"{folder}/a", if_generation_match=0)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["one request", "resumable"])
def test_lost_answer_of_an_upload_leaves_the_object(bucket, folder, add_fault, size):
    """The caller hears 503, and a second try finds its own object: 412."""
    pieces = 1 if size == LARGE else 0  # of a resumable upload it is the last piece that makes the object
    target = f"storage.objects.insert gs://{bucket.name}/" + ("" if pieces else f"{folder}/a")
    add_fault(target, "lost_response")
    with pytest.raises(exceptions.ServiceUnavailable):
        upload(bucket, f"{folder}/a", b"x" * size, if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        upload(bucket, f"{folder}/a", b"x" * size, if_generation_match=0)


def test_each_method_has_its_event(bucket, folder, add_fault):
    """Reads, lists, deletes, copies and buckets by the names of the JSON API."""
    upload(bucket, f"{folder}/a")
    here = f"gs://{bucket.name}/{folder}"
    calls = {
        f"storage.objects.get {here}/a": lambda: bucket.blob(f"{folder}/a").download_as_bytes(retry=None),
        f"storage.objects.list {here}*": lambda: list(bucket.list_blobs(prefix=folder, retry=None)),
        f"storage.objects.delete {here}/a": lambda: bucket.blob(f"{folder}/a").delete(retry=None),
        f"storage.objects.rewrite {here}/b": lambda: bucket.blob(f"{folder}/b").rewrite(
            bucket.blob(f"{folder}/a"), retry=None
        ),
        f"storage.objects.compose {here}/b": lambda: bucket.blob(f"{folder}/b").compose(
            [bucket.blob(f"{folder}/a")], retry=None
        ),
        f"storage.buckets.get gs://{bucket.name}": lambda: bucket.reload(retry=None),
    }
    for target, call in calls.items():
        add_fault(target, "error")
        with pytest.raises(exceptions.ServiceUnavailable):
            call()
    bucket.blob(f"{folder}/a").delete()


def test_address_of_an_object_is_a_read_too(local_cloud, bucket, folder, add_fault):
    """The XML API's address, as TensorFlow reads it."""
    upload(bucket, f"{folder}/a")
    url = f"https://storage.googleapis.com/{bucket.name}/{folder}/a"
    add_fault(f"storage.objects.get gs://{bucket.name}/{folder}/a", "error", code="PERMISSION_DENIED")
    assert local_cloud.http.get(url, timeout=30).status_code == 403
    assert local_cloud.http.get(url, timeout=30).content == b"x" * SMALL


def test_slow_storage_is_slow(bucket, folder, add_fault):
    add_fault("storage.objects.insert", "delay", seconds=0.3)
    begun = time.monotonic()
    upload(bucket, f"{folder}/a")
    assert time.monotonic() - begun >= 0.3


def test_stream_breaks_after_so_many_rows_and_goes_on(reader, client, add_fault):
    """The client gets exactly the rows before the break; a read from there on gets exactly the rest."""
    session = open_session(reader, client)
    name = session.streams[0].name
    add_fault(f"BigQueryRead.ReadRows {client.project}.faulty.numbers", "break", after=300, code="INTERNAL")
    before: list[pa.RecordBatch] = []
    stream = reader.read_rows(name, retry=None)
    with pytest.raises(exceptions.InternalServerError, match="Injected fault"):
        before.extend(message.row_count for message in iter(stream))
    assert sum(before) == 300
    rest = reader.read_rows(name, offset=300).to_arrow(session)
    assert rest["n"].to_pylist() == list(range(300, ROWS))


def test_client_goes_on_over_a_break_by_itself(reader, client, add_fault):
    """Google's client reads on at the first missing row: no row twice, none lost."""
    session = open_session(reader, client)
    add_fault("BigQueryRead.ReadRows", "break", after=300, count=3)
    assert reader.read_rows(session.streams[0].name).to_arrow(session)["n"].to_pylist() == list(range(ROWS))


def test_session_is_refused(reader, client, add_fault):
    """PERMISSION_DENIED, for this table only."""
    add_fault(f"BigQueryRead.CreateReadSession {client.project}.faulty.*", "error", code="PERMISSION_DENIED")
    with pytest.raises(exceptions.PermissionDenied):
        open_session(reader, client, retry=None)
    assert open_session(reader, client).estimated_row_count == ROWS


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        ("PERMISSION_DENIED", "accessDenied", exceptions.Forbidden),
        ("RESOURCE_EXHAUSTED", "quotaExceeded", exceptions.Forbidden),
    ],
)
def test_query_ends_with_an_error(client, add_fault, code, reason, error):
    """It is accepted, and the stored job says what happened."""
    add_fault("Query.Run *faulty.numbers*", "error", code=code, message="not today")
    job = client.query("SELECT COUNT(*) AS n\nFROM faulty.numbers", job_retry=None)
    with pytest.raises(error, match="not today"):
        job.result()
    assert client.get_job(job.job_id).error_result["reason"] == reason
    assert [row.n for row in client.query("SELECT COUNT(*) AS n FROM faulty.numbers").result()] == [ROWS]


def test_query_ends_with_a_reason_of_choice(client, add_fault):
    """By BigQuery's own word: Google's client tries such a query again."""
    add_fault("Query.Run", "error", code="RESOURCE_EXHAUSTED", reason="rateLimitExceeded")
    assert [row.n for row in client.query("SELECT 1 AS n").result()] == [1]


def test_calls_of_bigquery(client, add_fault):
    """403, 503, and an answer that is lost: the job is there all the same."""
    table = f"{client.project}.faulty.numbers"
    add_fault(f"bigquery.tables.get {table}", "error", code="PERMISSION_DENIED")
    with pytest.raises(exceptions.Forbidden):
        client.get_table(table, retry=None)
    assert client.get_table(table).num_rows == ROWS
    add_fault("bigquery.jobs.insert", "error")
    with pytest.raises(exceptions.ServiceUnavailable):
        client.query("SELECT 1", retry=None, job_retry=None)
    job_id = f"lost-{uuid.uuid4().hex}"
    add_fault("bigquery.jobs.insert", "lost_response")
    with pytest.raises(exceptions.ServiceUnavailable):
        client.query("SELECT 1 AS n", job_id=job_id, retry=None, job_retry=None)
    assert [row.n for row in client.get_job(job_id).result()] == [1]


@pytest.mark.parametrize(
    ("call", "event"),
    [
        (lambda client: list(client.list_tables("faulty", retry=None)), "bigquery.tables.list"),
        (lambda client: client.get_dataset("faulty", retry=None), "bigquery.datasets.get"),
        (lambda client: client.query_and_wait("SELECT 1", retry=None, job_retry=None), "bigquery.jobs.query"),
        (lambda client: list(client.list_rows("faulty.numbers", retry=None)), "bigquery.tab*"),
        (lambda client: list(client.list_jobs(retry=None)), "bigquery.jobs.list"),
    ],
    ids=["tables.list", "datasets.get", "jobs.query", "tabledata.list", "jobs.list"],
)
def test_events_of_bigquery(client, add_fault, call, event):
    add_fault(event, "error")
    with pytest.raises(exceptions.ServiceUnavailable):
        call(client)


def test_filters_are_for_jobs_only(client, add_fault):
    """A fault that is limited to some jobs leaves storage and BigQuery alone."""
    add_fault("bigquery.tables.get", "error", filter="labels.x=y")
    assert client.get_table("faulty.numbers").num_rows == ROWS
