"""No field of Cloud Logging is dropped: what an entry says comes back, what a request asks for holds, or is refused."""

from __future__ import annotations

import uuid

import pytest
from google.api_core import exceptions
from google.cloud.logging_v2 import types
from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client

from localcloud.fields import Fate
from localcloud.logs.service import FIELDS
from localcloud.logs.store import Entry, LogStore
from packages.localcloud.tests.google_messages import Requests, found_at, put

WRITE = "LoggingServiceV2.WriteLogEntries"
REQUESTS = Requests(
    fields=FIELDS, types={WRITE: types.WriteLogEntriesRequest.pb(types.WriteLogEntriesRequest()).DESCRIPTOR}
)
API = "https://logging.googleapis.com/v2"


@pytest.fixture(scope="module")
def client(local_cloud) -> LoggingServiceV2Client:
    """The real client."""
    return LoggingServiceV2Client()


@pytest.fixture
def log_name(local_cloud) -> str:
    """A log that has no entries yet."""
    return f"projects/{local_cloud.project}/logs/kept-{uuid.uuid4().hex[:12]}"


def entries_of(client, local_cloud, log_name: str) -> list[types.LogEntry]:
    request = {"resource_names": [f"projects/{local_cloud.project}"], "filter": f'logName="{log_name}"'}
    return list(client.list_log_entries(request=request))


def test_all_that_an_entry_says_comes_back(client, local_cloud, log_name):
    """Its request, its operation, its place in the source: what Python's handler for logging sends."""
    request = types.WriteLogEntriesRequest()
    every = [each for each in REQUESTS.places(WRITE, Fate.KEPT) if each.shown().startswith("entries[0].")]
    places = [each for each in every if each.field.name != "text_payload"]
    assert len(places) > 30
    own = {"log_name": log_name}
    given = {place: put(types.WriteLogEntriesRequest.pb(request), place, own.get(place.field.name)) for place in places}
    client.write_log_entries(request=request)
    found = types.WriteLogEntriesRequest(entries=entries_of(client, local_cloud, log_name))
    assert len(found.entries) == 1
    for place, value in given.items():
        assert found_at(types.WriteLogEntriesRequest.pb(found), place) == value, place.shown()
    assert found.entries[0].receive_timestamp.year > 2020


def test_of_some_entries_the_right_ones_are_written(client, local_cloud, log_name):
    """With `partial_success`; else none is. The caller is told of one that is not."""
    entries = [{"log_name": log_name, "text_payload": "right"}, {"log_name": "nowhere", "text_payload": "wrong"}]
    with pytest.raises(exceptions.InvalidArgument, match="Invalid log name 'nowhere'"):
        client.write_log_entries(request={"entries": entries})
    assert entries_of(client, local_cloud, log_name) == []
    with pytest.raises(exceptions.InvalidArgument, match="Invalid log name 'nowhere'"):
        client.write_log_entries(request={"entries": entries, "partial_success": True})
    assert [each.text_payload for each in entries_of(client, local_cloud, log_name)] == ["right"]


def test_a_dry_run_writes_nothing(client, local_cloud, log_name):
    client.write_log_entries(request={"entries": [{"log_name": log_name, "text_payload": "x"}], "dry_run": True})
    assert entries_of(client, local_cloud, log_name) == []


def test_the_names_of_logs_come_in_pages(client, local_cloud, log_name):
    """Over gRPC, and over REST, where they were all given whatever was asked for."""
    names = [f"{log_name}-{number}" for number in range(3)]
    client.write_log_entries(request={"entries": [{"log_name": name, "text_payload": "x"} for name in names]})
    parent = f"projects/{local_cloud.project}"
    pages = list(client.list_logs(request={"parent": parent, "page_size": 1}).pages)
    assert all(len(page.log_names) == 1 for page in pages)
    assert [name for page in pages for name in page.log_names if name.startswith(log_name)] == names
    answer = local_cloud.http.get(f"{API}/{parent}/logs", params={"pageSize": 1, "pageToken": names[0]}).json()
    assert answer == {"logNames": [names[1]], "nextPageToken": names[1]}


def test_what_is_not_offered_is_refused_by_name(client, local_cloud):
    parent = f"projects/{local_cloud.project}"
    with pytest.raises(exceptions.MethodNotImplemented, match="does not offer resource_names: name the project"):
        client.list_logs(request={"parent": parent, "resource_names": [parent]})
    for query, status in (("callback=f", 501), ("colour=red", 400), ("alt=json", 200), ("prettyPrint=true", 200)):
        assert local_cloud.http.get(f"{API}/{parent}/logs?{query}").status_code == status, query
    answer = local_cloud.http.post(f"{API}/entries:list?filter=x", json={"resourceNames": [parent]})
    assert (answer.status_code, "takes its fields in its body" in answer.text) == (400, True)


def test_a_file_of_an_older_local_cloud_takes_them_too(tmp_path):
    """It has no column for them."""
    import sqlite3

    path = tmp_path / "logs.sqlite"
    LogStore(path)
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE entries DROP COLUMN more")
    connection.commit()
    connection.close()
    store = LogStore(path)
    store.append([Entry(log_name="projects/p/logs/l", timestamp_ns=1, text_payload="x", more={"trace": "t"})])
    (entry,), _ = store.page()
    assert entry.more == {"trace": "t"}
