"""Secret Manager through Google's client, over gRPC and REST, and through Airflow's backend of secrets.

https://cloud.google.com/secret-manager/docs/reference/rest
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from google.api_core import exceptions
from google.cloud import secretmanager_v1

from localcloud.gateway.secretmanager.store import SecretStore
from tests.support.local_cloud import LocalCloud

AUTOMATIC = {"replication": {"automatic": {}}}
State = secretmanager_v1.SecretVersion.State


class Secrets:
    """Google's client, and a fresh secret without versions."""

    def __init__(self, local_cloud: LocalCloud, transport: str) -> None:
        self.client = secretmanager_v1.SecretManagerServiceClient(transport=transport)
        self.parent = f"projects/{local_cloud.project}"
        self.id = f"s-{uuid.uuid4().hex}"
        self.secret = self.create(self.id)

    def create(self, secret_id: str, **secret: Any) -> secretmanager_v1.Secret:
        """Make a secret."""
        return self.client.create_secret(parent=self.parent, secret_id=secret_id, secret={**AUTOMATIC, **secret})

    def add(self, data: bytes, **payload: Any) -> secretmanager_v1.SecretVersion:
        """Add a version to the secret."""
        return self.client.add_secret_version(parent=self.secret.name, payload={"data": data, **payload})

    def read(self, version: str = "latest") -> bytes:
        """Return what a version of the secret holds."""
        return self.client.access_secret_version(name=f"{self.secret.name}/versions/{version}").payload.data


@pytest.fixture(params=["grpc", "rest"])
def secrets(local_cloud, request) -> Secrets:
    """By both transports."""
    return Secrets(local_cloud, request.param)


def refused(error: type[Exception], *words: str) -> Any:
    """Return a context in which a call is refused with these words."""
    return pytest.raises(error, match="(?s)" + ".*".join(words))


def test_the_latest_version_is_read(secrets):
    """And each by its number, by the project's id and number."""
    assert secrets.add(b"one").state == State.ENABLED
    assert secrets.add(b"two").name == f"{secrets.secret.name}/versions/2"
    assert (secrets.read(), secrets.read("1")) == (b"two", b"one")
    by_id = f"{secrets.parent}/secrets/{secrets.id}/versions/latest"
    answer = secrets.client.access_secret_version(name=by_id)
    assert answer.name == f"{secrets.secret.name}/versions/2"
    assert answer.payload.data_crc32c == google_crc32c.value(b"two")


def test_a_secret_comes_back_as_it_was_made(secrets):
    made = secrets.create(f"{secrets.id}-b", labels={"team": "growth"}, annotations={"Who": "me"})
    found = secrets.client.get_secret(name=made.name)
    assert (dict(found.labels), dict(found.annotations)) == ({"team": "growth"}, {"Who": "me"})
    assert "automatic" in found.replication
    assert (found.etag, found.create_time) == (made.etag, made.create_time)


def test_versions_keep_the_regions_of_their_secret(secrets):
    replication = {"user_managed": {"replicas": [{"location": "us-east1"}, {"location": "us-west1"}]}}
    made = secrets.create(f"{secrets.id}-r", replication=replication)
    version = secrets.client.add_secret_version(parent=made.name, payload={"data": b"x"})
    assert [each.location for each in version.replication_status.user_managed.replicas] == ["us-east1", "us-west1"]


def test_states(secrets):
    """Disabled ones come back, destroyed ones do not."""
    name = secrets.add(b"x").name
    assert secrets.client.disable_secret_version(name=name).state == State.DISABLED
    with refused(exceptions.FailedPrecondition if is_grpc(secrets) else exceptions.BadRequest, "is in DISABLED state"):
        secrets.read()
    assert secrets.client.enable_secret_version(name=name).state == State.ENABLED
    assert secrets.read() == b"x"
    destroyed = secrets.client.destroy_secret_version(name=name)
    assert destroyed.state == State.DESTROYED
    assert destroyed.destroy_time
    for call in (secrets.client.enable_secret_version, secrets.client.destroy_secret_version):
        with pytest.raises(exceptions.GoogleAPICallError, match="is in DESTROYED state"):
            call(name=name)
    assert secrets.client.get_secret_version(name=name).state == State.DESTROYED


def is_grpc(secrets: Secrets) -> bool:
    return secrets.client.transport.kind == "grpc"


def test_lists_come_in_pages_the_newest_first(secrets):
    for number in range(3):
        secrets.add(b"%d" % number)
    pages = list(secrets.client.list_secret_versions(request={"parent": secrets.secret.name, "page_size": 2}).pages)
    numbers = [[each.name.rpartition("/")[2] for each in page.versions] for page in pages]
    assert (numbers, pages[0].total_size) == ([["3", "2"], ["1"]], 3)
    other = secrets.create(f"{secrets.id}-z")
    listed = [each.name for each in secrets.client.list_secrets(request={"parent": secrets.parent, "page_size": 1})]
    assert listed.index(other.name) < listed.index(secrets.secret.name)


def test_a_deleted_secret_is_gone_with_its_versions(secrets):
    """One of its name begins anew."""
    secrets.add(b"x")
    secrets.client.delete_secret(name=secrets.secret.name)
    with refused(exceptions.NotFound, "not found"):
        secrets.client.get_secret(name=secrets.secret.name)
    secrets.secret = secrets.create(secrets.id)
    with refused(exceptions.NotFound, "not found or has no versions"):
        secrets.read()
    assert secrets.add(b"y").name.endswith("/versions/1")


def test_etags_hold(secrets):
    """Each change gives a new one, even one that changes nothing."""
    version = secrets.add(b"x")
    disabled = secrets.client.disable_secret_version(request={"name": version.name, "etag": version.etag})
    assert secrets.client.disable_secret_version(name=version.name).etag != disabled.etag
    wrong = exceptions.FailedPrecondition if is_grpc(secrets) else exceptions.BadRequest
    with refused(wrong, "does not match"):
        secrets.client.enable_secret_version(request={"name": version.name, "etag": version.etag})
    with refused(wrong, "does not match"):
        secrets.client.delete_secret(request={"name": secrets.secret.name, "etag": '"0"'})
    secrets.client.delete_secret(request={"name": secrets.secret.name, "etag": secrets.secret.etag})


@pytest.mark.parametrize(
    ("secret_id", "secret", "words"),
    [
        ("a.b", {}, r"Secret ID \[a.b\] does not match"),
        ("a" * 256, {}, "does not match"),
        ("a", {"replication": {}}, "must say one of automatic and user_managed"),
        ("a", {"labels": {"A": "b"}}, "Invalid label 'A'"),
        ("a", {"ttl": "60s"}, "does not offer secret.ttl: secrets do not expire"),
        ("a", {"topics": [{"name": "t"}]}, "does not offer secret.topics"),
    ],
    ids=["dot", "long", "replication", "label", "ttl", "topics"],
)
def test_what_no_secret_is_is_refused(secrets, secret_id, secret, words):
    with pytest.raises(exceptions.GoogleAPICallError, match=words):
        secrets.create(secret_id, **secret)


def test_an_id_is_given_once(secrets):
    with refused(exceptions.AlreadyExists if is_grpc(secrets) else exceptions.Conflict, "already exists"):
        secrets.create(secrets.id)


def test_payloads_are_checked(secrets):
    """Size and checksum; that one was sent is remembered."""
    invalid = exceptions.InvalidArgument if is_grpc(secrets) else exceptions.BadRequest
    with refused(invalid, "cannot be empty"):
        secrets.add(b"")
    with refused(invalid, "has 65537 bytes", "at most 65536"):
        secrets.add(b"x" * 65537)
    with refused(invalid, "data_crc32c"):
        secrets.add(b"x", data_crc32c=0)
    assert not secrets.add(b"x" * 65536).client_specified_payload_checksum
    assert secrets.add(b"x", data_crc32c=google_crc32c.value(b"x")).client_specified_payload_checksum


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("{secret}/versions/9", exceptions.NotFound, r"Secret Version \[.*/versions/9\] not found"),
        ("{parent}/secrets/none/versions/1", exceptions.NotFound, "not found or has no versions"),
        ("{secret}/versions/first", exceptions.InvalidArgument, "Expected a number, or latest"),
        ("projects/none/secrets/s/versions/1", exceptions.PermissionDenied, "project none"),
        ("{parent}/secrets/a b/versions/1", exceptions.InvalidArgument, r"Secret ID \[a b\]"),
        ("{parent}/locations/us-east1/secrets/s/versions/1", exceptions.MethodNotImplemented, "regional"),
        ("{secret}", exceptions.InvalidArgument, "Expected the form"),
    ],
    ids=["version", "secret", "word", "project", "space", "region", "form"],
)
def test_what_is_not_there_is_said(local_cloud, name, error, words):
    secrets = Secrets(local_cloud, "grpc")
    secrets.add(b"x")
    with pytest.raises(error, match=words):
        secrets.client.access_secret_version(name=name.format(secret=secrets.secret.name, parent=secrets.parent))


def test_what_is_not_offered_is_refused_by_name(secrets):
    with refused(exceptions.MethodNotImplemented, "does not offer"):
        secrets.client.update_secret(secret={"name": secrets.secret.name}, update_mask={"paths": ["labels"]})


def test_faults_meet_both_transports(secrets, add_fault):
    secrets.add(b"x")
    add_fault(f"SecretManagerService.AccessSecretVersion {secrets.secret.name}", "error", code="PERMISSION_DENIED")
    with pytest.raises(exceptions.Forbidden):
        secrets.read()
    assert secrets.read() == b"x"


def test_airflow_reads_connections_and_variables(local_cloud):
    """Its backend as Composer is told to use it; what is not there is nothing."""
    from airflow.providers.google.cloud.secrets.secret_manager import CloudSecretManagerBackend

    secrets = Secrets(local_cloud, "grpc")
    uri = "postgres://user:word@host:5432/db"
    for kind, value in (("connections", uri), ("variables", "42")):
        secrets.secret = secrets.create(f"airflow-{kind}-{secrets.id}")
        secrets.add(value.encode())
    backend = CloudSecretManagerBackend()
    assert (backend.get_conn_value(secrets.id), backend.get_variable(secrets.id)) == (uri, "42")
    assert backend.get_variable("no_such_variable") is None


class TestStore:
    """What is kept in the file."""

    def test_a_restart_finds_all(self, tmp_path: Path) -> None:
        """As it was."""
        store = SecretStore(tmp_path / "secrets.sqlite", time.time_ns)
        store.create("p", "s", b"")
        store.add_version("p", "s", b"x", checked=False)
        version = SecretStore(tmp_path / "secrets.sqlite").find_version("p", "s", None)
        assert version is not None
        assert (version.number, version.data) == (1, b"x")

    def test_nobody_else_reads_the_file(self, tmp_path: Path) -> None:
        """By its mode."""
        SecretStore(tmp_path / "secrets.sqlite")
        assert (tmp_path / "secrets.sqlite").stat().st_mode & 0o077 == 0

    def test_what_is_destroyed_is_not_in_the_file(self, tmp_path: Path) -> None:
        """Not even where nothing points to."""
        store = SecretStore(tmp_path / "secrets.sqlite")
        store.create("p", "s", b"")
        store.add_version("p", "s", b"a very long and secret text", checked=False)
        store.set_state("p", "s", 1, "DESTROYED")
        assert b"very long and secret" not in (tmp_path / "secrets.sqlite").read_bytes()
        assert sqlite3.connect(tmp_path / "secrets.sqlite").execute("SELECT data FROM versions").fetchall() == [(None,)]
