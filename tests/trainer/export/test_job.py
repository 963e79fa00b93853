"""The export job: same bytes whoever writes them, nothing half-visible, nothing written twice."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import gzip
import hashlib
import json
import re
from pathlib import Path

import google_crc32c
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.refusals import refuses
from trainer.cluster.replica import Replica
from trainer.errors import DataError, RequestError

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
            content = Path(file.uri).read_bytes()
            crc32c = base64.b64encode(google_crc32c.value(content).to_bytes(4, "big")).decode()
            assert (file.bytes, file.crc32c) == (len(content), crc32c)
            assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert manifest.exported_rows == run.rows.num_rows


def test_a_second_export_elsewhere_is_byte_identical(run, tmp_path: Path, memory_reader) -> None:
    run.export()
    other = dataclasses.replace(run, path=tmp_path / "other")
    other.path.mkdir()
    other.export(reader=memory_reader(run.rows, seed=99))
    assert other.files() == run.files()


def test_one_changed_row_changes_one_file(run, tmp_path: Path) -> None:
    run.export()
    other = dataclasses.replace(run, path=tmp_path / "other")
    other.path.mkdir()
    weights = run.rows["weight"].to_pylist()
    weights[700] = 99.0
    other.rows = run.rows.set_column(run.rows.schema.get_field_index("weight"), "weight", pa.array(weights))
    other.export(spans=run.export_json()["spans"])
    shards = {name: content for name, content in other.files().items() if name.endswith(".gz")}
    assert len([name for name, content in shards.items() if run.files()[name] != content]) == 1


def test_two_replicas_share_the_shards_and_the_chief_writes_the_manifest(run, tmp_path: Path) -> None:
    alone = dataclasses.replace(run, path=tmp_path / "alone")
    alone.path.mkdir()
    alone.export()
    run.export(replica=Replica(index=1, count=2, role="worker"))
    assert not (run.path / "manifest.json").exists()
    assert len([name for name in run.files() if name.endswith(".gz")]) == 12
    said = run.export(replica=Replica(index=0, count=2))
    assert "12 shards to write, 0 there already" in said[0]
    assert run.files() == alone.files()
    assert run.manifest().splits == alone.manifest().splits | {
        name: dataclasses.replace(
            split,
            files=tuple(
                dataclasses.replace(file, uri=file.uri.replace(str(alone.path), str(run.path))) for file in split.files
            ),
        )
        for name, split in alone.manifest().splits.items()
    }


def test_replicas_have_equal_shares_although_parts_are_unequal(run) -> None:
    """Train and validation alternate in the request: one replica must not get all that is large."""
    run.shards = 1
    run.rows = run.rows.set_column(run.rows.schema.get_field_index("shard"), "shard", pa.array([0] * run.rows.num_rows))
    said = [run.export(replica=Replica(index=index, count=2))[0] for index in (1, 0)]
    rows = [int(re.search(r"about (\d+) rows", line)[1]) for line in said]
    assert sum(rows) == run.rows.num_rows
    assert max(rows) < 1.2 * min(rows)


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
@pytest.mark.parametrize("action", ["reuse", "export"])
def test_a_stored_file_that_is_not_what_its_document_lists_is_named(run, damage, words: str, action: str) -> None:
    """Whether the span was complete before the run or a try of the same run completed it."""
    run.export()
    (run.path / "manifest.json").unlink()
    spans = run.export_json()["spans"]
    spans[0].update(action=action)
    damaged = next(run.path.glob("spans/2024-01-01/*/train-00000-*.gz"))
    damage(damaged)
    if action == "export" and words == "is missing":
        run.export(spans=spans)  # it can be written again
        assert damaged.exists()
        return
    with pytest.raises(DataError, match=rf"2024-01-01.*train-00000-of-00002.*: {words}.*span\.json lists.*Delete"):
        run.export(spans=spans)
    assert not (run.path / "manifest.json").exists()


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
    with refuses(DataError, expected="snapshot"):
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


def test_the_frozen_set_is_exported_like_a_span(run, memory_reader) -> None:
    run.export(golden=run.golden())
    split = run.manifest().splits["golden"]
    assert split.rows == sum(file.rows for file in split.files) == run.rows.num_rows
    assert [file.uri.removeprefix(f"{run.path}/") for file in split.files] == [
        f"spans/golden/{'f' * 32}/golden-{shard:05d}-of-00002.tfrecord.gz" for shard in (0, 1)
    ]
    assert run.manifest().exported_rows == 2 * run.rows.num_rows
    assert {span.span for span in run.manifest().spans} == {span["span"] for span in run.export_json()["spans"]}
    (run.path / "manifest.json").unlink()
    reader = memory_reader(run.rows)
    run.export(golden=run.golden(action="reuse"), reader=reader)
    assert reader.calls == 0
    assert run.manifest().splits["golden"] == split


def test_without_a_frozen_set_there_is_no_such_split(run) -> None:
    run.export()
    assert set(run.manifest().splits) == {"train", "validation", "test"}


def test_the_rest_of_a_direct_run_is_counted_and_not_exported(run, memory_reader) -> None:
    """Training reads the run table itself; the comparison stays on proven shards."""
    spans = run.export_json()["spans"]
    spans[0].update(action="reuse")  # and is nowhere
    run.export(only="test", spans=spans)
    splits = run.manifest().splits
    assert {name.split("/")[1] for name in run.files()} == {"2024-01-05", "2024-01-06"}
    assert (splits["train"].files, splits["validation"].files) == ((), ())
    assert splits["train"].rows + splits["validation"].rows == 800
    assert splits["test"].rows == sum(file.rows for file in splits["test"].files) == 400
    assert run.manifest().exported_rows == 400
    assert len(run.manifest().spans) == 6


def test_a_quarantined_day_is_left_out_and_said(run) -> None:
    run.export(quarantined=["2024-01-02"])
    manifest = run.manifest()
    assert manifest.quarantined == ("2024-01-02",)
    assert sum(split.rows for split in manifest.splits.values()) == 1000
    assert "2024-01-02" not in {span.span for span in manifest.spans}
    assert not [name for name in run.files() if "2024-01-02" in name]


def test_csv_takes_the_place_of_records(run) -> None:
    run.export(format="csv")
    manifest = run.manifest()
    assert manifest.format == "csv"
    lines = []
    for split in manifest.splits.values():
        for file in split.files:
            assert file.uri.endswith(".csv.gz")
            head, *rest = gzip.decompress(Path(file.uri).read_bytes()).decode().splitlines()
            assert head == '"parcel_id","carrier","zone","distance","weight","express","late"'
            assert len(rest) == file.rows
            lines += rest
    row = run.rows.slice(0, 1).to_pylist()[0]
    (line,) = [line for line in lines if line.startswith(f'"{row["parcel_id"]}",')]
    cells = ["" if row[name] is None else repr(row[name]) for name in ("zone", "distance", "weight")]
    carrier = "" if row["carrier"] is None else f'"{row["carrier"]}"'
    assert line == ",".join([f'"{row["parcel_id"]}"', carrier, *cells, str(int(row["express"])), str(row["late"])])


def test_the_job_log_is_short_and_ends_with_the_totals(run) -> None:
    said = run.export()
    assert said[0].startswith("export: replica 1 of 1: 24 shards to write, 0 there already, about ")
    assert re.fullmatch(
        r"export: replica 1 of 1: wrote 1200 rows in 24 shards, \d+\.\d MB, \d+ rows/s, \d+\.\d s, memory \+\d+ MB",
        said[-1],
    )
    assert len(said) == 3
