"""The services that the gateway answers itself: who may call them, and their faults, over gRPC and REST."""

from __future__ import annotations

import uuid

import grpc
import pytest
import requests
from google.api_core import exceptions
from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
from google.cloud.monitoring_v3 import MetricServiceClient, types
from google.cloud.resourcemanager_v3 import ProjectsClient

from localcloud.logs.store import Entry, LogStore
from localcloud.services import services

OPEN = "oauth2.googleapis.com"  # who asks for a token has none
HOSTS = {host.name for service in services() for host in service.hosts if host.rest and not host.pattern} - {OPEN}
ENTRIES = "https://logging.googleapis.com/v2/entries:list"


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_every_host_asks_who_calls(local_cloud, host):
    """Before anything else, of a service that was added yesterday too."""
    answer = requests.get(f"https://{host}/", timeout=10)
    is_xml = host == "storage.googleapis.com"  # its paths without /storage/v1 are the XML API's
    said = "<Code>AuthenticationRequired</Code>" in answer.text if is_xml else answer.json()["error"]["status"]
    assert (answer.status_code, said) == (401, True if is_xml else "UNAUTHENTICATED")


@pytest.fixture(scope="module")
def logs(local_cloud) -> LoggingServiceV2Client:
    """The real client."""
    return LoggingServiceV2Client()


def test_logging_is_out_of_quota(local_cloud, logs, add_fault):
    """The next two calls by either port, for this project's; then all is well."""
    project = f"projects/{local_cloud.project}"
    add_fault("LoggingServiceV2.ListLogEntries projects/another", "error")
    add_fault(f"LoggingServiceV2.ListLogEntries {project}", "error", count=2, code="RESOURCE_EXHAUSTED", message="no")
    with pytest.raises(exceptions.ResourceExhausted, match="no"):
        logs.list_log_entries(resource_names=[project], retry=None)
    refused = local_cloud.http.post(ENTRIES, json={"resourceNames": [project]}, timeout=10)
    assert (refused.status_code, refused.json()["error"]["message"]) == (429, "no")
    assert local_cloud.http.post(ENTRIES, json={"resourceNames": [project]}, timeout=10).status_code == 200
    logs.list_log_entries(resource_names=[project], retry=None)


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_a_lost_response_leaves_what_was_done(local_cloud, logs, add_fault, transport):
    """A log that nobody heard the end of is gone."""
    name = f"projects/{local_cloud.project}/logs/lost-{uuid.uuid4().hex}"
    LogStore(local_cloud.state_path / "logs.sqlite").append([Entry(log_name=name, timestamp_ns=1, text_payload="x")])
    add_fault("LoggingServiceV2.DeleteLog", "lost_response")
    if transport == "grpc":
        with pytest.raises(exceptions.ServiceUnavailable, match="Injected fault"):
            logs.delete_log(log_name=name, retry=None)
    else:
        answer = local_cloud.http.delete(f"https://logging.googleapis.com/v2/{name}", timeout=10)
        assert (answer.status_code, answer.json()["error"]["status"]) == (503, "UNAVAILABLE")
    with pytest.raises(exceptions.NotFound):
        logs.delete_log(log_name=name, retry=None)


def test_monitoring_and_projects_fail(local_cloud, add_fault):
    """By the codes that were asked for; a project over REST too."""
    project = f"projects/{local_cloud.project}"
    add_fault("MetricService.ListTimeSeries", "error", code="INTERNAL")
    with pytest.raises(exceptions.InternalServerError):
        MetricServiceClient().list_time_series(request=types.ListTimeSeriesRequest(name=project), retry=None)
    add_fault("Projects.*", "error", count=2, code="NOT_FOUND")
    with pytest.raises(exceptions.NotFound):
        ProjectsClient().get_project(name=project, retry=None)
    url = f"https://cloudresourcemanager.googleapis.com/v1/{project}"
    assert [local_cloud.http.get(url, timeout=10).status_code for _ in range(2)] == [404, 200]


def test_no_token_is_given(local_cloud, add_fault):
    """Neither to who has a key, nor to who acts as a certain account."""
    account = f"trainer@{local_cloud.project}.iam.gserviceaccount.com"
    url = f"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{account}:generateAccessToken"
    add_fault("oauth2.token", "error")
    add_fault(f"iamcredentials.generateAccessToken {account}", "error", code="PERMISSION_DENIED")
    assert requests.post("https://oauth2.googleapis.com/token", data={}, timeout=10).status_code == 503
    assert local_cloud.http.post(url.replace("trainer@", "other@"), json={}, timeout=10).status_code == 200
    assert [local_cloud.http.post(url, json={}, timeout=10).status_code for _ in range(2)] == [403, 200]


@pytest.mark.parametrize("path", ["/token/", "/authorize"])
def test_unknown_paths_of_oauth2(local_cloud, path):
    """Are said to be unknown to somebody without a token, too."""
    assert requests.post(f"https://oauth2.googleapis.com{path}", timeout=10).status_code == 404


def test_a_method_that_nobody_answers(local_cloud):
    """Over gRPC it is not there, fault or not."""
    with grpc.secure_channel("logging.googleapis.com:443", grpc.ssl_channel_credentials()) as channel:
        call = channel.unary_unary("/google.logging.v2.LoggingServiceV2/TailLogEntries")
        with pytest.raises(grpc.RpcError) as refused:
            call(b"", metadata=[("authorization", local_cloud.headers["Authorization"])], timeout=10)
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
