"""The export job: same bytes whoever writes them, nothing half-visible, nothing written twice."""

from __future__ import annotations

import dataclasses
import datetime
import errno
import gzip
import json
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from trainer.errors import DataError, RequestError, StorageError
from trainer.export.tfrecord import digest_bytes
from trainer.replica import Replica

FIRST_DAY = datetime.date(2024, 1, 1)


def test_the_manifest_names_every_file_with_its_digests(run) -> None:
    run.export()
    manifest = run.manifest()
    splits = manifest.splits
    assert sum(split.rows for split in splits.values()) == run.rows.num_rows
    assert {file.span for file in splits["test"].files} == {"2024-01-05", "2024-01-06"}
    assert {file.part for file in splits["test"].files} == {"train", "validation"}
    assert {file.part for file in splits["train"].files} == {"train"}
    for split in splits.values():
        assert split.rows == sum(file.rows for file in split.files)
        for file in split.files:
            digest = digest_bytes(Path(file.uri).read_bytes())
            assert (file.bytes, file.crc32c, file.sha256) == (digest.bytes, digest.crc32c, digest.sha256)
    assert manifest.exported_rows == run.rows.num_rows


def test_a_second_export_elsewhere_is_byte_identical(run, tmp_path: Path, memory_reader) -> None:
    run.export()
    other = dataclasses.replace(run, path=tmp_path / "other")
    other.path.mkdir()
    other.export(reader=memory_reader(run.rows, seed=99))
    assert other.files() == run.files()


def test_two_replicas_share_the_shards_and_the_last_one_writes_the_manifest(run, tmp_path: Path, memory_reader) -> None:
    alone = dataclasses.replace(run, path=tmp_path / "alone")
    alone.path.mkdir()
    alone.export()
    said = run.export(replica=Replica(index=1, count=2, role="worker"))
    assert "spans wait for other replicas" in said[-1]
    assert not (run.path / "manifest.json").exists()
    assert len([name for name in run.files() if name.endswith(".gz")]) == 12
    run.export(replica=Replica(index=0, count=2))
    assert run.files() == alone.files()
    assert run.manifest().splits["train"].rows == alone.manifest().splits["train"].rows


def test_what_is_there_is_not_read_again(run, memory_reader) -> None:
    run.export()
    before = run.files()
    (run.path / "manifest.json").unlink()
    reader = memory_reader(run.rows)
    run.export(reader=reader)
    assert reader.calls == 0
    assert run.files() == before


def test_a_reused_span_is_taken_from_the_store(run, memory_reader) -> None:
    run.export()
    (run.path / "manifest.json").unlink()
    spans = run.export_json()["spans"]
    for span in spans[:-1]:
        span.update(action="reuse", because="same fingerprint as stored")
    run.export(spans=spans, reader=memory_reader(run.rows))
    manifest = run.manifest()
    assert manifest.exported_rows == 200
    assert [span.action for span in manifest.spans] == ["reuse"] * 5 + ["export"]
    assert manifest.splits["train"].rows + manifest.splits["validation"].rows == 800


def test_a_reused_span_that_is_gone_is_named(run) -> None:
    spans = run.export_json()["spans"]
    spans[0].update(action="reuse")
    with pytest.raises(DataError, match=r"2024-01-01.*span\.json: is missing"):
        run.export(spans=spans)


@pytest.mark.parametrize(
    ("damage", "words"),
    [(Path.unlink, "is missing"), (lambda path: path.write_bytes(path.read_bytes()[:-1]), r"has \d+ bytes")],
    ids=["missing", "cut off"],
)
def test_a_reused_span_whose_file_is_not_what_it_lists_is_named(run, damage, words: str) -> None:
    run.export()
    (run.path / "manifest.json").unlink()
    spans = run.export_json()["spans"]
    for span in spans:
        span.update(action="reuse")
    damage(next(run.path.glob("spans/2024-01-01/*/train-00000-*.gz")))
    with pytest.raises(DataError, match=rf"2024-01-01.*train-00000-of-00002.*: {words}"):
        run.export(spans=spans)
    assert not (run.path / "manifest.json").exists()


def test_replicas_have_equal_shares_although_parts_are_unequal(run) -> None:
    """Train and validation alternate in the request: one replica must not get all that is large."""
    run.shards = 1
    run.rows = run.rows.set_column(run.rows.schema.get_field_index("shard"), "shard", pa.array([0] * run.rows.num_rows))
    said = [run.export(replica=Replica(index=index, count=2))[0] for index in range(2)]
    rows = [int(re.search(r"about (\d+) rows", line)[1]) for line in said]
    assert sum(rows) == run.rows.num_rows
    assert max(rows) < 1.2 * min(rows)


def test_rows_that_changed_since_the_snapshot_are_refused(run) -> None:
    run.shards = 1
    spans = run.export_json()["spans"]
    run.rows = run.rows.set_column(run.rows.schema.get_field_index("shard"), "shard", pa.array([0] * run.rows.num_rows))
    spans[2]["parts"][0]["rows"] += 1
    with pytest.raises(DataError, match=r"span 2024-01-03, part train: \d+ rows"):
        run.export(spans=spans)
    assert not (run.path / "manifest.json").exists()


def test_rows_that_are_missing_from_one_of_several_shards_are_refused(run, memory_reader) -> None:
    spans = run.export_json()["spans"]
    with pytest.raises(DataError, match="as when the snapshot was taken"):
        run.export(spans=spans, reader=memory_reader(run.rows.slice(1)))


def test_a_type_without_mapping_is_refused_before_anything_is_written(run) -> None:
    schema = [*run.export_json()["schema"], {"name": "address", "type": "RECORD", "mode": "NULLABLE"}]
    with pytest.raises(RequestError, match=r"address \(RECORD\)"):
        run.export(schema=schema)
    assert list(run.path.iterdir()) == []


def test_a_stored_shard_with_other_bytes_is_never_overwritten(run) -> None:
    run.export()
    victim = next(path for path in sorted((run.path / "spans").rglob("*.gz")))
    victim.write_bytes(b"something else")
    Path(f"{victim}.json").unlink()
    with pytest.raises(DataError, match="holds other bytes"):
        run.export()
    assert victim.read_bytes() == b"something else"


def test_without_compression_the_name_says_so(run) -> None:
    run.compression = "NONE"
    run.export()
    assert {file.uri.rsplit(".", 1)[1] for file in run.manifest().splits["train"].files} == {"tfrecord"}


def test_span_json_holds_the_sidecars(run) -> None:
    run.export()
    span_path = next((run.path / "spans").rglob("span.json"))
    for file in json.loads(span_path.read_bytes())["files"]:
        sidecar = json.loads((span_path.parent / f"{file['file_name']}.json").read_bytes())
        assert sidecar == {name: file[name] for name in ("rows", "bytes", "crc32c", "sha256")}


def test_a_full_disk_is_named_and_leaves_nothing_visible(run, monkeypatch) -> None:
    def full(*_arguments) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("trainer.export.spans.write_shard", full)
    with pytest.raises(StorageError, match="No space left on device"):
        run.export()
    assert run.files() == {}


def test_a_part_without_rows_becomes_an_empty_shard(run, memory_reader) -> None:
    run.shards = 1
    zeros = pa.array([0] * run.rows.num_rows)
    run.rows = run.rows.set_column(run.rows.schema.get_field_index("shard"), "shard", zeros)
    spans = run.export_json()["spans"]
    gone = spans[0]["parts"][1]
    gone["rows"] = 0
    first = pa.scalar(FIRST_DAY)
    kept = pc.invert(pc.and_(pc.equal(run.rows["span"], first), pc.equal(run.rows["part"], "validation")))
    run.export(spans=spans, reader=memory_reader(run.rows.filter(kept)))
    (empty,) = [file for file in run.manifest().splits["validation"].files if file.span == "2024-01-01"]
    assert empty.rows == 0
    assert gzip.decompress(Path(empty.uri).read_bytes()) == b""


def test_progress_says_rows_and_rate(run) -> None:
    said = run.export()
    assert said[0].startswith("export: replica 1 of 1: 24 shards to write, 0 there already, about ")
    assert any("rows/s" in line for line in said)


KILLED = """
import os, pickle, signal, sys
from trainer.export.spans import SpanExport
from trainer.export.reader import rows_of
from trainer.replica import Replica
from trainer.storage import Storage
import pyarrow as pa

class Dying(Storage):
    left = int(sys.argv[2])
    def publish(self, uri, file):
        if Dying.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        Dying.left -= 1
        return super().publish(uri, file)

class Reader:
    def read(self, units):
        return pa.concat_tables([rows_of(rows, unit) for unit in units])

request, rows = pickle.load(open(sys.argv[1], "rb"))
SpanExport(request, Dying(), Reader(), Replica()).run()
"""


@pytest.mark.parametrize("writes", [0, 1, 2, 31, 50])
def test_a_killed_export_that_runs_again_gives_the_same_bytes(run, tmp_path: Path, writes: int) -> None:
    whole = dataclasses.replace(run, path=tmp_path / "whole")
    whole.path.mkdir()
    whole.export()
    run.path = tmp_path / "killed"
    run.path.mkdir()
    (tmp_path / "job.pickle").write_bytes(pickle.dumps((run.export_request(), run.rows)))
    command = [sys.executable, "-c", KILLED, str(tmp_path / "job.pickle"), str(writes)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == -signal.SIGKILL
    assert set(run.files()) < set(whole.files())
    run.export()
    assert run.files() == whole.files()
    assert run.manifest().splits["train"].rows == whole.manifest().splits["train"].rows
