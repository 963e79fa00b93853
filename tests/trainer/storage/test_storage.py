"""Files on disk: whole or not there, written once."""

from __future__ import annotations

import errno
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.refusals import refuses
from trainer.errors import RequestError, StorageError
from trainer.storage import Storage, in_parallel, join_uri, room_for
from trainer.storage.disk import Disk


@pytest.fixture
def storage() -> Storage:
    return Storage()


def test_a_written_object_keeps_its_first_content(storage: Storage, tmp_path: Path) -> None:
    uri = str(tmp_path / "deep/er/x.json")
    assert storage.write_once(uri, b"first")
    assert not storage.write_once(uri, b"second")
    assert storage.read_object(uri) == b"first"
    assert storage.size(uri) == 5
    assert Path(uri).stat().st_mode & 0o777 == 0o644


def test_replace_writes_over(storage: Storage, tmp_path: Path) -> None:
    uri = str(tmp_path / "x")
    storage.replace(uri, b"1")
    storage.replace(uri, b"22")
    assert storage.read_object(uri) == b"22"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_is_missing_reads_as_none(storage: Storage, tmp_path: Path) -> None:
    uri = str(tmp_path / "none")
    assert storage.read_object(uri) is None
    assert storage.size(uri) is None
    assert not storage.exists(uri)
    assert not storage.download(uri, tmp_path / "copy")
    assert storage.list_objects(str(tmp_path / "folder/")) == []
    storage.delete_object(uri)


def test_a_scratch_file_that_is_not_published_leaves_nothing(storage: Storage, tmp_path: Path) -> None:
    with storage.scratch(str(tmp_path / "x")) as file:
        file.write(b"half")
        assert not list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


def test_a_killed_writer_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from trainer.storage import Storage; s = Storage()\n"
        "with s.scratch(sys.argv[1]) as file:\n    file.write(b'x' * 100000); file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "x")], check=False)
    assert ended.returncode == -9
    assert not list(tmp_path.iterdir())


def test_a_digest_is_of_the_content_and_none_without_it(storage: Storage, tmp_path: Path) -> None:
    content = b"0123456789" * 1_000_000
    storage.write_once(str(tmp_path / "x"), content)
    assert storage.sha256(str(tmp_path / "x")) == hashlib.sha256(content).hexdigest()
    assert storage.sha256(str(tmp_path / "y")) is None


FILL = """
import resource, signal, sys
from trainer.storage import Storage
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
Storage().write_once(sys.argv[1], bytes(2 << 20))
"""


def test_a_file_that_finds_no_room_is_named_and_not_there(tmp_path: Path) -> None:
    """The kernel itself refuses: here because of a limit, on a full disk in the same way."""
    ended = subprocess.run(
        [sys.executable, "-c", FILL, str(tmp_path / "shard")], check=False, capture_output=True, text=True
    )
    assert f"StorageError: {tmp_path}/shard: File too large while its scratch file was written in {tmp_path}. " in (
        ended.stderr
    )
    assert list(tmp_path.iterdir()) == []


REPLACE = """
import os, resource, signal, sys
from trainer.storage import Storage
signal.signal(signal.SIGXFSZ, signal.SIG_IGN if sys.argv[2] == "refused" else signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
Storage().replace(sys.argv[1], bytes(2 << 20))
"""


@pytest.mark.parametrize("end", ["refused", "killed"])
def test_a_replacement_that_comes_to_no_end_is_no_object(storage: Storage, tmp_path: Path, end: str) -> None:
    """Of a model's folder it would be a part that its report does not know, and nobody could load it any more."""
    uri = str(tmp_path / "model/weights")
    storage.replace(uri, b"as before")
    ended = subprocess.run([sys.executable, "-c", REPLACE, uri, end], check=False, capture_output=True, text=True)
    assert (ended.returncode < 0) == (end == "killed"), ended.stderr
    assert [item.uri for item in storage.list_objects(str(tmp_path / "model/"))] == [uri]
    assert storage.read_object(uri) == b"as before"
    assert len(list((tmp_path / "model").iterdir())) == (2 if end == "killed" else 1)


def test_a_full_disk_says_what_to_do() -> None:
    with (
        refuses(StorageError, found=("No space left", "/data"), expected="room", way_out="Make room"),
        room_for("/data/x"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_prefix_lists_only_what_starts_with_it(storage: Storage, tmp_path: Path) -> None:
    for name in ("a/1", "a/2", "ab/3", "b/4"):
        storage.write_once(str(tmp_path / name), b"x" * int(name[-1]))
    found = storage.list_objects(str(tmp_path / "a") + "/")
    assert [(item.uri.removeprefix(f"{tmp_path}/"), item.bytes) for item in found] == [("a/1", 1), ("a/2", 2)]


def test_a_folder_goes_up_and_comes_down(storage: Storage, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "variables").mkdir(parents=True)
    (source / "saved_model.pb").write_bytes(b"graph")
    (source / "variables/data").write_bytes(b"weights")
    storage.upload_folder(source, str(tmp_path / "stored"))
    assert storage.download_folder(str(tmp_path / "stored"), tmp_path / "copy") == 2
    assert (tmp_path / "copy/variables/data").read_bytes() == b"weights"


def test_a_folder_that_cannot_be_made_is_named(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file/x"):
        storage.write_once(str(tmp_path / "file/x"), b"")


def test_a_relative_address_is_refused(storage: Storage) -> None:
    with pytest.raises(RequestError, match="gs://bucket/name"):
        storage.read_object("some/where")


def test_parts_join_with_single_slashes() -> None:
    assert join_uri("gs://bucket/a/", "/b", "c/") == "gs://bucket/a/b/c"


def test_parallel_results_stand_in_order_and_errors_come_out() -> None:
    assert in_parallel(lambda number: number * 2, range(50)) == [number * 2 for number in range(50)]
    with pytest.raises(ZeroDivisionError):
        in_parallel(lambda number: 1 // number, range(3))


def test_a_full_disk_is_named_although_closing_fails_again(storage: Storage, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Disk, "scratch", lambda _self, _uri: Path("/dev/full").open("w+b"))  # noqa: SIM115 - storage closes it
    with refuses(StorageError, found="No space left"):
        storage.write_once(str(tmp_path / "x"), b"1")
