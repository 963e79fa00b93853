"""Every BigQuery type in every mode, written and read back through `tf.data` and `tf.io.parse_example`."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from tests.trainer.export.encoding.shard_files import write_shard
from trainer.bigquery.structs import flatten
from trainer.contract.column_types import COLUMN_TYPES
from trainer.export.encoding.encode import Encoder
from trainer.export.encoding.types import FeatureKind, kind_of

UTC = datetime.UTC
# Type: Arrow type that the Storage Read API sends, values, what the Example holds. The extremes of each.
# https://cloud.google.com/bigquery/docs/reference/storage#arrow_schema_details
MATRIX: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "INT64": (pa.int64(), [-(2**63), 2**63 - 1, 0, -1], [-(2**63), 2**63 - 1, 0, -1]),
    "FLOAT64": (
        pa.float64(),
        [float("nan"), float("inf"), float("-inf"), 0.1, 1.7976931348623157e308, 5e-324, -0.0],
        [float("nan"), float("inf"), float("-inf"), np.float32(0.1), float("inf"), 0.0, -0.0],
    ),
    "NUMERIC": (
        pa.decimal128(38, 9),
        [Decimal("99999999999999999999999999999.999999999"), Decimal("-0.000000001"), Decimal("1.875")],
        [np.float32(1e29), np.float32(-1e-9), 1.875],
    ),
    "BIGNUMERIC": (
        pa.decimal256(76, 38),
        [
            Decimal("57896044618658097711785492504343953926.5"),
            Decimal("1e-38"),
        ],
        [np.float32(5.7896044618658097e37), np.float32(1e-38)],
    ),
    "BOOL": (pa.bool_(), [True, False], [1, 0]),
    "STRING": (pa.string(), ["", "größe 数", "\0"], [b"", "größe 数".encode(), b"\0"]),
    "BYTES": (pa.binary(), [b"", b"\xff\x00", bytes(1 << 20)], [b"", b"\xff\x00", bytes(1 << 20)]),
    "DATE": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], [-719162, 2932896]),
    "DATETIME": (
        pa.timestamp("us"),
        [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)],
        [-62135596800000000, 253402300799999999],
    ),
    "TIME": (pa.time64("us"), [datetime.time(0), datetime.time(23, 59, 59, 999999)], [0, 86399999999]),
    "TIMESTAMP": (
        pa.timestamp("us", tz="UTC"),
        [datetime.datetime(1, 1, 1, tzinfo=UTC), datetime.datetime(2013, 11, 19, 5, 30, tzinfo=UTC)],
        [-62135596800000000, 1384839000000000],
    ),
    "JSON": (pa.string(), ['{"a":[1,null]}', "null"], [b'{"a":[1,null]}', b"null"]),
    "GEOGRAPHY": (pa.string(), ["POINT(-73.78 40.64)"], [b"POINT(-73.78 40.64)"]),
}
DTYPES = {FeatureKind.INT64: tf.int64, FeatureKind.FLOAT: tf.float32, FeatureKind.BYTES: tf.string}


def read_back(batch: pa.RecordBatch, spec: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write a shard and parse all of it at once."""
    with path.open("wb") as file:
        write_shard(Encoder(batch.schema).encode(batch), file, "GZIP")
    records = tf.data.TFRecordDataset(str(path), compression_type="GZIP").batch(batch.num_rows + 1)
    return tf.io.parse_example(next(iter(records)), spec)


def same(found: Any, expected: list[Any]) -> None:
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected, np.asarray(found).dtype))


def test_the_matrix_is_whole() -> None:
    assert set(MATRIX) == {row.sql for row in COLUMN_TYPES.values()}


@pytest.mark.parametrize("type_", MATRIX)
def test_required_values_come_back(type_: str, tmp_path: Path) -> None:
    arrow, values, expected = MATRIX[type_]
    dtype = DTYPES[kind_of(type_)]
    parsed = read_back(
        pa.record_batch({"größe": pa.array(values, arrow)}), {"größe": tf.io.FixedLenFeature([], dtype)}, tmp_path / "s"
    )
    same(parsed["größe"], expected)


@pytest.mark.parametrize("type_", MATRIX)
def test_null_is_an_absent_feature(type_: str, tmp_path: Path) -> None:
    arrow, values, expected = MATRIX[type_]
    dtype = DTYPES[kind_of(type_)]
    batch = pa.record_batch({"x": pa.array([None, *values, None], arrow), "n": range(len(values) + 2)})
    parsed = read_back(batch, {"x": tf.io.VarLenFeature(dtype)}, tmp_path / "s")["x"]
    assert parsed.indices[:, 0].numpy().tolist() == list(range(1, len(values) + 1))
    same(parsed.values, expected)


@pytest.mark.parametrize("type_", MATRIX)
def test_arrays_come_back_with_empty_ones_between(type_: str, tmp_path: Path) -> None:
    arrow, values, expected = MATRIX[type_]
    dtype = DTYPES[kind_of(type_)]
    batch = pa.record_batch({"x": pa.array([[], values, [], values[:1], None], pa.list_(arrow)), "n": range(5)})
    parsed = read_back(batch, {"x": tf.io.RaggedFeature(dtype)}, tmp_path / "s")["x"]
    assert parsed.row_lengths().numpy().tolist() == [0, len(values), 0, 1, 0]
    same(parsed.values, [*expected, expected[0]])


def test_structs_come_back_as_columns_with_dots(tmp_path: Path) -> None:
    rows = [
        {
            "at": {"city": "Köln", "geo": {"lat": 50.9}},
            "stops": [{"minute": 1, "gate": "A"}, {"minute": 7, "gate": ""}],
        },
        {"at": None, "stops": []},
        {"at": {"city": None, "geo": {"lat": -1.5}}, "stops": [{"minute": -(2**63), "gate": "B"}]},
    ]
    stop = pa.struct([("minute", pa.int64()), ("gate", pa.string())])
    at = pa.struct([("city", pa.string()), ("geo", pa.struct([("lat", pa.float64())]))])
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema([("at", at), ("stops", pa.list_(stop))]))
    spec = {
        "at.city": tf.io.FixedLenFeature([], tf.string, "-"),
        "at.geo.lat": tf.io.FixedLenFeature([], tf.float32, float("nan")),
        "stops.minute": tf.io.RaggedFeature(tf.int64),
        "stops.gate": tf.io.RaggedFeature(tf.string),
    }
    parsed = read_back(flatten(batch), spec, tmp_path / "s")
    same(parsed["at.city"], ["Köln".encode(), b"-", b"-"])
    same(parsed["at.geo.lat"], [np.float32(50.9), float("nan"), -1.5])
    assert parsed["stops.minute"].to_list() == [[1, 7], [], [-(2**63)]]
    assert parsed["stops.gate"].to_list() == [[b"A", b""], [], [b"B"]]


@pytest.mark.parametrize(
    "value", [0.1, -(2.0**0.5), 1e300, 5e-324, float("inf")], ids=["tenth", "root", "huge", "tiny", "infinite"]
)
def test_a_double_as_text_is_exact(value: float, tmp_path: Path) -> None:
    """The way out for what a float32 rounds: BigQuery writes the shortest text that reads as the same float64."""
    batch = pa.record_batch({"x": [repr(value)]})
    parsed = read_back(batch, {"x": tf.io.FixedLenFeature([], tf.string)}, tmp_path / "s")
    assert tf.strings.to_number(parsed["x"], tf.float64).numpy().tolist() == [value]
