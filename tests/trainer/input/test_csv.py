"""CSV files give the columns that TFRecords give, and a line that cannot be read is named."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from trainer.contract.documents import Column
from trainer.errors import DataError, RequestError
from trainer.input.csv import CsvLines
from trainer.input.files import Shard, Shards
from trainer.input.source import Share
from trainer.input.splits import FileSplit

LEAST = np.iinfo(np.int64).min
SCHEMA = [
    Column(name="parcel_id", type="STRING", mode="REQUIRED"),
    Column(name="carrier", type="STRING", mode="NULLABLE"),
    Column(name="distance", type="INTEGER", mode="NULLABLE"),
    Column(name="weight", type="FLOAT", mode="NULLABLE"),
    Column(name="express", type="BOOLEAN", mode="NULLABLE"),
]
SPEC = {
    "weight": tf.io.FixedLenFeature([], tf.float32, default_value=float("nan")),
    "carrier": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "distance": tf.io.FixedLenFeature([], tf.int64, default_value=LEAST),
    "express": tf.io.FixedLenFeature([], tf.int64, default_value=LEAST),
}
LINES = [
    ["p0", "AA", "5", "1.5", "1"],
    ["p1", "", "", "", ""],
    ["p2", 'say "Ünter", twice', str(LEAST + 1), "nan", "0"],
    ["p3", " kept ", "-7", "-inf", "1"],
]


def text(lines: list[list[str]], header: list[str] | None = None, end: str = "\n") -> bytes:
    """Write lines as RFC 4180 has them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end)
    writer.writerow(header or [column.name for column in SCHEMA])
    writer.writerows(lines)
    return out.getvalue().encode()


def opened(path: Path, content: bytes, rows: int = len(LINES), within: Share | None = None) -> FileSplit:
    """Write a file, compressed if its name says so, and open it."""
    zipped = path.suffix == ".gz"
    path.write_bytes(gzip.compress(content) if zipped else content)
    shard = Shard(uri=f"gs://bucket/{path.name}", path=str(path), rows=rows)
    shards = Shards(files=(shard,), compression="GZIP" if zipped else "", within=within)
    return FileSplit("train", shards, CsvLines(SCHEMA))


def columns_of(split: FileSplit, spec=SPEC) -> dict[str, np.ndarray]:
    """Read as a training does."""
    with split.reading(spec):
        batches = [{name: values.numpy() for name, values in batch.items()} for batch in split.batches(spec)]
    split.require_rows(sum(len(batch["distance"]) for batch in batches))
    return {name: np.concatenate([batch[name] for batch in batches]) for name in spec}


def test_floats_are_rounded_as_the_records_export_rounds_them(tmp_path: Path) -> None:
    """To a double and then to float32: this text lies above the middle of two float32, its double in the middle."""
    middle = "1.0000000596046447754"
    found = columns_of(opened(tmp_path / "a.csv", text([["p0", "", "0", middle, ""]]), rows=1))
    assert found["weight"][0] == np.float32(np.float64(middle)) == np.float32(1)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_lines_become_columns(tmp_path: Path, name: str, end: str) -> None:
    found = columns_of(opened(tmp_path / name, text(LINES, end=end)))
    np.testing.assert_array_equal(found["weight"], np.array([1.5, np.nan, np.nan, -np.inf], np.float32))
    assert found["carrier"].tolist() == [b"AA", b"", 'say "Ünter", twice'.encode(), b" kept "]
    assert found["distance"].tolist() == [5, LEAST, LEAST + 1, -7]
    assert found["express"].tolist() == [1, LEAST, 0, 1]


def test_shares_of_one_file_are_disjoint_and_whole(tmp_path: Path) -> None:
    parts = [opened(tmp_path / "a.csv", text(LINES), within=Share(index=index, count=3)) for index in range(3)]
    found = [columns_of(part)["distance"].tolist() for part in parts]
    assert sorted(value for part in found for value in part) == sorted([5, LEAST, LEAST + 1, -7])


def test_a_file_without_examples_is_read(tmp_path: Path) -> None:
    split = opened(tmp_path / "a.csv", text([]), rows=0)
    assert list(split.batches(SPEC)) == []
    split.require_rows(0)


NAMES = [column.name for column in SCHEMA]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(
            text(LINES, header=["parcel_id", "distance", "carrier", *NAMES[3:]]),
            r"gs://bucket/a\.csv, header: column 2 is 'distance'\. Expected 'carrier', as in the schema",
            id="another order",
        ),
        pytest.param(
            text([line[:4] for line in LINES], header=NAMES[:4]),
            r"header: 4 columns\. Expected 5: parcel_id, ",
            id="fewer columns",
        ),
        pytest.param(
            text(LINES[:2], header=LINES[2]), r"header: column 1 is 'p2'\. Expected 'parcel_id'", id="no header"
        ),
        pytest.param(
            text([*LINES, ["p4", "AA", "far", "1", "1"]]),
            r"a\.csv, line 6, column 'distance': 'far'\. Expected INTEGER, as in the schema",
            id="not a number",
        ),
        pytest.param(
            text([*LINES, ["p4", "AA", "1", "heavy", "1"]]),
            r"line 6, column 'weight': 'heavy'\. Expected FLOAT",
            id="not a float",
        ),
        pytest.param(
            text([*LINES, ["p4", "AA", "1", "1", "maybe"]]),
            r"line 6, column 'express': 'maybe'\. Expected BOOLEAN",
            id="not a boolean",
        ),
        pytest.param(
            text([*LINES[:1], LINES[1][:3], *LINES[2:]]),
            r"line 3: 3 fields\. Expected 5, as in the header",
            id="fewer fields",
        ),
        pytest.param(
            text([["p0", "two\nlines", "5", "1.5", "1"], *LINES]),
            r"line 2: a quoted field does not end on its line",
            id="a line break in a field",
        ),
        pytest.param(text(LINES[:3]), r"a\.csv: 3 examples\. Expected 4, as in the manifest", id="a line is missing"),
        pytest.param(b"", r"a\.csv: 0 examples\. Expected 4, as in the manifest", id="empty file"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        columns_of(opened(tmp_path / "a.csv", content))


def test_a_gzip_stream_that_is_cut_off_is_named(tmp_path: Path) -> None:
    rows = [[f"p{index}", "AA", str(index * 7919), "1.5", "1"] for index in range(2000)]
    split = opened(tmp_path / "a.csv.gz", text(rows), rows=2000)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(DataError, match=r"gs://bucket/a\.csv\.gz, line \d+: the file ends inside it: the gzip stream"):
        columns_of(split)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        pytest.param(Column(name="x", type="INTEGER", mode="REPEATED"), "column 'x': is REPEATED", id="array"),
        pytest.param(Column(name="x", type="BYTES", mode="NULLABLE"), "column 'x': is BYTES", id="bytes"),
        pytest.param(
            Column(name="y", type="INTEGER", mode="NULLABLE"), "column 'x': is not in the files", id="missing"
        ),
    ],
)
def test_columns_that_a_line_cannot_hold_are_refused(column: Column, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        CsvLines([*SCHEMA, column]).parser({"x": tf.io.FixedLenFeature([], tf.int64)})
