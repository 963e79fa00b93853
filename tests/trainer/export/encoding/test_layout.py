"""Layouts: vectors of numbers and several rows per Example, read back with TensorFlow."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.contract.documents import ImageColumn, ShardLayout
from trainer.errors import RequestError
from trainer.export.encoding.encode import Encoder
from trainer.export.encoding.layout import INT64_NULL

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("delay", pa.int64()),
        ("late", pa.bool_()),
        ("price", pa.decimal128(38, 9)),
        ("speed", pa.float64()),
        ("row_hash", pa.int64()),
    ]
)
VALUES = {
    "id": st.none() | st.text(max_size=3),
    "delay": st.none() | st.integers(-(2**40), 2**40),
    "late": st.none() | st.booleans(),
    "price": st.none() | st.decimals(-1000, 1000, places=2),
    "speed": st.none() | st.floats(width=32, allow_nan=False),
    "row_hash": st.integers(0, 9),
}
ROWS = st.lists(st.fixed_dictionaries(VALUES), max_size=9)
NUMBERS = ("speed", "delay", "late", "price")


def as_float32(value: Any) -> float:
    return math.nan if value is None else float(np.float32(float(value)))


def as_listed(name: str, value: Any) -> Any:
    """What a value is in a list of several rows."""
    match name:
        case "id":
            return (value or "").encode()
        case "delay" | "late":
            return INT64_NULL if value is None else int(value)
    return as_float32(value)


@settings(max_examples=80, deadline=None)
@given(rows=ROWS)
def test_numbers_lie_in_one_vector_in_the_order_asked_for(rows: list[dict[str, Any]], examples_of) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    examples = examples_of(batch, layout=ShardLayout(numeric=NUMBERS))
    assert len(examples) == len(rows)
    for example, row in zip(examples, rows, strict=True):
        np.testing.assert_array_equal(example.pop("_numeric"), [as_float32(row[name]) for name in NUMBERS])
        assert example == ({} if row["id"] is None else {"id": [row["id"].encode()]})


@settings(max_examples=80, deadline=None)
@given(rows=ROWS, each=st.integers(2, 5), start=st.integers(0, 2))
def test_several_rows_lie_in_one_example_and_the_last_is_padded(
    rows: list[dict[str, Any]], each: int, start: int, examples_of
) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA).slice(start)
    rows = rows[start:]
    examples = examples_of(batch, layout=ShardLayout(rows_per_record=each))
    assert [example["_rows"] for example in examples] == [
        [min(each, len(rows) - first)] for first in range(0, len(rows), each)
    ]
    padded = [*rows, *[dict.fromkeys(VALUES)] * (len(examples) * each - len(rows))]
    for name in ("id", "delay", "late", "price", "speed"):
        found = [value for example in examples for value in example[name]]
        expected = [as_listed(name, row[name]) for row in padded]
        if name in ("price", "speed"):
            np.testing.assert_array_equal(found, expected)
        else:
            assert found == expected


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, each=st.integers(2, 5))
def test_both_together_give_a_matrix_a_row_after_the_other(rows: list[dict[str, Any]], each: int, examples_of) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    examples = examples_of(batch, layout=ShardLayout(numeric=NUMBERS, rows_per_record=each))
    matrix = np.array([example["_numeric"] for example in examples]).reshape(-1, len(NUMBERS))
    expected = np.array([[as_float32(row[name]) for name in NUMBERS] for row in rows]).reshape(-1, len(NUMBERS))
    np.testing.assert_array_equal(matrix[: len(rows)], expected)
    assert np.isnan(matrix[len(rows) :]).all()
    assert all(set(example) == {"id", "_numeric", "_rows"} for example in examples)


def test_tensorflow_reads_pre_batched_vectors(tmp_path: Path) -> None:
    """1,000 rows in Examples of 256, over several chunks, and a padded rest."""
    values = np.random.default_rng(3).normal(size=(1000, 3)).astype(np.float32)
    batch = pa.record_batch(
        {"a": values[:, 0], "b": values[:, 1], "c": values[:, 2], "label": np.arange(1000), "note": ["x" * 6000] * 1000}
    )
    encoder = Encoder(batch.schema, ShardLayout(numeric=("a", "b", "c"), rows_per_record=256))
    path = tmp_path / "shard"
    chunks = list(encoder.encode(batch))
    path.write_bytes(b"".join(chunk.tobytes() for chunk in chunks))
    assert len(chunks) > 1
    spec = {
        "_numeric": tf.io.FixedLenFeature([256, 3], tf.float32),
        "_rows": tf.io.FixedLenFeature([], tf.int64),
        "label": tf.io.FixedLenFeature([256], tf.int64),
    }
    records = [tf.io.parse_single_example(record, spec) for record in tf.data.TFRecordDataset(str(path))]
    assert [int(record["_rows"]) for record in records] == [256, 256, 256, 232]
    found = np.concatenate([record["_numeric"] for record in records])
    np.testing.assert_array_equal(found[:1000], values)
    assert np.concatenate([record["label"] for record in records])[:1000].tolist() == list(range(1000))


def test_a_layout_gives_the_same_bytes_however_rows_are_given() -> None:
    batch = pa.record_batch({"x": np.arange(500.0), "y": [f"{index}" for index in range(500)]})
    turned = batch.take(pa.array(np.arange(500)[::-1].copy()))
    back = pa.array(np.arange(500)[::-1].copy())
    layout = ShardLayout(numeric=("x",), rows_per_record=7)
    plain = b"".join(chunk.tobytes() for chunk in Encoder(batch.schema, layout).encode(batch))
    assert plain == b"".join(chunk.tobytes() for chunk in Encoder(batch.schema, layout).encode(turned, back))


def image(name: str) -> ImageColumn:
    return ImageColumn(name=name, height=8, width=8, channels=1, encoding="raw")


@pytest.mark.parametrize(
    ("layout", "images", "found"),
    [
        (ShardLayout(numeric=("speed", "colour")), [], "not there: colour"),
        (ShardLayout(numeric=("text", "tags", "speed")), [], "no numbers: text, tags"),
        (ShardLayout(numeric=("speed", "speed")), [], "twice: speed"),
        (ShardLayout(rows_per_record=8), [], "8 rows per Example with REPEATED columns: tags"),
        (ShardLayout(numeric=("speed",)), [], "names of columns: _numeric"),
        (ShardLayout(), [image("speed"), image("text")], "not BYTES: speed, text"),
        (ShardLayout(), [image("png"), image("png")], "twice: png"),
    ],
)
def test_what_cannot_be_laid_out_is_refused_by_name(layout: ShardLayout, images: list[ImageColumn], found: str) -> None:
    columns: list[tuple[str, pa.DataType]] = [
        ("speed", pa.float64()),
        ("tags", pa.list_(pa.int64())),
        ("text", pa.string()),
        ("png", pa.binary()),
        ("_numeric", pa.int64()),
    ]
    with pytest.raises(RequestError, match=found):
        Encoder(pa.schema(columns), layout, images)
