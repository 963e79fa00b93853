"""The encoder: byte for byte what TensorFlow would have written."""

from __future__ import annotations

import datetime
import decimal
import itertools
import struct
import subprocess
import sys
from typing import Any

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.errors import DataError
from trainer.export.encode import Encoder
from trainer.export.order import by_hash

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def records_of(content: bytes) -> list[bytes]:
    """Split TFRecords and check both CRCs of each."""
    records, at = [], 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        data = content[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", content, at + 8)[0] == masked_crc(content[at : at + 8])
        assert struct.unpack_from("<I", content, at + 12 + length)[0] == masked_crc(data)
        records.append(data)
        at += 16 + length
    return records


def masked_crc(data: bytes) -> int:
    crc = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def encode(batch: pa.RecordBatch) -> bytes:
    return b"".join(chunk.tobytes() for chunk in Encoder(batch.schema).encode(batch))


def expected_feature(value: Any) -> tf.train.Feature | None:
    """What the tutorial loop makes of a Python value."""
    if value is None:
        return None
    values = value if isinstance(value, list) else [value]
    plain = [plain_value(item) for item in values]
    kind = type(plain[0]) if plain else None
    if kind is int:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=plain))
    if kind is float:
        return tf.train.Feature(float_list=tf.train.FloatList(value=plain))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=plain))


def plain_value(value: Any) -> int | float | bytes:
    match value:
        case bool():
            return int(value)
        case str():
            return value.encode()
        case decimal.Decimal():
            return float(value)
        case datetime.datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
            return (aware - EPOCH) // datetime.timedelta(microseconds=1)
        case datetime.date():
            return (value - EPOCH.date()).days
        case datetime.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return value


def assert_equal_examples(batch: pa.RecordBatch) -> None:
    """Every record parses to its row, and its bytes are TensorFlow's own."""
    records = records_of(encode(batch))
    assert len(records) == batch.num_rows
    empty = {
        name: next(kind for test, kind in EMPTY_LISTS if test(type_.value_type))
        for name, type_ in zip(batch.schema.names, batch.schema.types, strict=True)
        if pa.types.is_list(type_)
    }
    for record, row in zip(records, batch.to_pylist(), strict=True):
        features = {
            name: empty[name] if value == [] else expected_feature(value)
            for name, value in row.items()
            if value is not None
        }
        wanted = tf.train.Example(features=tf.train.Features(feature=features))
        parsed = tf.train.Example.FromString(record)
        assert parsed.SerializeToString(deterministic=True) == wanted.SerializeToString(deterministic=True)
        assert len(record) == wanted.ByteSize()


EMPTY_LISTS = [
    (pa.types.is_floating, tf.train.Feature(float_list=tf.train.FloatList())),
    (pa.types.is_integer, tf.train.Feature(int64_list=tf.train.Int64List())),
    (lambda _type: True, tf.train.Feature(bytes_list=tf.train.BytesList())),
]
INT64 = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 300),
    st.sampled_from([0, 127, 128, 2**56 - 1, 2**56, 2**63 - 1, -1]),
)
FLOAT = st.floats(width=32, allow_nan=False)
TEXT = st.one_of(st.text(max_size=8), st.integers(100, 160).map(lambda size: "x" * size))
SCALARS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), INT64),
    (pa.float64(), FLOAT),
    (pa.float32(), FLOAT),
    (pa.bool_(), st.booleans()),
    (pa.string(), TEXT),
    (pa.binary(), st.binary(max_size=200)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", tz="UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
    (pa.timestamp("us"), st.datetimes()),
    (pa.time64("us"), st.times()),
    (pa.decimal128(38, 9), st.integers(-(10**9), 10**9).map(lambda value: decimal.Decimal(value) / 8)),
    (pa.decimal256(76, 38), st.integers(-(10**9), 10**9).map(lambda value: decimal.Decimal(value) / 8)),
]
LISTS = [(pa.list_(type_), st.lists(values, max_size=5)) for type_, values in SCALARS[:2] + SCALARS[4:6]]


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    rows = draw(st.integers(0, 12))
    names = draw(
        st.lists(
            st.one_of(st.text(min_size=1, max_size=4), st.sampled_from(["k" * 120, "k" * 130])),
            min_size=1,
            max_size=6,
            unique=True,
        )
    )
    names = [name for name in names if name not in ("span", "part", "shard", "row_hash")] or ["a"]
    arrays = []
    for _ in names:
        type_, values = draw(st.sampled_from(SCALARS + LISTS))
        column = draw(st.lists(st.one_of(st.none(), values), min_size=rows, max_size=rows))
        arrays.append(pa.array(column, type_))
    return pa.record_batch(arrays, names)


@settings(max_examples=150, deadline=None)
@given(batches())
def test_any_batch_comes_back_from_tensorflow(batch: pa.RecordBatch) -> None:
    assert_equal_examples(batch)


@settings(max_examples=60, deadline=None)
@given(batches(), st.data())
def test_where_a_batch_is_cut_changes_no_byte(batch: pa.RecordBatch, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, batch.num_rows), max_size=4)))
    borders = [0, *cuts, batch.num_rows]
    encoder = Encoder(batch.schema)
    pieces = [batch.slice(start, end - start) for start, end in itertools.pairwise(borders)]
    cut = b"".join(chunk.tobytes() for piece in pieces for chunk in encoder.encode(piece))
    assert cut == encode(batch)


def test_many_rows_in_many_chunks_equal_rows_one_by_one() -> None:
    """Small integers come from tables, large ones do not; tables grow while batches come."""
    random = np.random.default_rng(1)
    count = 5000
    columns = {
        "id": pa.array(np.arange(count)),
        "small": pa.array(random.integers(-5, 5, count), mask=random.random(count) < 0.1),
        "wide": pa.array(random.integers(-(2**62), 2**62, count)),
        "f1": pa.array(random.normal(size=count)),
        "f2": pa.array(random.normal(size=count).astype(np.float32)),
        "f3": pa.array(random.normal(size=count), mask=random.random(count) < 0.5),
        "text": pa.array([None if index % 7 == 0 else "é" * (index % 90) for index in range(count)]),
        "long": pa.array(["y" * (index * 5) for index in range(count)]),
    }
    batch = pa.record_batch(columns)
    encoder = Encoder(batch.schema)
    singly = b"".join(chunk.tobytes() for row in range(count) for chunk in encoder.encode(batch.slice(row, 1)))
    assert encode(batch) == singly
    assert_equal_examples(batch.slice(0, 300))


def test_rows_of_floats_only_take_the_fixed_width_path() -> None:
    random = np.random.default_rng(2)
    batch = pa.record_batch(
        {f"f{index:03d}": pa.array(random.normal(size=50).astype(np.float32)) for index in range(40)}
    )
    assert_equal_examples(batch)
    assert_equal_examples(batch.slice(7, 13))


@pytest.mark.parametrize(
    ("value", "stored"),
    [(float("nan"), "nan"), (float("inf"), "inf"), (1e300, "inf"), (0.1, "0.10000000149011612")],
)
def test_doubles_become_the_nearest_float32(value: float, stored: str) -> None:
    batch = pa.record_batch({"x": pa.array([value], pa.float64())})
    example = tf.train.Example.FromString(records_of(encode(batch))[0])
    assert str(float(example.features.feature["x"].float_list.value[0])) == stored


def test_a_row_without_any_value_is_an_empty_example() -> None:
    batch = pa.record_batch({"x": pa.array([None], pa.int64()), "y": pa.array([None], pa.string())})
    assert records_of(encode(batch)) == [tf.train.Example(features=tf.train.Features()).SerializeToString()]


def test_a_megabyte_of_bytes_fits_in_a_cell() -> None:
    batch = pa.record_batch({"png": pa.array([bytes(1 << 20), b""]), "x": pa.array([1.0, 2.0])})
    assert_equal_examples(batch)


def test_the_run_tables_own_columns_are_no_features() -> None:
    batch = pa.record_batch({"x": [1], "span": ["a"], "part": ["train"], "shard": [0], "row_hash": [5]})
    example = tf.train.Example.FromString(records_of(encode(batch))[0])
    assert list(example.features.feature) == ["x"]


def test_null_inside_an_array_is_refused_by_name() -> None:
    batch = pa.record_batch({"tags": pa.array([["a", None]])})
    with pytest.raises(DataError, match="column tags: NULL inside an array"):
        encode(batch)


def test_a_type_without_mapping_is_refused_by_name() -> None:
    schema = pa.schema([("nested", pa.struct([("a", pa.int64())]))])
    with pytest.raises(DataError, match="column nested: Arrow type struct"):
        Encoder(schema)


def test_rows_stand_by_hash_and_equal_hashes_by_bytes() -> None:
    batch = pa.record_batch({"x": [30, 10, 20, 11, 12], "row_hash": [5, 1, 5, 1, -9]})
    encoder = Encoder(batch.schema)
    assert batch.take(by_hash(batch, encoder))["x"].to_pylist() == [12, 10, 11, 20, 30]
    turned = batch.take(pa.array([4, 3, 2, 1, 0]))
    assert turned.take(by_hash(turned, encoder))["x"].to_pylist() == [12, 10, 11, 20, 30]


@pytest.mark.parametrize("hashes", [None, [1, None], ["a", "b"]], ids=["missing", "null", "text"])
def test_a_row_hash_that_is_none_is_refused(hashes: list[Any] | None) -> None:
    columns: dict[str, Any] = {"x": [1, 2]} | ({} if hashes is None else {"row_hash": hashes})
    batch = pa.record_batch(columns)
    with pytest.raises(DataError, match="row_hash"):
        by_hash(batch, Encoder(batch.schema))


def test_the_exporter_imports_neither_tensorflow_nor_pandas() -> None:
    """Also not while encoding: Arrow's own conversions would import pandas."""
    code = (
        "import sys, pyarrow as pa\n"
        "import trainer.export.reader, trainer.export.spans, trainer.task\n"
        "from trainer.export.encode import Encoder\n"
        "b = pa.record_batch({'a': [1, 2], 'b': ['x', None], 'c': [[1.5], []], 'd': [1.0, 2.0]})\n"
        "list(Encoder(b.schema).encode(b))\n"
        "sys.exit(sorted({'tensorflow', 'tf_keras', 'pandas'} & set(sys.modules)).__repr__() if "
        "{'tensorflow', 'tf_keras', 'pandas'} & set(sys.modules) else 0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
