"""Whatever ends or hinders an export, the next try gives the bytes of an undisturbed one, and nothing else is left."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import errno
import gzip
import hashlib
import io
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trainer.cluster.replica import Replica
from trainer.errors import DataError, StorageError
from trainer.storage import Storage

STEPS = 280  # of a whole export of the small run: more than there are

# Forks a process per line of its input, so that what costs time is imported once. Each counts what it does (batches
# read, bytes written, objects before and after they appear) and kills itself at the wanted step.
ZYGOTE = """
import os, pickle, signal, sys
import pyarrow as pa
import pyarrow.compute as pc
from trainer.export import writer
from trainer.export.encoding import tfrecord
from trainer.export.job import SpanExport
from trainer.cluster.replica import Replica
from trainer.storage import Storage
from tests.trainer.conftest import MemoryReader

left = 0

def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

class Counting(Storage):
    def publish(self, uri, file):
        step()
        published = super().publish(uri, file)
        step()
        return published

class CountingFile(tfrecord.ShardFile):
    def write(self, buffer):
        step()
        super().write(buffer)
        step()

class CountingReader(MemoryReader):
    def open_streams(self, *arguments):
        step()
        return [self.counted(stream) for stream in super().open_streams(*arguments)]

    def counted(self, stream):
        for batch in stream:
            step()
            yield batch

writer.ShardFile = CountingFile
for line in sys.stdin:
    path, left = line.split()
    left = int(left)
    child = os.fork()
    if not child:
        with open(path, "rb") as file:
            request, rows = pickle.load(file)
        SpanExport(request, Counting(), CountingReader(rows, batch_rows=40), Replica()).write_spans()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, flush=True)
"""


@pytest.fixture
def zygote():
    """Start the process that forks; gives a function from a job and a step to the signal that ended it."""
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", ZYGOTE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    )

    def run_until(job_path: Path, step: int) -> int:
        print(job_path, step, file=process.stdin, flush=True)
        return int(process.stdout.readline())

    yield run_until
    process.stdin.close()
    assert process.wait(timeout=20) == 0
    process.stdout.close()


def digests(run) -> dict[str, str]:
    """Return the SHA-256 of every file below the run's folder, hidden ones too, but not of the manifest."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in run.files().items()}


def copy_of(run, path: Path):
    """Return the same run below another folder."""
    path.mkdir()
    return dataclasses.replace(run, path=path)


def test_killed_at_twenty_random_points_it_goes_on_to_the_same_bytes(run, tmp_path: Path, zygote) -> None:
    """Each kill by the kernel, in a process of its own; then a whole export on what was left."""
    whole = copy_of(run, tmp_path / "whole")
    whole.export()
    expected = digests(whole)
    killed = 0
    for step in np.random.default_rng(20).choice(np.arange(1, STEPS), 20, replace=False).tolist():
        torn = copy_of(run, tmp_path / f"killed-{step}")
        job_path = tmp_path / "job.pickle"
        job_path.write_bytes(pickle.dumps((torn.export_request(), torn.rows)))
        if zygote(job_path, step) == signal.SIGKILL:
            killed += 1
            assert not (torn.path / "manifest.json").exists()
        assert digests(torn).items() <= expected.items()
        torn.export()
        assert digests(torn) == expected
        assert sorted(path.name for path in torn.path.iterdir()) == ["manifest.json", "spans"]
    assert killed >= 15


def test_killed_again_and_again_it_gets_on(run, tmp_path: Path, zygote) -> None:
    whole = copy_of(run, tmp_path / "whole")
    whole.export()
    torn = copy_of(run, tmp_path / "killed")
    (tmp_path / "job.pickle").write_bytes(pickle.dumps((torn.export_request(), torn.rows)))
    tries = 0
    while zygote(tmp_path / "job.pickle", 90) == signal.SIGKILL:
        tries += 1
        assert digests(torn).items() <= digests(whole).items()
    assert tries >= 2
    assert digests(torn) == digests(whole)
    assert torn.manifest().splits["train"].rows == whole.manifest().splits["train"].rows


def contents(run) -> dict[str, bytes | None]:
    """Return what the shards hold, and which documents there are; once in a great many the compressor differs."""
    return {name: gzip.decompress(content) if name.endswith(".gz") else None for name, content in run.files().items()}


def test_replicas_at_the_same_time_give_the_same_content(run, tmp_path: Path) -> None:
    """Also two that do the same work: whoever is second finds his own content."""
    alone = copy_of(run, tmp_path / "alone")
    alone.export()
    together = copy_of(run, tmp_path / "together")
    places = [Replica(index=0, count=2), Replica(index=1, count=2), Replica(index=1, count=2), Replica(), Replica()]
    with concurrent.futures.ThreadPoolExecutor(len(places)) as pool:
        for done in [pool.submit(together.export, replica=replica) for replica in places]:
            done.result()
    assert contents(together) == contents(alone)
    assert {name: split.rows for name, split in together.manifest().splits.items()} == {
        name: split.rows for name, split in alone.manifest().splits.items()
    }


def test_a_stored_shard_with_other_bytes_is_never_overwritten(run) -> None:
    run.export()
    victim = next(path for path in sorted((run.path / "spans").rglob("*.gz")))
    victim.write_bytes(b"something else")
    Path(f"{victim}.json").unlink()
    with pytest.raises(DataError, match="holds other bytes"):
        run.export()
    assert victim.read_bytes() == b"something else"


def test_a_stored_shard_that_holds_more_is_refused(run) -> None:
    """One that goes on after ours, one that ends before, and one that is cut off."""
    run.export()
    victim = next(path for path in sorted((run.path / "spans").rglob("*.gz")))
    content = gzip.decompress(victim.read_bytes())
    for other in (gzip.compress(content + b"more"), gzip.compress(content[:-1]), gzip.compress(content)[:-9]):
        victim.write_bytes(other)
        Path(f"{victim}.json").unlink(missing_ok=True)
        with pytest.raises(DataError, match="holds other bytes"):
            run.export()
        assert victim.read_bytes() == other


def test_a_stored_shard_that_another_compressor_wrote_is_taken(run) -> None:
    """Its writer died before its sidecar: the documents prove what is stored, and its rows are those of the run."""
    run.export()
    rows = {name: split.rows for name, split in run.manifest().splits.items()}
    victim = next(path for path in sorted((run.path / "spans").rglob("*.gz")))
    other = gzip.compress(gzip.decompress(victim.read_bytes()), 9, mtime=0)
    assert other != victim.read_bytes()
    victim.write_bytes(other)
    for path in (Path(f"{victim}.json"), victim.parent / "span.json", run.path / "manifest.json"):
        path.unlink()
    run.export()
    assert victim.read_bytes() == other
    splits = run.manifest().splits
    (file,) = [file for split in splits.values() for file in split.files if file.uri == str(victim)]
    assert (file.bytes, file.sha256) == (len(other), hashlib.sha256(other).hexdigest())
    assert {name: split.rows for name, split in splits.items()} == rows


class FullAfter(Storage):
    """Gives scratch files that take so many bytes, all together."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.left = size

    def scratch(self, _uri: str):
        """Open one; not on disk."""
        return FullFile(self)

    def publish(self, uri: str, file) -> bool:
        """Store it for real."""
        with super().scratch(uri) as real:
            real.write(file.getvalue())
            return super().publish(uri, real)


class FullFile(io.BytesIO):
    """Refuses what the disk has no room for."""

    def __init__(self, disk: FullAfter) -> None:
        super().__init__()
        self.disk = disk

    def write(self, data) -> int:
        """Take it, or fail as the kernel does."""
        self.disk.left -= memoryview(data).nbytes
        if self.disk.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


@pytest.mark.parametrize("size", [0, 1, 30_000])
def test_a_full_disk_is_named_leaves_nothing_half_and_the_next_try_goes_on(run, tmp_path: Path, size: int) -> None:
    whole = copy_of(run, tmp_path / "whole")
    whole.export()
    run.path = tmp_path / "full"
    run.storage = FullAfter(size)
    with pytest.raises(StorageError, match=r"No space left on device while .* Expected room.*finished is kept"):
        run.export()
    assert digests(run).items() <= digests(whole).items()
    assert not (run.path / "manifest.json").exists()
    run.storage = Storage()
    run.export()
    assert digests(run) == digests(whole)


class RefusingStorage(Storage):
    """Does not take files of one span."""

    def publish(self, uri: str, file) -> bool:
        """Refuse."""
        if "2024-01-03" in uri:
            raise StorageError(uri, "storage did not answer", "", "Start again")
        return super().publish(uri, file)


def test_an_upload_that_fails_ends_the_export_and_what_is_finished_stays(run, tmp_path: Path) -> None:
    whole = copy_of(run, tmp_path / "whole")
    whole.export()
    run.path = tmp_path / "refused"
    run.storage = RefusingStorage()
    with pytest.raises(StorageError, match="2024-01-03"):
        run.export()
    assert digests(run).items() <= digests(whole).items()
    run.storage = Storage()
    run.export()
    assert digests(run) == digests(whole)


def test_a_reader_that_fails_ends_the_export(run, memory_reader) -> None:
    class Broken(memory_reader):
        def open_streams(self, table, units, streams):
            if self.calls == 1:
                raise StorageError(table, "BigQuery did not answer", "", "Start again")
            return super().open_streams(table, units, streams)

    with pytest.raises(StorageError, match="BigQuery did not answer"):
        run.export(reader=Broken(run.rows))
    run.export()
    assert run.manifest().exported_rows == run.rows.num_rows
