"""Columns as Arrow has them become what files would have given: every type, NULL, and slices of any batch."""

from __future__ import annotations

import dataclasses
import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from trainer.contract.documents import Column
from trainer.features.values import parse_feature
from trainer.input.arrow import SLICE_ROWS, ArrowColumns
from trainer.input.source import ParseSpec

LEAST = np.iinfo(np.int64).min
INTEGER = tf.io.FixedLenFeature([], tf.int64, default_value=LEAST)
UTC = datetime.UTC
TYPES: dict[str, tuple[Any, pa.Array, list[Any]]] = {
    "INTEGER": (INTEGER, pa.array([5, None, -(2**63) + 1]), [5, LEAST, -(2**63) + 1]),
    "FLOAT": (parse_feature("FLOAT"), pa.array([0.1, None, 1e300]), [np.float32(0.1), np.nan, np.inf]),
    "NUMERIC": (
        parse_feature("NUMERIC"),
        pa.array([Decimal("1.5"), None, Decimal(-2)], pa.decimal128(38, 9)),
        [1.5, np.nan, -2],
    ),
    "BIGNUMERIC": (
        parse_feature("BIGNUMERIC"),
        pa.array([Decimal("0.25"), None], pa.decimal256(76, 38)),
        [0.25, np.nan],
    ),
    "BOOLEAN": (INTEGER, pa.array([True, None, False]), [1, LEAST, 0]),
    "STRING": (parse_feature("STRING"), pa.array(["ü", None, "", "ü"]), ["ü".encode(), b"", b"", "ü".encode()]),
    "BYTES": (parse_feature("BYTES"), pa.array([b"\x00\xff", None]), [b"\x00\xff", b""]),
    "DATE": (INTEGER, pa.array([datetime.date(1970, 1, 3), None, datetime.date(1969, 12, 31)]), [2, LEAST, -1]),
    "DATETIME": (INTEGER, pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1), None], pa.timestamp("us")), [10**6, LEAST]),
    "TIME": (INTEGER, pa.array([datetime.time(0, 1), None], pa.time64("us")), [60 * 10**6, LEAST]),
    "TIMESTAMP": (
        INTEGER,
        pa.array([datetime.datetime(1970, 1, 2, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        [86400 * 10**6, LEAST],
    ),
    "JSON": (parse_feature("JSON"), pa.array(['{"a":1}', None]), [b'{"a":1}', b""]),
    "GEOGRAPHY": (parse_feature("GEOGRAPHY"), pa.array(["POINT(1 2)", None]), [b"POINT(1 2)", b""]),
}


def read(exported, spec: ParseSpec, types: dict[str, str], batch: pa.RecordBatch) -> dict[str, np.ndarray]:
    """Read a batch as a training would, slice by slice."""
    schema = tuple(Column(name=name, type=type_, mode="NULLABLE") for name, type_ in types.items())
    columns = ArrowColumns(spec, dataclasses.replace(exported.manifest(), columns=schema))
    columns.require_types(batch.schema, "table")
    slices = tf.data.Dataset.from_generator(lambda: columns.slices(batch), output_signature=columns.signature)
    joined = [{name: values.numpy() for name, values in part.items()} for part in slices.map(columns.joined)]
    return {name: np.concatenate([part[name] for part in joined]) for name in spec}


@pytest.mark.parametrize("type_", TYPES)
def test_a_type_becomes_what_files_hold(exported, type_: str) -> None:
    feature, values, expected = TYPES[type_]
    found = read(exported, {"x": feature}, {"x": type_}, pa.record_batch({"x": values}))["x"]
    assert found.dtype == (object if feature.dtype == tf.string else feature.dtype.as_numpy_dtype)
    np.testing.assert_array_equal(found, np.array(expected, found.dtype))


@pytest.mark.parametrize("type_", TYPES)
def test_a_column_may_be_null_throughout(exported, type_: str) -> None:
    feature, values, expected = TYPES[type_]
    batch = pa.record_batch({"x": pa.nulls(3, values.type)})
    found = read(exported, {"x": feature}, {"x": type_}, batch)["x"]
    np.testing.assert_array_equal(found, np.array([expected[1]] * 3, found.dtype))


def test_texts_of_any_number_come_back_at_their_rows(exported) -> None:
    """As many distinct ones as rows, and a few beside them, over several slices of a batch that is one itself."""
    rows = 2 * SLICE_ROWS + 7
    ids, few = [f"parcel-{number}" for number in range(rows)], ["a", "b", None] * rows
    batch = pa.record_batch({"id": ids, "few": few[:rows]}).slice(5)
    text = parse_feature("STRING")
    found = read(exported, {"id": text, "few": text}, {"id": "STRING", "few": "STRING"}, batch)
    assert found["id"].tolist() == [value.encode() for value in ids[5:]]
    assert found["few"].tolist() == [(value or "").encode() for value in few[5:rows]]
