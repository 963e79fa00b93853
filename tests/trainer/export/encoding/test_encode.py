"""The encoder: byte for byte what TensorFlow would have written."""

from __future__ import annotations

import datetime
import decimal
import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.refusals import refuses
from trainer.contract.column_types import RUN_COLUMNS
from trainer.errors import DataError
from trainer.export.encoding.encode import Encoder

INT64 = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 300),
    st.sampled_from([0, 127, 128, 2**56 - 1, 2**56, 2**63 - 1, -1, -(2**63)]),
)
FLOAT = st.floats() | st.floats(width=32) | st.sampled_from([float("nan"), float("inf"), -0.0, 1e-45, 3.5e38])
TEXT = st.one_of(st.text(max_size=8), st.integers(0, 160).map(lambda size: "x" * size))
NUMERIC = st.decimals(-(10**20), 10**20, places=9) | st.integers(-(2**60), 2**60).map(decimal.Decimal)
SCALARS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), INT64),
    (pa.float64(), FLOAT),
    (pa.float32(), st.floats(width=32)),
    (pa.bool_(), st.booleans()),
    (pa.string(), TEXT),
    (pa.binary(), st.binary(max_size=200)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", tz="UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
    (pa.timestamp("us"), st.datetimes()),
    (pa.time64("us"), st.times()),
    (pa.decimal128(38, 9), NUMERIC),
    (pa.decimal256(76, 38), st.integers(-(10**9), 10**9).map(lambda value: decimal.Decimal(value) / 8)),
]
LISTS = [(pa.list_(type_), st.lists(values, max_size=5)) for type_, values in SCALARS]
# Keys whose lengths stand around 127 bytes make every length varint of their entries one or two bytes long.
NAMES = st.one_of(st.text(min_size=1, max_size=4), st.sampled_from(["k" * 118, "m" * 123, "n" * 130, "größe", "数"]))


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Any batch of mapped types, sliced too. No name begins with another: there upb's order is not that of UTF-8."""
    rows = draw(st.integers(0, 12))
    drawn = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    names = [name for name in drawn if not any(other != name and other.startswith(name) for other in drawn)]
    names = [name for name in names if name not in RUN_COLUMNS]
    arrays = []
    for _ in names:
        type_, values = draw(st.sampled_from(SCALARS + LISTS))
        column = draw(st.lists(st.one_of(st.none(), values), min_size=rows, max_size=rows))
        arrays.append(pa.array(column, type_))
    return pa.record_batch(arrays, names).slice(draw(st.integers(0, rows)))


@settings(max_examples=200, deadline=None)
@given(batch=batches())
def test_any_batch_is_byte_for_byte_what_tensorflow_writes(batch: pa.RecordBatch, records_of, tutorial) -> None:
    assert records_of(batch) == tutorial(batch)


@settings(max_examples=60, deadline=None)
@given(batch=batches(), data=st.data())
def test_where_a_batch_is_cut_changes_no_byte(batch: pa.RecordBatch, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, batch.num_rows), max_size=4)))
    borders = [0, *cuts, batch.num_rows]
    encoder = Encoder(batch.schema)
    pieces = [batch.slice(start, end - start) for start, end in itertools.pairwise(borders)]
    assert b"".join(encode(encoder, piece) for piece in pieces) == encode(Encoder(batch.schema), batch)


def encode(encoder: Encoder, batch: pa.RecordBatch) -> bytes:
    return b"".join(chunk.tobytes() for chunk in encoder.encode(batch))


def test_many_rows_in_many_chunks_equal_rows_one_by_one(records_of, tutorial) -> None:
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
    assert encode(Encoder(batch.schema), batch) == b"".join(
        encode(encoder, batch.slice(row, 1)) for row in range(count)
    )
    assert records_of(batch.slice(0, 300)) == tutorial(batch.slice(0, 300))


@pytest.mark.parametrize("longest", [5, 17, 40, 64, 65])
@pytest.mark.parametrize("nulls", [False, True])
def test_short_texts_of_unequal_lengths_take_every_way(longest: int, nulls: bool, records_of, tutorial) -> None:
    """In slots, whose surplus may fall on the next row's frame but not on its columns; else joined."""
    text = ["x" * (index * 7 % (longest + 1)) if index % 5 or not nulls else None for index in range(200)]
    for columns in (
        {"z": text},
        {"a": text, "z": range(200)},
        {"a": [None if nulls and index % 3 else index for index in range(200)], "y": text, "z": text[::-1]},
    ):
        batch = pa.record_batch(columns)
        assert records_of(batch) == tutorial(batch)


def test_rows_of_floats_only_take_the_fixed_width_path(records_of, tutorial) -> None:
    random = np.random.default_rng(2)
    batch = pa.record_batch(
        {f"f{index:03d}": pa.array(random.normal(size=50).astype(np.float32)) for index in range(40)}
    )
    assert records_of(batch) == tutorial(batch)
    assert records_of(batch.slice(7, 13)) == tutorial(batch.slice(7, 13))


def test_as_many_columns_as_there_may_be(records_of, tutorial) -> None:
    columns = {f"c{index:05d}": [float(index) if index % 3 else None, 1.5] for index in range(9_996)}
    batch = pa.record_batch(columns)
    assert records_of(batch) == tutorial(batch)


@pytest.mark.parametrize(
    ("value", "stored"),
    [(float("nan"), "nan"), (float("inf"), "inf"), (1e300, "inf"), (0.1, "0.10000000149011612")],
)
def test_doubles_become_the_nearest_float32(value: float, stored: str, examples_of) -> None:
    batch = pa.record_batch({"x": pa.array([value], pa.float64())})
    assert str(examples_of(batch)[0]["x"][0]) == stored


def test_a_row_without_any_value_is_an_empty_example(records_of) -> None:
    batch = pa.record_batch({"x": pa.array([None], pa.int64()), "y": pa.array([None], pa.string())})
    assert records_of(batch) == [tf.train.Example(features=tf.train.Features()).SerializeToString()]


def test_a_megabyte_of_bytes_fits_in_a_cell(records_of, tutorial) -> None:
    batch = pa.record_batch({"png": pa.array([bytes(1 << 20), b""]), "x": pa.array([1.0, 2.0])})
    assert records_of(batch) == tutorial(batch)


@pytest.mark.parametrize("ordered", [False, True])
def test_chunks_stay_small_where_rows_grow_a_thousandfold(ordered: bool) -> None:
    """What bounds the memory: 3,000 short texts, then 40 MB in 40 rows, then short ones again."""
    text = ["x"] * 3000 + ["y" * 1_000_000] * 40 + ["z"] * 3000
    batch = pa.record_batch({"text": text, "more": text})
    order = pa.array(np.arange(len(text))[::-1].copy()) if ordered else None
    sizes = [chunk.nbytes for chunk in Encoder(batch.schema).encode(batch, order)]
    assert max(sizes) < 8e6
    assert len(sizes) < 50


def test_the_run_tables_own_columns_are_no_features(examples_of) -> None:
    batch = pa.record_batch({"x": [1], "span": ["a"], "part": ["train"], "shard": [0], "row_hash": [5]})
    assert examples_of(batch) == [{"x": [1]}]


def test_null_inside_an_array_is_refused_by_name(records_of) -> None:
    batch = pa.record_batch({"tags": pa.array([["a", None]])})
    with refuses(DataError, where="column tags", found="NULL"):
        records_of(batch)


@pytest.mark.parametrize(
    "type_",
    [pa.struct([("a", pa.int64())]), pa.month_day_nano_interval(), pa.duration("us"), pa.list_(pa.list_(pa.int8()))],
)
def test_a_type_without_mapping_is_refused_by_name(type_: pa.DataType) -> None:
    with pytest.raises(DataError, match="column odd: Arrow type "):
        Encoder(pa.schema([("odd", type_)]))


def test_the_exporter_imports_neither_tensorflow_nor_pandas() -> None:
    """Also not while encoding: Arrow's own conversions would import pandas, where it is installed."""
    code = (
        "import sys, pyarrow as pa\n"
        "import trainer.export.reading.reader, trainer.export.job, trainer.task\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        assert name not in ('pandas', 'tensorflow', 'tf_keras'), name\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "assert not {'pandas', 'tensorflow', 'tf_keras'} & set(sys.modules)\n"
        "from trainer.export.encoding.encode import Encoder\n"
        "from trainer.contract.documents import ShardLayout\n"
        "b = pa.record_batch({'a': [1, 2], 'b': ['x', None], 'c': [[1.5], []], 'd': [1.0, None], 'e': [True, None]})\n"
        "list(Encoder(b.schema).encode(b))\n"
        "list(Encoder(b.schema, ShardLayout(numeric=('a', 'd'))).encode(b))\n"
        "list(Encoder(b.drop_columns(['c']).schema, ShardLayout(rows_per_record=2)).encode(b.drop_columns(['c'])))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
