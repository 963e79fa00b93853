"""Calls as the local cloud counts them: by minute and name, for every service, with or without a fault in force."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.cloud import aiplatform_v1, bigquery, bigquery_storage_v1, storage
from google.cloud import logging as cloud_logging
from google.cloud.bigquery_storage_v1 import types

from localcloud.faults import FaultStore, check

Counted = Callable[[], Counter[str]]


@pytest.fixture
def counted(local_cloud) -> Counted:
    """Say what came since the test began, by name."""

    def read() -> Counter[str]:
        url = f"https://{local_cloud.region}-aiplatform.googleapis.com/calls"
        answer = requests.get(url, headers=local_cloud.headers, timeout=60)
        assert answer.status_code == 200, answer.text
        found: Counter[str] = Counter()
        for each in answer.json()["calls"]:
            found[each["event"]] += each["calls"]
        return found

    before = read()
    return lambda: read() - before


def test_calls_of_every_service_are_counted(local_cloud, counted):
    """Over REST and gRPC, those of a refused method too; nothing else is."""
    name = uuid.uuid4().hex
    blob = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket).blob(f"calls/{name}")
    blob.upload_from_string(b"x")
    blob.download_as_bytes()
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset(f"calls_{name}")
    client.query_and_wait(f"CREATE TABLE calls_{name}.numbers AS SELECT 1 AS n")
    _read(client.project, f"calls_{name}")
    jobs = aiplatform_v1.JobServiceClient(
        client_options={"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com"}
    )
    parent = f"projects/{local_cloud.project}/locations/{local_cloud.region}"
    jobs.list_custom_jobs(parent=parent)
    for _ in range(2):
        with pytest.raises(exceptions.NotFound):
            jobs.get_custom_job(name=f"{parent}/customJobs/404")
    list(cloud_logging.Client(project=local_cloud.project).list_entries(max_results=1))
    calls = counted()
    expected = {
        "storage.objects.insert": 1,
        "storage.objects.get": 1,
        "bigquery.datasets.insert": 1,
        "BigQueryRead.CreateReadSession": 1,
        "BigQueryRead.ReadRows": 1,
        "JobService.ListCustomJobs": 1,
        "JobService.GetCustomJob": 2,
        "LoggingServiceV2.ListLogEntries": 1,
    }
    assert {event: calls[event] for event in expected} == expected
    assert calls["bigquery.jobs.query"] + calls["bigquery.jobs.insert"] == 1
    assert not any(event.startswith(("Query.", "Job.", "Replica.")) for event in calls)


def _read(project: str, dataset: str) -> None:
    reader = bigquery_storage_v1.BigQueryReadClient()
    session = reader.create_read_session(
        parent=f"projects/{project}",
        read_session=types.ReadSession(
            table=f"projects/{project}/datasets/{dataset}/tables/numbers", data_format=types.DataFormat.ARROW
        ),
        max_stream_count=1,
    )
    assert sum(batch.row_count for batch in reader.read_rows(session.streams[0].name)) == 1


def test_a_call_that_meets_a_fault_counts_and_uses_it_up_once(local_cloud, counted, add_fault):
    """Two tries of one upload are two calls; the fault hit one of them."""
    name = f"calls/{uuid.uuid4().hex}"
    add_fault(f"storage.objects.insert gs://*/{name}", "error", count=1)
    blob = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket).blob(name)
    with pytest.raises(exceptions.ServiceUnavailable):
        blob.upload_from_string(b"x", retry=None)
    blob.upload_from_string(b"x", retry=None)
    assert counted()["storage.objects.insert"] == 2


def test_counting_takes_no_fault(tmp_path: Path):
    """A fault for the next call is there after a thousand were counted."""
    store = FaultStore(tmp_path / "faults.sqlite")
    fault: dict[str, Any] = {"target": "JobService.*", "count": 1, "action": {"kind": "error"}}
    store.add(check(fault))
    for _ in range(1000):
        store.count("JobService.GetCustomJob")
    assert len(store.list_all()) == 1
    assert store.take("JobService.GetCustomJob") is not None
    assert store.list_all() == []


def test_servers_count_together_and_forget_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two stores of one file are two processes; the minute is that of the clock."""
    now = [time.time()]
    monkeypatch.setattr("localcloud.faults.time.time", lambda: now[0])
    one, other = (FaultStore(tmp_path / "faults.sqlite") for _ in range(2))
    for store in (one, other, other):
        store.count("a.b")
    minute = int(now[0] // 60)
    assert [(each.minute, each.event, each.calls) for each in one.read_counts()] == [(minute, "a.b", 3)]
    now[0] += 60
    one.count("a.b")
    assert [each.calls for each in other.read_counts()] == [3, 1]
    now[0] += 24 * 3600
    other.count("c.d")
    assert [(each.minute, each.event) for each in one.read_counts()] == [
        (minute + 1, "a.b"),
        (minute + 1 + 24 * 60, "c.d"),
    ]
