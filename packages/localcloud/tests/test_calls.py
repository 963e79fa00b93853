"""`localcloud calls`: what was answered, by method and status, from every server of a running local cloud."""

from __future__ import annotations

import json
import re
import threading
import uuid
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1, bigquery, bigquery_storage_v1, storage
from google.cloud.bigquery_storage_v1 import types
from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client

from localcloud.calls import Answered, CallCounts, code_of
from localcloud.command import cli
from localcloud.faults import FaultStore, check

NOON_S = 1_767_268_800.0  # 2026-01-01T12:00:00Z


def counted(local_cloud) -> dict[str, Answered]:
    """Return what `localcloud calls --json` prints, by method."""
    rows = [json.loads(line) for line in local_cloud.run("calls", "--json").stdout.splitlines()]
    return {row["method"]: Answered(**row) for row in rows}


def test_every_server_counts(local_cloud):
    """REST and gRPC, of each service; a refusal by the status that its client got."""
    before = counted(local_cloud)
    name = f"calls-{uuid.uuid4().hex}"
    bucket = storage.Client().bucket(local_cloud.bucket)
    bucket.blob(name).upload_from_string(b"x")
    with pytest.raises(exceptions.NotFound):
        bucket.blob(f"{name}-missing").download_as_bytes()
    queries = bigquery.Client()
    with pytest.raises(exceptions.NotFound):
        queries.get_dataset("no_such_dataset")
    with pytest.raises(exceptions.NotFound):
        bigquery_storage_v1.BigQueryReadClient().create_read_session(
            parent=f"projects/{local_cloud.project}",
            read_session=types.ReadSession(
                table=f"projects/{local_cloud.project}/datasets/no_such_dataset/tables/t",
                data_format=types.DataFormat.ARROW,
            ),
        )
    LoggingServiceV2Client().list_log_entries(
        resource_names=[f"projects/{local_cloud.project}"]
    )  # its first page alone
    for transport in ("grpc", "rest"):
        models = aiplatform_v1.ModelServiceClient(
            transport=transport,
            client_options={"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com"},
        )
        with pytest.raises(exceptions.NotFound):
            models.get_model(name=f"projects/{local_cloud.project}/locations/{local_cloud.region}/models/17")
    after = counted(local_cloud)

    def grown(method: str) -> tuple[str, int, dict[str, int]]:
        old, new = before.get(method, Answered(service="", method=method)), after[method]
        errors = {each: new.errors[each] - old.errors.get(each, 0) for each in new.errors}
        return new.service, new.count - old.count, {each: count for each, count in errors.items() if count}

    assert {method: grown(method) for method in EXPECTED} == EXPECTED


EXPECTED = {
    "storage.objects.insert": ("Cloud Storage", 1, {}),
    "storage.objects.get": ("Cloud Storage", 1, {"NOT_FOUND": 1}),
    "bigquery.datasets.get": ("BigQuery", 1, {"NOT_FOUND": 1}),
    "BigQueryRead.CreateReadSession": ("BigQuery", 1, {"NOT_FOUND": 1}),
    "LoggingServiceV2.ListLogEntries": ("Cloud Logging", 1, {}),
    "ModelService.GetModel": ("Vertex AI", 2, {"NOT_FOUND": 2}),
}


def test_faults_are_errors_too(local_cloud, add_fault):
    """Each answer once: the injected refusal, and the try after it."""
    before = counted(local_cloud).get("storage.buckets.get", Answered(service="", method=""))
    add_fault(f"storage.buckets.get gs://{local_cloud.bucket}", "error", code="UNAVAILABLE")
    storage.Client().get_bucket(local_cloud.bucket)
    after = counted(local_cloud)["storage.buckets.get"]
    assert after.count - before.count == 2
    assert after.errors["UNAVAILABLE"] - before.errors.get("UNAVAILABLE", 0) == 1


def test_the_table_has_a_row_for_each_method(local_cloud):
    """For people; with `--minutes` each begins with its minute in UTC."""
    storage.Client().get_bucket(local_cloud.bucket)
    plain = local_cloud.run("calls").stdout.splitlines()
    assert plain[0].split() == ["service", "method", "calls", "errors"]
    assert any(line.startswith("Cloud Storage  ") and " storage.buckets.get " in line for line in plain)
    minutes = local_cloud.run("calls", "--minutes").stdout.splitlines()
    assert minutes[0].split()[0] == "minute"
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ  ", line) for line in minutes[1:])


def test_nothing_is_printed_without_a_cloud(tmp_path: Path, capsys) -> None:
    """A refusal with the way out."""
    assert cli.main(["calls", "--state", str(tmp_path)]) == 2
    assert "Start it with `localcloud up`" in capsys.readouterr().err


class TestCounts:
    """The counts themselves."""

    def test_minutes_are_apart_or_together(self, tmp_path: Path) -> None:
        """Two answers in one minute, a refusal in the next."""
        now = [NOON_S]
        counts = CallCounts(tmp_path / "calls.sqlite", lambda: now[0])
        counts.count("bigquery.tables.get")
        now[0] += 59
        counts.count("bigquery.tables.get")
        now[0] += 1
        counts.count("bigquery.tables.get", "NOT_FOUND")
        row = {"service": "BigQuery", "method": "bigquery.tables.get"}
        assert counts.read() == [Answered(**row, count=3, errors={"NOT_FOUND": 1})]
        assert counts.read(by_minute=True) == [
            Answered(**row, minute="2026-01-01T12:00Z", count=2),
            Answered(**row, minute="2026-01-01T12:01Z", count=1, errors={"NOT_FOUND": 1}),
        ]

    def test_no_call_is_lost_between_servers(self, tmp_path: Path) -> None:
        """Four stores of one file, as four processes have them."""
        stores = [FaultStore(tmp_path / "faults.sqlite") for _ in range(4)]

        def work(store: FaultStore) -> None:
            for _ in range(200):
                store.count("JobService.GetCustomJob")

        threads = [threading.Thread(target=work, args=[store]) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (row,) = CallCounts(tmp_path / "calls.sqlite").read()
        assert (row.method, row.count) == ("JobService.GetCustomJob", 800)

    def test_counting_hides_no_fault(self, tmp_path: Path) -> None:
        """One that another process adds between two calls meets the second."""
        server, other = FaultStore(tmp_path / "faults.sqlite"), FaultStore(tmp_path / "faults.sqlite")
        assert server.take("oauth2.token") is None
        server.count("oauth2.token")
        other.add(check({"target": "oauth2.token", "action": {"kind": "error"}}))
        server.count("oauth2.token")
        assert server.take("oauth2.token") is not None

    @pytest.mark.parametrize(
        ("status", "code"),
        [(200, "OK"), (308, "OK"), (400, "INVALID_ARGUMENT"), (409, "ALREADY_EXISTS"), (412, "FAILED_PRECONDITION"),
         (429, "RESOURCE_EXHAUSTED"), (500, "INTERNAL"), (503, "UNAVAILABLE"), (418, "UNKNOWN")],
    )  # fmt: skip
    def test_codes_of_http(self, status: int, code: str) -> None:
        """Of those that share a status, the most general."""
        assert code_of(status) == code


def test_an_answer_that_cannot_be_counted_stands(tmp_path, caplog):
    """A full disk, or a file that is gone: the call was answered all the same."""
    counts = CallCounts(tmp_path / "calls.sqlite")
    counts._connection.execute("DROP TABLE calls")
    counts.count("storage.objects.get")
    assert "storage.objects.get is not counted: no such table" in caplog.text
