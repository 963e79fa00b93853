"""Serialised examples → columns, whatever the export's layout.

Comes in: a batch of `tf.train.Example`s. Goes out: the columns asked for, one row per example of the table: numeric
features that are packed into one list are cut apart again, and records that hold several rows are unrolled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from trainer.contract.documents import ShardLayout
from trainer.errors import RequestError
from trainer.input.images import ImageFeature
from trainer.input.source import ColumnSpec, ParseSpec, Tensor, Tensors

NUMERIC = "_numeric"
"""Packed numeric features: float32 in the layout's order, NaN for missing. Asked for by this name: the whole matrix."""

ROWS = "_rows"
"""How many of a record's rows are real, where a record holds several."""

MISSING: dict[tf.DType, Any] = {tf.float32: np.nan, tf.int64: np.iinfo(np.int64).min, tf.string: ""}
"""What stands for NULL, by dtype."""


class RecordParser:
    """Parses batches of records of one layout.

    Args:
        spec: Columns wanted.
        layout: Of the files.

    Raises:
        RequestError: A REPEATED column of records that hold several rows.
    """

    def __init__(self, spec: ParseSpec, layout: ShardLayout) -> None:
        self._spec, self._per_record = dict(spec), layout.rows_per_record
        self._packed = {name: index for index, name in enumerate(layout.numeric)}
        self.stored = self._stored()

    def __call__(self, records: Tensor) -> Tensors:
        """Parse. [K] → [K · rows per record, less the last one's padding] each."""
        parsed = tf.io.parse_example(records, self.stored)
        if self._per_record > 1:
            parsed = self._unrolled(parsed)
        return self._columns(parsed)

    def _stored(self) -> dict[str, Any]:
        """Return the features as they stand in a record."""
        rows = [] if self._per_record == 1 else [self._per_record]
        stored: dict[str, Any] = {}
        for name, feature in self._spec.items():
            if name in self._packed or name == NUMERIC:
                stored[NUMERIC] = tf.io.FixedLenFeature([int(np.prod(rows, dtype=int)) * len(self._packed)], tf.float32)
            elif not rows:
                image = isinstance(feature, ImageFeature)
                stored[name] = tf.io.FixedLenFeature([], tf.string, default_value="") if image else feature
            else:
                stored[name] = tf.io.FixedLenFeature(rows, _scalar_dtype(name, feature))
        if rows:
            stored[ROWS] = tf.io.FixedLenFeature([], tf.int64)
        return stored

    def _unrolled(self, parsed: Tensors) -> Tensors:
        """Return a row per row. [K, n · width] → [rows, width]."""
        counts = parsed.pop(ROWS)
        whole = tf.debugging.Assert(
            tf.reduce_all(counts[:-1] == self._per_record) & tf.reduce_all(counts <= self._per_record),
            ["only the last record of a file may have fewer rows; they have", counts],
        )
        with tf.control_dependencies([whole] if whole is not None else []):
            rows = tf.reduce_sum(counts)
        width = {NUMERIC: [len(self._packed)]}
        # The padding is at the end, and a slice that starts at the beginning copies nothing.
        return {name: tf.reshape(values, [-1, *width.get(name, [])])[:rows] for name, values in parsed.items()}

    def _columns(self, parsed: Tensors) -> Tensors:
        """Return what was asked for. Numbers that were packed get back their own dtype."""
        apart: list[Tensor] = []
        if any(name in self._packed for name in self._spec):
            apart = tf.unstack(parsed[NUMERIC], num=len(self._packed), axis=1)
        columns = {}
        for name, feature in self._spec.items():
            if name in self._packed:
                columns[name] = _typed(apart[self._packed[name]], feature)
            elif isinstance(feature, ImageFeature):
                columns[name] = feature.decode(parsed[name])
            elif self._per_record > 1 and name != NUMERIC:
                columns[name] = _with_default(parsed[name], feature)
            else:
                columns[name] = parsed[name]
        return columns


def _scalar_dtype(name: str, feature: ColumnSpec) -> tf.DType:
    if isinstance(feature, ImageFeature):
        return tf.string
    if not isinstance(feature, tf.io.FixedLenFeature) or list(feature.shape):
        raise RequestError(
            f"column {name!r}",
            "is REPEATED, in records that hold several rows",
            "scalars",
            "Set data.layout.rows_per_record to 1",
        )
    return feature.dtype


def _typed(values: Tensor, feature: tf.io.FixedLenFeature) -> Tensor:
    """Return a packed column as it would be alone. Whole numbers above 2^24 were rounded when they were packed."""
    if feature.dtype == tf.float32:
        return _with_default(values, feature)
    missing = tf.math.is_nan(values)
    whole = tf.cast(tf.where(missing, 0.0, values), feature.dtype)
    return tf.where(missing, tf.constant(_default(feature), feature.dtype), whole)


def _with_default(values: Tensor, feature: tf.io.FixedLenFeature) -> Tensor:
    """Return the feature's own default for what is missing."""
    default, stored = _default(feature), MISSING[feature.dtype]
    if default == stored or (feature.dtype == tf.float32 and np.isnan(default)):
        return values
    missing = tf.math.is_nan(values) if feature.dtype == tf.float32 else tf.equal(values, stored)
    return tf.where(missing, tf.constant(default, feature.dtype), values)


def _default(feature: tf.io.FixedLenFeature) -> float | str:
    default: float | str = MISSING[feature.dtype] if feature.default_value is None else feature.default_value
    return default
