"""What the messages about examples advise, done as they say: then they are read."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import tensorflow as tf

from tests.support.storage_read import client_of, storage_read
from tests.support.ways_out import ways_out
from trainer.bigquery.streams import TableReader
from trainer.contract.documents import Column, Manifest, ShardLayout
from trainer.errors import TrainerError
from trainer.input import TENSORFLOW_IO, open_source, require_input, tensorflow_io
from trainer.input.arrow import ArrowColumns
from trainer.input.bigquery import TableSplit
from trainer.input.csv import CsvLines
from trainer.input.files import Shard, Shards
from trainer.input.images import ImageFeature
from trainer.input.records import RecordParser
from trainer.input.source import Share
from trainer.input.splits import FileSplit
from trainer.input.tables import scalar_columns, span_restriction
from trainer.input.tfrecord import Records
from trainer.storage import Storage

FORCE = "Trigger the DAG again with this run's as_of and the Param force"
INTEGER = tf.io.FixedLenFeature([], tf.int64, default_value=-1)
TEXT = tf.io.FixedLenFeature([], tf.string, default_value="")
LIST = tf.io.RaggedFeature(tf.int64)
PIXELS = ImageFeature(height=2, width=2, channels=1)


@dataclass(frozen=True)
class Case:
    """An input that is refused, words of the message's way out, and each input changed as it says.

    `do` gets the manifest of an exported run too.
    """

    do: Callable[[Manifest, Any], object]
    wrong: Any
    words: str
    right: tuple[Any, ...]


def parser(_: Manifest, given: tuple[str, Any, str]) -> object:
    """What reads a column `x` of a type from files: a format, how it is parsed, its type in the table."""
    format_, feature, type_ = given
    schema = [Column(name="x", type=type_, mode="NULLABLE")] if type_ else []
    return (CsvLines(schema) if format_ == "csv" else Records()).parser({"x": feature})


def columns(manifest: Manifest, given: tuple[str, Any, str]) -> object:
    """What reads it: from files, or from the table itself."""
    if given[0] != "bigquery":
        return parser(manifest, given)
    schema = (Column(name="x", type=given[2], mode="NULLABLE"),)
    return scalar_columns({"x": given[1]}, dataclasses.replace(manifest, columns=schema))


def open_train(manifest: Manifest, rows: int) -> object:
    """Open the training split, with so many of its examples."""
    split = manifest.splits["train"]
    split = split if rows else dataclasses.replace(split, rows=0, files=())
    with open_source(manifest, {"train": split}, Storage()) as source:
        return source.open_split("train")


def typed(manifest: Manifest, type_: pa.DataType) -> None:
    """Hold a column of the table against the manifest, which has an INTEGER."""
    ArrowColumns({"distance": INTEGER}, manifest).require_types(pa.schema({"distance": type_}), "table")


CASES = {
    "__init__.py, input": Case(
        lambda manifest, wanted: require_input(wanted, manifest),
        "csv",
        f"{FORCE}: both are made from the same plan",
        ("tfrecord",),
    ),
    "__init__.py, no examples": Case(open_train, 0, "Widen data.window_days, or look at the query", (1,)),
    "csv.py, column": Case(parser, ("csv", INTEGER, ""), "Add it to the query", (("csv", INTEGER, "INTEGER"),)),
    "csv.py, BYTES": Case(
        parser, ("csv", TEXT, "BYTES"), "Set training.input to tfrecord", (("tfrecord", TEXT, "BYTES"),)
    ),
    "records.py": Case(
        lambda _, rows: RecordParser({"x": LIST}, ShardLayout(rows_per_record=rows)),
        8,
        "Set data.layout.rows_per_record to 1",
        (1,),
    ),
    "tables.py, type": Case(
        columns,
        ("bigquery", TEXT, "INTERVAL"),
        "Set training.input to tfrecord, or give such a scalar in the query",
        (("tfrecord", TEXT, "INTERVAL"), ("bigquery", TEXT, "STRING")),
    ),
    "tables.py, image": Case(
        columns, ("bigquery", PIXELS, "BYTES"), "Set training.input to tfrecord", (("tfrecord", PIXELS, "BYTES"),)
    ),
    "tables.py, other type": Case(typed, pa.string(), f"{FORCE}: it takes a new snapshot", (pa.int64(),)),
    "tables.py, no days": Case(
        lambda manifest, days: span_restriction(
            dataclasses.replace(manifest, spans=manifest.spans[:days]), "train", Share()
        ),
        0,
        f"{FORCE}: it takes a new snapshot",
        (6,),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_way_out_is_one(exported, name: str) -> None:
    """Refused; and taken when it is changed as the message says."""
    case = CASES[name]
    with pytest.raises(TrainerError) as refused:
        case.do(exported.manifest(), case.wrong)
    assert case.words in str(refused.value)
    for right in case.right:
        case.do(exported.manifest(), right)


SHARDS = f"Delete the span's folder in the span store. {FORCE}: the span is exported again"


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x")])
def test_a_damaged_shard_is_exported_again(run, harm: Callable[[Path], object]) -> None:
    """Deleted with its span; a new attempt's snapshot does not find the span in the store."""

    def read() -> int:
        manifest = run.manifest()
        with open_source(manifest, manifest.splits, run.storage) as source:
            return source.open_split("train").rows

    run.export()
    rows, victim = read(), Path(run.manifest().splits["train"].files[0].uri)
    harm(victim)
    with pytest.raises(TrainerError) as refused:
        read()
    assert SHARDS in str(refused.value)
    shutil.rmtree(victim.parent)
    (run.path / "manifest.json").unlink()
    run.export()
    assert read() == rows


LINE_BREAK = "Remove it in the query, or set training.input to tfrecord"


def test_a_line_break_goes_or_is_read_from_records(tmp_path: Path) -> None:
    """CSV files are read line by line, records are not."""

    def read(name: str, content: bytes, format_: Any) -> list[bytes]:
        (tmp_path / name).write_bytes(content)
        shard = Shard(uri=name, path=str(tmp_path / name), rows=1)
        split = FileSplit("train", Shards(files=(shard,), compression=""), format_)
        with split.reading({"x": TEXT}):
            return [value for batch in split.batches({"x": TEXT}) for value in batch["x"].numpy()]

    lines = CsvLines([Column(name="x", type="STRING", mode="NULLABLE")])
    with pytest.raises(TrainerError) as refused:
        read("a.csv", b'"x"\n"a\nb"\n', lines)
    assert LINE_BREAK in str(refused.value)
    assert read("b.csv", b'"x"\n"a b"\n', lines) == [b"a b"]
    text = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a\nb"]))
    with tf.io.TFRecordWriter(str(tmp_path / "written")) as writer:
        writer.write(tf.train.Example(features=tf.train.Features(feature={"x": text})).SerializeToString())
    assert read("c.tfrecord", (tmp_path / "written").read_bytes(), Records()) == [b"a\nb"]


def test_a_table_with_other_rows_is_another_attempts(exported) -> None:
    """A new attempt has a table of its own."""
    manifest = exported.manifest()
    rows = manifest.splits["train"].rows

    def read(count: int) -> None:
        with (
            storage_read(pa.table({"distance": pa.array(range(count), pa.int64())})) as server,
            client_of(server) as client,
        ):
            split = TableSplit("train", manifest, reader=TableReader(client))
            with split.reading({"distance": INTEGER}):
                found = sum(len(batch["distance"]) for batch in split.batches({"distance": INTEGER}))
            split.require_rows(found)

    with pytest.raises(TrainerError) as refused:
        read(rows + 1)
    assert OTHER_ROWS in str(refused.value)
    read(rows)


OTHER_ROWS = f"The table is not the one of the snapshot any more. {FORCE}"


class FakeClient:
    """Stands for tensorflow-io's client: by name of a table what it answers, an error or so many rows."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}

    def __call__(self, table: str, _reading: object) -> FakeClient:
        """Open a table."""
        self._answer = self.answers[table]
        return self

    def schema(self, _fields: object) -> bytes:
        """Return the schema, or fail."""
        if isinstance(self._answer, Exception):
            raise self._answer
        return bytes(pa.schema({"distance": pa.int64()}).serialize().to_pybytes())

    def count(self, _restriction: str, **_limit: int) -> int:
        """No row has a NULL."""
        return 0

    def rows(self, _restriction: str, _fields: object, _format: str) -> tf.data.Dataset:
        """Return them in one batch."""
        return tf.data.Dataset.from_tensors({"distance": tf.zeros([self._answer], tf.int64)})


TABLES = {
    "gone": (
        tf.errors.NotFoundError(None, None, "no table"),
        f"It expires after data.keep_table_days. {FORCE}",
    ),
    "other columns": (tf.errors.InvalidArgumentError(None, None, "no column"), FORCE),
    "other rows": (1, OTHER_ROWS),
    "no right": (tf.errors.PermissionDeniedError(None, None, "getData"), "Grant it, then start again"),
    "no answer": (tf.errors.UnavailableError(None, None, "later"), "Start again"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_tensorflow_io_cannot_read_is_another_attempts_or_read_later(
    exported, monkeypatch, name: str
) -> None:
    wrong, words = TABLES[name]
    manifest, tables = exported.manifest(), FakeClient()
    monkeypatch.setattr(tensorflow_io, "_Client", tables)

    def read(manifest: Manifest) -> None:
        split = tensorflow_io.IoTableSplit("train", manifest)
        with split.reading({"distance": INTEGER}):
            found = sum(len(batch["distance"]) for batch in split.batches({"distance": INTEGER}))
        split.require_rows(found)

    tables.answers = {manifest.table: wrong}
    with pytest.raises(TrainerError) as refused:
        read(manifest)
    assert words in str(refused.value)
    mended = dataclasses.replace(manifest, table="p.d.new") if FORCE in words else manifest
    tables.answers[mended.table] = manifest.splits["train"].rows
    read(mended)


WITHOUT_IO = "Train in an image built with it (docs/data.md#tensorflow-io), or remove training.reader"


def test_without_tensorflow_io_the_table_is_read_by_the_other_reader(direct_manifest: Manifest) -> None:
    """This environment has none; one that has it: test_bigquery.py."""
    splits = {"train": direct_manifest.splits["train"]}
    with open_source(direct_manifest, splits, Storage(), reader=TENSORFLOW_IO) as source:
        with pytest.raises(TrainerError) as refused:
            source.open_split("train")
        assert WITHOUT_IO in str(refused.value)
    with open_source(direct_manifest, splits, Storage()) as source:
        assert source.open_split("train").rows == splits["train"].rows


@pytest.fixture
def direct_manifest(exported) -> Manifest:
    """Of a run whose training split is in the table only."""
    manifest = exported.manifest()
    train = dataclasses.replace(manifest.splits["train"], files=())
    return dataclasses.replace(manifest, splits={**manifest.splits, "train": train})


def test_every_way_out_is_followed() -> None:
    """Of the messages about examples."""
    followed = [case.words for case in CASES.values()] + [words for _, words in TABLES.values()]
    followed += [SHARDS, LINE_BREAK, WITHOUT_IO, OTHER_ROWS]
    for where, texts in ways_out("trainer/input/*.py"):
        assert any(text in words or words in text for text in texts for words in followed), (where, texts)
