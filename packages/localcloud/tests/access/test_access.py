"""Who may use a local cloud: its owner's programs, and nobody else on the machine or in a browser."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import time
from pathlib import Path

import google.auth
import grpc
import pytest
import requests
from google.api_core import exceptions
from google.auth import crypt, jwt
from google.cloud import bigquery, storage

from localcloud.access.bearer import BearerError, Bearers
from localcloud.access.credentials import Accounts
from localcloud.errors import LocalCloudError
from localcloud.state import State
from localcloud.supervision.processes import descendants

REST = {
    "vertex": "https://us-central1-aiplatform.googleapis.com/v1/projects/local-project/locations/us-central1/customJobs",
    "vertex faults": "https://us-central1-aiplatform.googleapis.com/faults",
    "bigquery": "https://bigquery.googleapis.com/bigquery/v2/projects/local-project/datasets",
    "storage": "https://storage.googleapis.com/storage/v1/b/local-retraining/o",
    "storage, XML": "https://storage.googleapis.com/local-retraining/name",
    "storage, another name": "https://www.googleapis.com/storage/v1/b?project=local-project",
    "logging": "https://logging.googleapis.com/v2/projects/local-project/logs",
    "iam": "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@b/allowedLocations",
    "projects": "https://cloudresourcemanager.googleapis.com/v1/projects/local-project",
}
GRPC = {
    "us-central1-aiplatform.googleapis.com": "/google.cloud.aiplatform.v1.JobService/ListCustomJobs",
    "bigquerystorage.googleapis.com": "/google.cloud.bigquery.storage.v1.BigQueryRead/CreateReadSession",
    "logging.googleapis.com": "/google.logging.v2.LoggingServiceV2/ListLogs",
}
WRONG = {
    "nothing": {},
    "a made-up token": {"Authorization": "Bearer x"},
    "a forged token": {"Authorization": "Bearer local.eyJlbWFpbCI6ICJtZSIsICJleHAiOiA5OTk5OTk5OTk5fQ.AAAA"},
    "another scheme": {"Authorization": "Basic eDp4"},
}


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("url", REST.values(), ids=REST)
def test_rest_asks_who_calls(local_cloud, url, headers):
    """On every host that answers REST."""
    answer = requests.get(url, headers=headers, timeout=10)
    if url == REST["storage, XML"]:
        assert (answer.status_code, "<Code>AuthenticationRequired</Code>" in answer.text) == (401, True)
    else:
        assert (answer.status_code, answer.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
    assert "localcloud token" in answer.text


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("host", GRPC)
def test_grpc_asks_who_calls(local_cloud, host, headers):
    """On every host that answers gRPC."""
    metadata = [(name.lower(), value) for name, value in headers.items()]
    with grpc.secure_channel(f"{host}:443", grpc.ssl_channel_credentials()) as channel:
        call = channel.unary_unary(GRPC[host])
        with pytest.raises(grpc.RpcError) as refused:
            call(b"", metadata=metadata, timeout=10)
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_the_printed_token_is_taken(local_cloud):
    """What the documented command prints, as curl sends it, and as `gcloud` would describe it."""
    token = local_cloud.run("token", "--account", "me@local-project.iam.gserviceaccount.com").stdout.strip()
    answer = requests.get(REST["bigquery"], headers={"Authorization": f"Bearer {token}"}, timeout=10)
    assert answer.status_code == 200, answer.text
    about = requests.get(f"https://oauth2.googleapis.com/tokeninfo?access_token={token}", timeout=10).json()
    assert about["email"] == "me@local-project.iam.gserviceaccount.com"
    assert requests.get("https://oauth2.googleapis.com/tokeninfo?access_token=x", timeout=10).status_code == 400


def test_a_self_signed_token_is_verified(local_cloud):
    """The key's own signature counts, for Google's addresses and for as long as it says."""
    accounts = Accounts(State(local_cloud.state_path))
    account = accounts.find_account("local-cloud@local-project.iam.gserviceaccount.com")
    signer = crypt.RSASigner.from_string(account.private_key_pem, account.key_id)

    def status(**changes: object) -> int:
        now = int(time.time())
        claims = {"iss": account.email, "sub": account.email, "aud": "https://bigquery.googleapis.com/"}
        token = jwt.encode(signer, {**claims, "iat": now, "exp": now + 600, **changes}).decode()
        return requests.get(REST["bigquery"], headers={"Authorization": f"Bearer {token}"}, timeout=10).status_code

    assert status() == 200
    assert status(aud="https://example.com/") == 401
    assert status(sub="somebody@else") == 401
    assert status(iss="somebody@local-project.iam.gserviceaccount.com") == 401
    assert status(iat=1, exp=2) == 401


def test_tokens_end(tmp_path):
    """After the time they were given for, and never begin anew; another state directory's are worth nothing."""
    clock = [1000.0]
    bearers = Bearers(State(tmp_path), now=lambda: clock[0])
    token = bearers.issue("me@here", lifetime_s=60)
    assert bearers.principal(f"Bearer {token}") == "me@here"
    clock[0] = 1060.0
    with pytest.raises(BearerError):
        bearers.principal(f"Bearer {token}")
    (tmp_path / "other").mkdir()
    with pytest.raises(BearerError):
        Bearers(State(tmp_path / "other"), now=lambda: 1000.0).principal(f"Bearer {token}")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://example.com"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "example.com"}, 421),
        ({"Host": "bigquery.googleapis.com"}, 421),
        ({"Origin": "https://storage.googleapis.com"}, 200),
    ],
)
def test_pages_of_other_sites_are_refused(local_cloud, headers, status):
    """By Origin and by Host, also with a token that holds."""
    assert local_cloud.http.get(REST["storage"], headers=headers, timeout=10).status_code == status


def test_only_the_gateway_has_a_port(local_cloud):
    """Every other server listens on a unix socket."""
    pid = int((local_cloud.state_path / "lock").read_text())
    sockets = {
        str(path.readlink())
        for child in [pid, *descendants(pid)]
        for path in Path(f"/proc/{child}/fd").glob("*")
        if path.is_symlink()
    }
    listening = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                listening.add(int(fields[1].rsplit(":", 1)[1], 16))
    state = State(local_cloud.state_path)
    assert listening == {state.read_settings().ports["gateway"]}


def test_the_directories_are_the_owners(local_cloud):
    """Nobody else can list them, nor connect to what listens in them."""
    state = State(local_cloud.state_path)
    for path in (local_cloud.state_path, state.socket_path("vertex_rest").parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for secret in ("token.key", "credentials.json", "authority.key"):
        assert stat.S_IMODE((local_cloud.state_path / secret).stat().st_mode) == 0o600


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("name", ["vertex_rest", "vertex_grpc", "bigquery_rest", "bigquery_grpc", "logging_grpc"])
def test_another_user_cannot_connect(local_cloud, name):
    """The kernel keeps other users from the sockets."""
    path = State(local_cloud.state_path).socket_path(name)
    child = os.fork()  # a new interpreter may lie where the other user cannot read it
    if child == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        with socket.socket(socket.AF_UNIX) as foreign:
            os._exit(foreign.connect_ex(str(path)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == errno.EACCES
    with socket.socket(socket.AF_UNIX) as own:
        own.connect(str(path))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "COPY (SELECT 1) TO '{folder}/written'",
        "ATTACH '{folder}/written' AS mine",
        "SET enable_external_access = true",
        "EXPORT DATA OPTIONS (uri = 'gs://../../{folder}/written*.csv', format = 'CSV') AS SELECT 1",
    ],
)
def test_sql_reaches_no_files(local_cloud, tmp_path, statement):
    """Neither to read nor to write them, whoever asks."""
    client = bigquery.Client(project=local_cloud.project)
    with pytest.raises(exceptions.GoogleAPICallError):
        client.query_and_wait(statement.format(folder=tmp_path), retry=None, job_retry=None)
    assert list(tmp_path.iterdir()) == []


def test_times_are_utc_on_every_connection(local_cloud):
    """Its settings are locked, and each request in a thread has a connection of its own."""
    client = bigquery.Client(project=local_cloud.project)
    (row,) = client.query_and_wait("SELECT CAST(TIMESTAMP '2026-01-02 03:04:05+00' AS STRING) AS text")
    assert row.text.startswith("2026-01-02 03:04:05")


def test_jobs_have_credentials_of_their_own(local_cloud):
    """A job is its service account, and its files are its own."""
    from google.cloud import aiplatform_v1 as v1

    account = "trainer@local-project.iam.gserviceaccount.com"
    client = v1.JobServiceClient(client_options={"api_endpoint": "us-central1-aiplatform.googleapis.com:443"})
    code = (
        "import google.auth, google.auth.transport.requests as t, os, urllib.request as u;"
        "c, _ = google.auth.default(scopes=['https://www.googleapis.com/auth/cloud-platform']); c.refresh(t.Request());"
        "print(c.service_account_email);"
        "print(u.urlopen('https://oauth2.googleapis.com/tokeninfo?access_token='"
        " + os.environ['GOOGLE_AUTH_TOKEN_FOR_TESTING']).read())"
    )
    pool = {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "container_spec": {
            "image_uri": local_cloud.env["RETRAINING_TRAINER_IMAGE"],
            "command": ["python", "-c", code],
        },
    }
    job = client.create_custom_job(
        parent=f"projects/{local_cloud.project}/locations/us-central1",
        custom_job={"display_name": "who", "job_spec": {"worker_pool_specs": [pool], "service_account": account}},
    )
    deadline = time.monotonic() + 60
    while (job := client.get_custom_job(name=job.name)).end_time is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert job.state == v1.JobState.JOB_STATE_SUCCEEDED, job.error
    folder = local_cloud.state_path / "vertex" / "jobs" / job.name.rsplit("/", 1)[1]
    assert (folder / "workerpool0-0.stdout.log").read_text().count(account) == 2


def test_sockets_of_a_deep_directory(tmp_path):
    """Lie beside it, for its owner alone; a folder that somebody else made there is refused."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    path = State(deep).socket_path("vertex_rest")
    try:
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
        path.parent.chmod(0o755)
        with pytest.raises(LocalCloudError, match="mode 755"):
            State(deep).socket_path("vertex_rest")
    finally:
        shutil.rmtree(path.parent)


@pytest.mark.long
def test_a_long_state_path_works(localcloud_commands, tmp_path):
    """Unix sockets have short addresses: the sockets of a deep directory lie beside it, for its owner alone."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    localcloud_commands.start_ready(deep)
    sockets = State(deep).socket_path("vertex_rest").parent
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    assert "ready" in localcloud_commands.run("status", "--state", str(deep)).stdout


def test_default_credentials_are_the_owners(local_cloud):
    """The environment's own key, by the real client."""
    credentials, _ = google.auth.default()
    assert credentials.service_account_email == "local-cloud@local-project.iam.gserviceaccount.com"
    assert storage.Client(project=local_cloud.project).bucket(local_cloud.bucket).exists()
