"""TFRecord files as Parquet files: the same values, and what does not fit is named by file, record and byte."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import tensorflow as tf

from trainer.input.tfrecord import compression_of
from trainer.tools import tfrecords
from trainer.tools.example_columns import WAY_OUT

KINDS: dict[type, Any] = {
    bytes: lambda values: tf.train.Feature(bytes_list=tf.train.BytesList(value=values)),
    int: lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
    float: lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
}
EXAMPLES: list[dict[str, list[Any]]] = [
    {"id": [b"p-1"], "shop/price": [1.5], "seen": [7], "photo": [b"\xff\xd8"], "size": [1.0, 2.0], "tags": [b"a"]},
    {"id": ["Ü".encode()], "seen": [-1], "photo": [b"\xff"], "size": [3.0, 4.0], "tags": []},
    {"id": [b""], "shop/price": [], "seen": [1 << 40], "photo": [b""], "size": [0.5, 0.25], "tags": [b"b", b"a"]},
]
ROWS = [
    {"id": "p-1", "photo": b"\xff\xd8", "seen": 7, "shop_price": 1.5, "size": [1.0, 2.0], "tags": ["a"]},
    {"id": "Ü", "photo": b"\xff", "seen": -1, "shop_price": None, "size": [3.0, 4.0], "tags": []},
    {"id": "", "photo": b"", "seen": 1 << 40, "shop_price": None, "size": [0.5, 0.25], "tags": ["b", "a"]},
]
PRINTED = """files:
  uris: {to}/*.parquet
  format: parquet
  columns:
    - {{name: "id", type: STRING}}
    - {{name: "photo", type: BYTES}}
    - {{name: "seen", type: INT64}}
    - {{name: "shop_price", type: FLOAT64}}
    - {{name: "size", type: ARRAY<FLOAT64>}}
    - {{name: "tags", type: ARRAY<STRING>}}
"""


def write(path: Path, examples: list[dict[str, list[Any]]], compression: str = "") -> None:
    """Write examples, or bytes as they are; an empty list is a feature of no kind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for example in examples:
            features = {name: KINDS[type(v[0])](v) if v else tf.train.Feature() for name, v in example.items()}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def convert(tmp_path: Path, pattern: str = "*.tfrecord*", schema: str = "") -> int:
    """Run the command."""
    return tfrecords.main(["--from", f"{tmp_path}/old/{pattern}", "--to", f"{tmp_path}/new", "--schema", schema])


def rows_of(tmp_path: Path, name: str) -> list[dict[str, Any]]:
    """What a Parquet file holds."""
    return list(pq.read_table(tmp_path / "new" / name).to_pylist())


def test_values_and_columns_are_those_of_the_examples(tmp_path: Path, capsys, monkeypatch) -> None:
    """A file for a file, gzipped or not, in groups of rows; the second time nothing changes."""
    monkeypatch.setattr(tfrecords, "GROUP_ROWS", 2)
    write(tmp_path / "old/a.tfrecord", EXAMPLES)
    write(tmp_path / "old/deeper/b.tfrecord-00000-of-00001", EXAMPLES[:1], "GZIP")
    write(tmp_path / "old/empty.tfrecord", [])
    assert convert(tmp_path) == 0
    assert capsys.readouterr().out.endswith(PRINTED.format(to=tmp_path / "new"))
    assert rows_of(tmp_path, "a.tfrecord.parquet") == ROWS
    assert pq.ParquetFile(tmp_path / "new/a.tfrecord.parquet").num_row_groups == 2
    assert rows_of(tmp_path, "deeper/b.tfrecord-00000-of-00001.parquet") == ROWS[:1]
    assert rows_of(tmp_path, "empty.tfrecord.parquet") == []
    before = {path: (path.stat().st_ino, path.read_bytes()) for path in (tmp_path / "new").rglob("*.parquet")}
    assert convert(tmp_path) == 0
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in before} == before


def test_the_schema_says_what_is_taken(tmp_path: Path) -> None:
    """And what it does not name is left out."""
    write(tmp_path / "old/a.tfrecord", EXAMPLES)
    assert convert(tmp_path, schema="seen:INT64, id:BYTES, size:FLOAT64[2], tags:STRING[]") == 0
    names = ("seen", "size", "tags")
    assert rows_of(tmp_path, "a.tfrecord.parquet") == [
        {**{name: row[name] for name in names}, "id": str(row["id"]).encode()} for row in ROWS
    ]


def test_a_length_that_begins_as_gzip_does_is_none(tmp_path: Path) -> None:
    """0x8b1f bytes long."""
    with tf.io.TFRecordWriter(str(tmp_path / "a")) as writer:
        writer.write(b"x" * 0x8B1F)
    assert (tmp_path / "a").read_bytes().startswith(b"\x1f\x8b")
    assert compression_of(str(tmp_path / "a")) == ""
    (tmp_path / "b").write_bytes(gzip.compress(b""))
    assert compression_of(str(tmp_path / "b")) == "GZIP"


PLAIN: dict[str, list[Any]] = {"id": [b"p"], "size": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("other", "schema", "message"),
    [
        ({**PLAIN, "id": [7]}, "", "feature 'id': int64_list of 1 value. Expected id:STRING."),
        ({**PLAIN, "id": [b"p", b"q"]}, "", "feature 'id': 2 values. Expected id:STRING."),
        ({**PLAIN, "id": [b"\xff"]}, "", "feature 'id': bytes that are no UTF-8 text (invalid start byte)."),
        ({**PLAIN, "size": [1.0]}, "", "feature 'size': 1 value. Expected size:FLOAT64[2]."),
        ({"id": [b"p"]}, "", "feature 'size': 0 values. Expected size:FLOAT64[2]."),
        (
            {**PLAIN, "new": [1]},
            "",
            "a feature 'new', which the first examples do not have. Expected the features id, ",
        ),
        (PLAIN, "id:INT64", "feature 'id': bytes_list of 1 value. Expected id:INT64."),
    ],
    ids=["kind", "more values", "bytes", "fewer values", "absent", "new feature", "said"],
)
def test_an_example_that_does_not_fit_is_named(tmp_path: Path, capsys, monkeypatch, other, schema, message) -> None:
    """With its file, its number, the byte it begins at, and how to say otherwise; no file is written of it."""
    monkeypatch.setattr(tfrecords, "LOOKED_AT", 1)
    write(tmp_path / "old/a.tfrecord", [PLAIN, other])
    assert convert(tmp_path, schema=schema) == 2
    said = capsys.readouterr().err
    record, byte = (0, 0) if schema else (1, 16 + len(first_record(tmp_path / "old/a.tfrecord")))
    assert f"{tmp_path}/old/a.tfrecord, record {record} (counted from 0; at byte {byte} uncompressed)" in said
    assert message in said
    assert WAY_OUT in said
    assert not list((tmp_path / "new").glob("*"))


def first_record(path: Path) -> bytes:
    """As TensorFlow reads it."""
    return bytes(next(iter(tf.data.TFRecordDataset(str(path)))).numpy())


def cut(content: bytes) -> bytes:
    """Without its last three bytes."""
    return content[:-3]


def flipped(content: bytes) -> bytes:
    """With another byte in the second record."""
    return content[:-10] + bytes([content[-10] ^ 1]) + content[-9:]


@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize(("damage", "message"), [(cut, "the file ends inside it"), (flipped, "the record is corrupt")])
def test_a_broken_record_is_named_and_the_others_can_be_read(
    tmp_path: Path, capsys, compression: str, damage, message: str
) -> None:
    """Or the file, written anew."""
    write(tmp_path / "old/a.tfrecord", [PLAIN])
    write(tmp_path / "old/b.tfrecord", [PLAIN, PLAIN])
    whole = (tmp_path / "old/b.tfrecord").read_bytes()
    pack = gzip.compress if compression else bytes
    (tmp_path / "old/b.tfrecord").write_bytes(pack(damage(whole)))
    schema = "id:STRING, size:FLOAT64[]"
    assert convert(tmp_path, schema=schema) == 2
    said = capsys.readouterr().err
    assert "b.tfrecord, record 1 (counted from 0; at byte " in said
    assert message in said
    assert tfrecords.WAY_OUT in said
    assert [path.name for path in (tmp_path / "new").rglob("*")] == ["a.tfrecord.parquet"]
    assert convert(tmp_path, "a.tfrecord", schema) == 0
    (tmp_path / "old/b.tfrecord").write_bytes(pack(whole))
    assert convert(tmp_path, schema=schema) == 0


def test_what_is_no_example_is_refused(tmp_path: Path, capsys) -> None:
    """By its place."""
    (tmp_path / "old").mkdir()
    with tf.io.TFRecordWriter(str(tmp_path / "old/a.tfrecord")) as writer:
        writer.write(b"\xff\xff")
    assert convert(tmp_path) == 2
    assert "a.tfrecord, record 0 (counted from 0; at byte 0 uncompressed): is not a tf.train.Example" in (
        capsys.readouterr().err
    )


SAID = {
    "Correct it": ("a.tfrecord", "id:TEXT", "SCHEMA: 'id:TEXT'", "id:STRING"),
    "Correct the address": ("b.tfrecord", "", "FROM: no file ", ""),
    "Name other files": ("empty.tfrecord", "", "FROM: 0 examples, of no feature", ""),
    "Name one of them in SCHEMA": ("alike.tfrecord", "", "'a b' and 'a_b', both column 'a_b'", "a_b:INT64"),
    "Write them anew": ("mixed.tfrecord", "", "feature 'a b': float_list and int64_list", ""),
}


@pytest.mark.parametrize("advice", SAID)
def test_what_cannot_be_converted_is_refused_and_corrected(tmp_path: Path, capsys, advice: str) -> None:
    """By name."""
    write(tmp_path / "old/a.tfrecord", [PLAIN])
    write(tmp_path / "old/alike.tfrecord", [{"a b": [1], "a_b": [2]}])
    write(tmp_path / "old/mixed.tfrecord", [{"a b": [1]}, {"a b": [2.0]}])
    write(tmp_path / "old/empty.tfrecord", [])
    pattern, schema, message, corrected = SAID[advice]
    assert convert(tmp_path, pattern, schema) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.rstrip().endswith(f"{advice}.")
    assert convert(tmp_path, pattern if corrected else "a.tfrecord", corrected) == 0


OTHER_FILES = "Name another folder, or empty it"


@pytest.mark.parametrize("name", ["a.tfrecord.parquet", "b.parquet"])
def test_a_folder_with_other_files_is_refused(tmp_path: Path, capsys, name: str) -> None:
    """A load of `*.parquet` would take them too; nothing is written over."""
    write(tmp_path / "old/a.tfrecord", [PLAIN])
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / name).write_bytes(b"mine")
    assert convert(tmp_path) == 2
    said = capsys.readouterr().err
    assert OTHER_FILES in said
    assert f"{tmp_path}/new/{name}" in said
    assert (tmp_path / "new" / name).read_bytes() == b"mine"
    (tmp_path / "new" / name).unlink()
    assert convert(tmp_path) == 0
