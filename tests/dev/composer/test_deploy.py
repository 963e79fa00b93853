"""`make deploy`: the environment's bucket gets the bundle, and what is not ours stays as it is."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from composer import __main__ as command
from composer.bucket import RECORD, DeployError, EnvironmentBucket
from composer.changes import Kind, plan_changes
from tests.support.product import REPOSITORY

FIRST = {
    "plugins/retraining/core/a.py": b"a = 1\n",
    "plugins/retraining/old.py": b"old = 1\n",
    "dags/retrain.py": b"import retraining\n",
    "dags/include/models/flights.yaml": b"name: flights\n",
}
SECOND = {**FIRST, "plugins/retraining/core/a.py": b"a = 2\n", "dags/score.py": b"import retraining\n"}
del SECOND["plugins/retraining/old.py"]
THEIRS = {"dags/their_dag.py": b"theirs\n", "plugins/their_plugin.py": b"theirs\n"}


class Killed(BaseException):
    """The process is gone: nothing catches it."""


@pytest.fixture
def bucket(local_cloud) -> Iterator[EnvironmentBucket]:
    """The bucket of the environment `nightly`, with files of another team."""
    from google.cloud import storage

    made = storage.Client().bucket(f"composer-{uuid.uuid4().hex[:12]}")
    made.create(location=local_cloud.region)
    for name, content in THEIRS.items():
        made.blob(name).upload_from_string(content)
    yield EnvironmentBucket(made.name)
    made.delete(force=True)


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def contents(bucket: EnvironmentBucket) -> dict[str, bytes]:
    from google.cloud import storage

    blobs = storage.Client().list_blobs(bucket.name)
    return {blob.name: blob.download_as_bytes() for blob in blobs if blob.name != RECORD}


def deploy(bucket: EnvironmentBucket, folder: Path, **options: bool) -> None:
    command.deploy(bucket, folder, "a1b2c3", **{"dry": False, "force": False, **options})


@pytest.mark.cloud
def test_a_dry_run_prints_the_order_and_changes_nothing(bucket, tmp_path, capsys) -> None:
    """Plugins come before the DAGs that import them, what is gone goes last."""
    deploy(bucket, write(tmp_path / "first", FIRST))
    before = contents(bucket)
    capsys.readouterr()
    deploy(bucket, write(tmp_path / "second", SECOND), dry=True)
    assert capsys.readouterr().out.splitlines() == [
        "replace plugins/retraining/core/a.py",
        "add     dags/score.py",
        "remove  plugins/retraining/old.py",
        "1 to replace, 1 to add, 1 to remove; a1b2c3 is there, a1b2c3 goes there",
    ]
    assert contents(bucket) == before == {**FIRST, **THEIRS}


@pytest.mark.cloud
def test_killed_before_any_write_and_run_again_it_ends_the_same(bucket, tmp_path, monkeypatch) -> None:
    """Nobody has to say FORCE after that, and the files of others stay."""
    first, second = write(tmp_path / "first", FIRST), write(tmp_path / "second", SECOND)
    writes = 0
    apply, write_record = EnvironmentBucket.apply, EnvironmentBucket.write_record

    def counted(method: Any) -> Any:
        def call(*arguments: Any) -> Any:
            nonlocal writes
            if writes == 0:
                raise Killed
            writes -= 1
            return method(*arguments)

        return call

    deploy(bucket, first)
    for allowed in range(6):  # the record, three changes, the record
        with monkeypatch.context() as patch:
            patch.setattr(EnvironmentBucket, "apply", counted(apply))
            patch.setattr(EnvironmentBucket, "write_record", counted(write_record))
            writes = allowed
            if allowed < 5:
                with pytest.raises(Killed):
                    deploy(bucket, second)
        deploy(bucket, second)
        assert contents(bucket) == {**SECOND, **THEIRS}
        deploy(bucket, first)
        assert contents(bucket) == {**FIRST, **THEIRS}


@pytest.mark.cloud
def test_what_somebody_changed_is_named_and_only_forced(bucket, tmp_path) -> None:
    """A file edited in the bucket, and one of the same name that was never ours."""
    from google.cloud import storage

    remote = storage.Client().bucket(bucket.name)
    remote.blob("dags/score.py").upload_from_string(b"theirs\n")
    deploy(bucket, write(tmp_path / "first", FIRST))
    remote.blob("plugins/retraining/old.py").upload_from_string(b"a hot fix\n")
    second = write(tmp_path / "second", SECOND)
    with pytest.raises(DeployError, match=r"2 files .* such as dags/score\.py.*FORCE=1"):
        deploy(bucket, second)
    assert contents(bucket) == {
        **FIRST,
        **THEIRS,
        "dags/score.py": b"theirs\n",
        "plugins/retraining/old.py": b"a hot fix\n",
    }
    deploy(bucket, second, force=True)
    assert contents(bucket) == {**SECOND, **THEIRS}


def with_checksum_of(wanted: bytes, start: bytes) -> bytes:
    """Bytes that begin otherwise and have the same CRC32C: four more bytes reach any checksum."""
    target = int.from_bytes(google_crc32c.Checksum(wanted).digest(), "big")
    before = google_crc32c.value(start + b"\0\0\0\0")
    flips = [google_crc32c.value(start + (1 << bit).to_bytes(4, "little")) ^ before for bit in range(32)]
    rows = [(flip, 1 << bit) for bit, flip in enumerate(flips)]  # CRC is linear: solve for the bits to flip
    missing, chosen = target ^ before, 0
    for place in reversed(range(32)):
        pivot = next(row for row in rows if row[0] >> place & 1)
        rows = [(row[0] ^ pivot[0], row[1] ^ pivot[1]) if row[0] >> place & 1 else row for row in rows if row != pivot]
        if missing >> place & 1:
            missing, chosen = missing ^ pivot[0], chosen ^ pivot[1]
    return start + chosen.to_bytes(4, "little")


@pytest.mark.cloud
def test_a_file_changed_to_the_same_checksum_is_seen(bucket, tmp_path) -> None:
    """CRC32C finds broken wires; who changes a file on purpose keeps it. The next upload names the file."""
    from google.cloud import storage

    first = write(tmp_path / "first", FIRST)
    deploy(bucket, first)
    forged = with_checksum_of(FIRST["dags/retrain.py"], b"import theirs  #")
    assert google_crc32c.value(forged) == google_crc32c.value(FIRST["dags/retrain.py"])
    storage.Client().bucket(bucket.name).blob("dags/retrain.py").upload_from_string(forged)
    with pytest.raises(DeployError, match=r"1 files .* such as dags/retrain\.py.*FORCE=1"):
        deploy(bucket, first)
    deploy(bucket, first, force=True)
    assert contents(bucket) == {**FIRST, **THEIRS}


@pytest.mark.cloud
def test_a_record_of_an_earlier_release_proves_nothing(bucket, tmp_path, capsys) -> None:
    """Its checksums could be kept: what differs is replaced by force once; then the digests are there."""
    from google.cloud import storage

    remote = storage.Client().bucket(bucket.name)
    for name, content in FIRST.items():
        remote.blob(name).upload_from_string(content)
    record = {"schema_version": 1, "commit": "a", "files": {name: ["AAAAAA=="] for name in FIRST}}
    remote.blob(RECORD).upload_from_string(json.dumps(record))
    second = write(tmp_path / "second", SECOND)
    with pytest.raises(DeployError, match=r"2 files"):
        deploy(bucket, second)
    assert "no digest of it" in capsys.readouterr().out
    deploy(bucket, second, force=True)
    deploy(bucket, write(tmp_path / "first", FIRST))
    assert contents(bucket) == {**FIRST, **THEIRS}


@pytest.mark.cloud
def test_of_two_at_once_one_is_told_so(bucket, tmp_path, monkeypatch) -> None:
    """Whoever looked before the other wrote does not write over it; the bucket has the other's bundle, whole."""
    first, second = write(tmp_path / "first", FIRST), write(tmp_path / "second", SECOND)
    listed = EnvironmentBucket.list
    slow = EnvironmentBucket(bucket.name)

    def list_and_wait(self: EnvironmentBucket, names: Any) -> Any:
        found = listed(self, names)
        if self is slow:
            monkeypatch.undo()
            deploy(bucket, second)
        return found

    monkeypatch.setattr(EnvironmentBucket, "list", list_and_wait)
    with pytest.raises(DeployError, match="another upload"):
        deploy(slow, first)
    assert contents(bucket) == {**SECOND, **THEIRS}


@pytest.mark.cloud
def test_another_environments_bucket_is_refused(bucket, monkeypatch, capsys) -> None:
    """The local storage server forgets a bucket's labels, as a bucket that Composer did not make has none."""
    assert bucket.require_environment("nightly").endswith("it has no label goog-composer-environment")
    monkeypatch.setattr("google.cloud.storage.Bucket.labels", {"goog-composer-environment": "nightly"})
    assert bucket.require_environment("nightly") == f"gs://{bucket.name} is the bucket of nightly"
    asked = ["--environment", "staging", "--bucket", f"gs://{bucket.name}"]
    assert command.main(asked) == 1
    assert "is the bucket of the environment 'nightly', not of 'staging'" in capsys.readouterr().err
    assert command.main(["--environment", "staging", "--bucket", "no-such-bucket-here"]) == 1
    assert "gcloud composer environments describe staging" in capsys.readouterr().err


@pytest.mark.cloud
def test_without_a_bundle_nothing_is_removed(bucket, tmp_path) -> None:
    """In another folder than the checkout's there is no `build/bundle`: that is not a release without files."""
    deploy(bucket, write(tmp_path / "first", FIRST))
    half = write(tmp_path / "half", {name: content for name, content in FIRST.items() if name.startswith("plugins/")})
    for folder in (tmp_path / "none", half):
        with pytest.raises(DeployError, match=r"dags has no file: build it by `make bundle`"):
            deploy(bucket, folder)
    assert contents(bucket) == {**FIRST, **THEIRS}


@pytest.mark.cloud
@pytest.mark.parametrize(
    "record",
    [b"{", b"[]", b'{"schema_version": 3}', b'{"schema_version": 1}', b'{"schema_version": 1, "files": {"a": 1}}'],
)
def test_a_record_that_is_none_is_named(bucket, tmp_path, record: bytes) -> None:
    from google.cloud import storage

    storage.Client().bucket(bucket.name).blob(RECORD).upload_from_string(record)
    with pytest.raises(DeployError, match=rf"gs://{bucket.name}/{RECORD}: "):
        deploy(bucket, write(tmp_path / "first", FIRST))
    assert contents(bucket) == THEIRS


def test_what_is_as_it_should_be_is_left_alone() -> None:
    """Files that were brought by hand before are ours once they are the same."""
    assert plan_changes({"dags/a.py": "1"}, {"dags/a.py": "1", "dags/b.py": "2"}, {}) == []
    (gone,) = plan_changes({}, {"dags/a.py": "1"}, {"dags/a.py": frozenset({"0", "1"}), "dags/b.py": frozenset({"2"})})
    assert (gone.kind, gone.name, gone.foreign) == (Kind.REMOVE, "dags/a.py", "")


@pytest.mark.cloud
def test_a_model_that_does_not_validate_keeps_everything_as_it_was(bucket, tmp_path) -> None:
    """By the command that a person types: the file, the place and the way out are named, and nothing was written."""
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", "--shared", str(REPOSITORY), str(checkout)], check=True)
    (checkout / ".venv").symlink_to(REPOSITORY / ".venv")
    model = checkout / "include" / "models" / "flight_delays.yaml"
    model.write_text(model.read_text().replace("kind: binary", "kind: binry"))
    command = ["make", "--old-file", ".venv/airflow/.ready", "deploy", "ENV=nightly", f"BUCKET={bucket.name}"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    told = done.stdout + done.stderr
    assert "flight_delays.yaml" in told
    assert "'binry'" in told
    assert "'binary'" in told
    assert contents(bucket) == THEIRS
