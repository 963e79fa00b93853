"""`make bench-export`, on tables of some rows: contenders write the same Examples, and figures are what they say."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import tensorflow as tf

from bench import export_contender
from bench.export import CONTENDERS, ROWS, Contender, take_turns
from bench.export_report import Measured, Reading, render, summarise, targets
from bench.export_tables import read_batches, write_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of 60 rows."""
    made: Path = tmp_path_factory.mktemp("tables")
    for name in ROWS:
        write_table(name, 60, made / f"{name}.arrow")
    return made


def examples(path: Path, compression: str) -> list[bytes]:
    """Return each Example in one serialisation, features without values left out."""
    found = []
    for record in tf.data.TFRecordDataset(str(path), compression.replace("none", "")):
        example = tf.train.Example.FromString(record.numpy())
        for name in list(example.features.feature):
            feature = example.features.feature[name]
            if not getattr(feature, feature.WhichOneof("kind") or "int64_list").value:
                del example.features.feature[name]
        found.append(example.SerializeToString(deterministic=True))
    return found


@pytest.mark.parametrize("compression", ["none", "GZIP"])
@pytest.mark.parametrize("data", ROWS)
def test_contenders_write_the_same_examples(data: str, compression: str, folder: Path, tmp_path: Path) -> None:
    source = folder / f"{data}.arrow"
    for writer in ("ours", "tutorial", "protobuf"):
        export_contender.make_writer(writer, source, 50).write(tmp_path / writer, compression)
    ours = examples(tmp_path / "ours", compression)
    assert len(ours) == 50
    assert ours == examples(tmp_path / "tutorial", compression) == examples(tmp_path / "protobuf", compression)


def test_the_floor_copies_the_finished_file(folder: Path, tmp_path: Path) -> None:
    finished = folder / "wide.tfrecord"
    export_contender.make_writer("ours", folder / "wide.arrow", 60).write(finished, "none")
    export_contender.make_writer("floor", folder / "wide.arrow", 60).write(tmp_path / "copy", "none")
    assert (tmp_path / "copy").read_bytes() == finished.read_bytes()


def test_rows_are_cut_off_where_asked(folder: Path) -> None:
    assert sum(batch.num_rows for batch in read_batches(folder / "mixed.arrow", 7)) == 7


def test_contenders_take_turns_and_say_what_it_took(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tutorial and ours, two rounds, each with its share of the rows."""

    def run(environment: str, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        assert (environment, module) == ("trainer", "bench.export_contender")
        capsys.readouterr()
        assert export_contender.main(arguments) == 0
        return subprocess.CompletedProcess(arguments, 0, stdout=capsys.readouterr().out)

    some = [
        Contender(writer="tutorial", data="hashy", rows=ROWS["hashy"] // 2),
        Contender(writer="ours", data="hashy"),
    ]
    readings = take_turns(folder, some, 2, {"hashy": 60}, run)
    assert [(contender.writer, reading.rows) for contender, reading in readings] == [("tutorial", 30), ("ours", 60)] * 2
    assert not list(folder.glob("out*"))
    rows = summarise(readings)
    assert [row["contender"] for row in rows] == ["tutorial", "ours"]
    assert rows[0]["ratio_to_tutorial"] == 1
    assert rows[1]["first_batch_s"] > 0
    assert not rows[1]["pandas"]


def reading(rows_per_s: float, **changes: float) -> Reading:
    """A turn of 100 rows of 1 kB."""
    values = {"rows": 100, "seconds": 100 / rows_per_s, "bytes": 100_000, "working_set_mb": 10, "first_batch_s": 0.01}
    return Reading(**{**values, "pandas": False, **changes})


def test_medians_ratios_and_targets() -> None:
    tutorial = Contender(writer="tutorial", data="flights")
    ours = Contender(writer="ours", data="flights")
    mixed = Contender(writer="ours", data="mixed")
    turns = [(tutorial, reading(rate)) for rate in (9, 10, 100)] + [(ours, reading(rate)) for rate in (300, 460, 470)]
    rows = summarise([*turns, (mixed, reading(900_000, working_set_mb=200))])
    assert [row["rows_per_s"] for row in rows] == [10, 460, 900_000]
    assert [row["ratio_to_tutorial"] for row in rows] == [1, 46, None]
    jobs = {"span": {"rows_per_s": 400_000, "memory_mb": 90}, "night": {"rows_share": 0.0167, "bytes_share": 0.017}}
    measured = Measured(measured="2024-01-01", machine={}, rounds=3, scale=1, rows=rows, jobs=jobs)
    missed = {target.name for target in targets(measured) if not target.reached}
    assert missed == {"mixed: MB/s", "growth in memory: MB", "whole export of a day: rows/s"}
    assert "bench-export: 6 of 9 targets reached" in render(measured)
    assert json.loads(json.dumps(measured.document()))["rows"][1]["ratio_to_tutorial"] == 46


def test_no_contender_is_there_twice_and_all_targets_have_theirs() -> None:
    keys = [contender.key for contender in CONTENDERS]
    assert len(set(keys)) == len(keys)
    rows = summarise([(contender, reading(10)) for contender in CONTENDERS])
    measured = Measured(measured="", machine={}, rounds=1, scale=1, rows=rows, jobs={})
    assert len(targets(measured)) == 11
