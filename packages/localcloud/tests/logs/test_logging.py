"""Cloud Logging through the real client (gRPC), through REST, and from the store that other servers write to."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest
from google.api_core import exceptions
from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client

from localcloud.logs.store import SEVERITIES, Entry, LogStore

START_NS = 1_384_916_400 * 10**9  # 2013-11-20T03:00:00Z


@pytest.fixture(scope="module")
def client(local_cloud) -> LoggingServiceV2Client:
    """The real client."""
    return LoggingServiceV2Client()


@pytest.fixture
def job(local_cloud) -> str:
    """A job of two replicas with 25 lines each, written by another process as the job runner does."""
    job_id = uuid.uuid4().hex
    store = LogStore(local_cloud.state_path / "logs.sqlite")
    store.append(
        Entry.of_job(
            project=local_cloud.project,
            job_id=job_id,
            task_name=f"workerpool{pool}-0",
            message=f"line {line} of {pool}" if pool == 0 else {"message": f"line {line} of {pool}", "step": line},
            severity="ERROR" if line == 7 else "INFO",
            timestamp_ns=START_NS + line * 10**9 + pool,
            labels={"ml.googleapis.com/trial_id": str(pool)},
        )
        for pool in (0, 1)
        for line in range(25)
    )
    return job_id


def texts(entries) -> list[str]:
    return [each.text_payload or each.json_payload["message"] for each in entries]


def entries_of(client, local_cloud, job, more="", **request):
    text = f'resource.type="ml_job" AND resource.labels.job_id="{job}" {more}'
    request = {"resource_names": [f"projects/{local_cloud.project}"], "filter": text, **request}
    return client.list_log_entries(request=request)


def test_entries_of_a_job_in_order_over_pages(client, local_cloud, job):
    """All lines, oldest first, seven at a time, as Vertex AI writes them."""
    found = list(entries_of(client, local_cloud, job, page_size=7))
    assert texts(found) == [f"line {line} of {pool}" for line in range(25) for pool in (0, 1)]
    assert found[0].resource.type == "ml_job"
    assert dict(found[0].resource.labels) == {
        "job_id": job,
        "project_id": local_cloud.project,
        "task_name": "workerpool0-0",
    }
    assert found[0].log_name == f"projects/{local_cloud.project}/logs/workerpool0-0"
    assert found[0].timestamp == dt.datetime(2013, 11, 20, 3, tzinfo=dt.UTC)
    assert found[1].json_payload["step"] == 0
    assert len({each.insert_id for each in found}) == 50


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ("severity>=ERROR", 2),
        ("AND severity = INFO", 48),
        ('AND timestamp>="2013-11-20T03:00:20Z"', 10),
        ('AND timestamp>="2013-11-20T03:00:20+0000"', 10),
        ('AND timestamp>="2013-11-20T04:00:20.000+0100"', 10),
        ('timestamp>"2013-11-20T03:00:20Z" timestamp<="2013-11-20T03:00:22.000000001Z"', 5),
        ('AND logName="projects/local-project/logs/workerpool1-0"', 25),
        ('AND log_id("workerpool0-0")', 25),
        ('AND resource.labels.task_name="workerpool1-0"', 25),
        ('AND labels."ml.googleapis.com/trial_id"="1"', 25),
        ('AND (textPayload:"line 1 " OR jsonPayload.message:"LINE 2 ")', 2),
        ('AND NOT severity=ERROR AND jsonPayload.step="3"', 1),
        ("AND -severity=ERROR", 48),
        ('AND textPayload=~"^line 2[0-4] "', 5),
        ('AND "line 24"', 2),
    ],
)
def test_filters(client, local_cloud, job, more, count):
    """The query language, as far as it is used."""
    assert len(list(entries_of(client, local_cloud, job, more))) == count


def test_newest_first(client, local_cloud, job):
    """By order_by."""
    found = texts(entries_of(client, local_cloud, job, order_by="timestamp desc", page_size=9))
    assert found == [f"line {line} of {pool}" for line in reversed(range(25)) for pool in (1, 0)]


@pytest.mark.parametrize(
    "text", ["severity>=LOUD", "nope=1", 'timestamp>"yesterday"', "(severity=INFO", "AND", "a=", '"x']
)
def test_bad_filters_are_refused(client, local_cloud, text):
    """INVALID_ARGUMENT with the reason, not an empty answer."""
    with pytest.raises(exceptions.InvalidArgument):
        client.list_log_entries(resource_names=[f"projects/{local_cloud.project}"], filter=text)


def test_other_projects_have_no_entries_of_it(client, job):
    """Resource names limit what is listed."""
    assert (
        list(client.list_log_entries(resource_names=["projects/other"], filter=f'resource.labels.job_id="{job}"')) == []
    )
    with pytest.raises(exceptions.InvalidArgument):
        client.list_log_entries(resource_names=[], filter="")


def test_write_through_the_service(client, local_cloud):
    """Defaults of the request reach each entry; the same entry twice is kept once."""
    label = uuid.uuid4().hex
    log_name = f"projects/{local_cloud.project}/logs/app"
    entries = [
        {"text_payload": "hello", "insert_id": "1", "timestamp": "2013-11-20T03:00:00Z"},
        {"json_payload": {"message": "structured", "n": 1.5}, "insert_id": "2", "severity": "WARNING"},
    ]
    for _ in range(2):
        client.write_log_entries(
            log_name=log_name, resource={"type": "global"}, labels={"label": label}, entries=entries[:1]
        )
    client.write_log_entries(
        log_name=log_name, resource={"type": "global"}, labels={"label": label}, entries=entries[1:]
    )
    found = list(
        client.list_log_entries(resource_names=[f"projects/{local_cloud.project}"], filter=f'labels.label="{label}"')
    )
    assert texts(found) == ["hello", "structured"]
    assert (found[1].severity, found[1].json_payload["n"]) == (SEVERITIES["WARNING"], 1.5)
    assert log_name in client.list_logs(parent=f"projects/{local_cloud.project}")
    with pytest.raises(exceptions.InvalidArgument, match="log name"):
        client.write_log_entries(log_name="app", resource={"type": "global"}, entries=[{"text_payload": "x"}])


def test_a_deleted_log_is_gone(client, local_cloud):
    """Its entries and its name, and no other log's; there is nothing left to delete then."""
    parent = f"projects/{local_cloud.project}"
    gone, other = (f"{parent}/logs/{uuid.uuid4().hex}%2F{what}" for what in ("gone", "other"))
    for name in (gone, other):
        client.write_log_entries(log_name=name, resource={"type": "global"}, entries=[{"text_payload": "hello"}])
    client.delete_log(log_name=gone)
    assert [list(client.list_log_entries(resource_names=[parent], filter=f'logName="{gone}"'))] == [[]]
    assert {gone, other} & set(client.list_logs(parent=parent)) == {other}
    with pytest.raises(exceptions.NotFound, match="Log not found"):
        client.delete_log(log_name=gone)
    with pytest.raises(exceptions.InvalidArgument, match="log name"):
        client.delete_log(log_name=f"{parent}/logs/a/b")
    url = f"https://logging.googleapis.com/v2/{other}"
    assert [local_cloud.http.delete(url, timeout=10).status_code for _ in range(2)] == [200, 404]


def test_rest(local_cloud, job):
    """entries:list and entries:write in JSON."""
    base = "https://logging.googleapis.com/v2/entries"
    entry = {
        "logName": f"projects/{local_cloud.project}/logs/app",
        "resource": {"type": "ml_job", "labels": {"job_id": job}},
        "jsonPayload": {"message": "by REST"},
        "timestamp": "2013-11-20T04:00:00.123456789Z",
        "severity": "NOTICE",
    }
    assert local_cloud.http.post(f"{base}:write", json={"entries": [entry]}, timeout=10).status_code == 200
    body = {
        "resourceNames": [f"projects/{local_cloud.project}"],
        "filter": f'resource.labels.job_id="{job}" severity=NOTICE',
        "pageSize": 5,
    }
    (found,) = local_cloud.http.post(f"{base}:list", json=body, timeout=10).json()["entries"]
    assert {key: found[key] for key in entry if key != "resource"} == {
        k: v for k, v in entry.items() if k != "resource"
    }
    refused = local_cloud.http.post(f"{base}:list", json={**body, "filter": "("}, timeout=10)
    assert (refused.status_code, refused.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
