"""Values of a column as a prediction request would hold them, from how examples store them.

Comes in: parsed columns; what is missing is the least int64, NaN or "". Goes out: float32 with NaN, text with "", or of
times int64 with the least one.
A REPEATED column becomes a matrix as wide as its longest list, whose rows are filled up at the end.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from trainer.contract.column_types import COLUMN_TYPES, NUMBERS

MISSING_NUMBER = -1e38
"""A missing number in a request, because JSON has no NaN. This and anything below is missing."""

MISSING_TIME = -(10**18)
"""A missing time in a request: this and anything below, long before BigQuery's years. A double holds it exactly."""
_INT64_MISSING = np.iinfo(np.int64).min
_INTEGERS = tuple(name for name, row in COLUMN_TYPES.items() if row.feature == "int64_list")
_DAY = 86_400_000_000


def parse_feature(type_: str) -> tf.io.FixedLenFeature:
    """Return how to parse a scalar column; what is missing becomes NaN, the least int64, or an empty string."""
    if type_ in _INTEGERS:
        return tf.io.FixedLenFeature([], tf.int64, default_value=_INT64_MISSING)
    if type_ in NUMBERS:
        return tf.io.FixedLenFeature([], tf.float32, default_value=float("nan"))
    return tf.io.FixedLenFeature([], tf.string, default_value="")


def parse_list_feature(type_: str) -> tf.io.RaggedFeature:
    """Return how to parse a REPEATED column; one that is missing has no values."""
    return tf.io.RaggedFeature(parse_feature(type_).dtype)


def as_number(values: tf.Tensor) -> tf.Tensor:
    """Return float32 with NaN for missing. [B] → [B]."""
    if values.dtype != tf.int64:
        return values
    missing = tf.equal(values, _INT64_MISSING)
    return tf.where(missing, tf.constant(float("nan")), tf.cast(values, tf.float32))


def as_text(values: tf.Tensor, type_: str) -> tf.Tensor:
    """Return the text that BigQuery's CAST(x AS STRING) gives, "" for missing. [B] → [B]."""
    if values.dtype == tf.string:
        return values
    text = tf.strings.as_string(values)
    if type_ == "BOOLEAN":
        text = tf.where(tf.equal(values, 1), "true", "false")
    return tf.where(tf.equal(values, _INT64_MISSING), "", text)


def as_time(values: tf.Tensor, type_: str) -> tf.Tensor:
    """Return microseconds since 1970, the least int64 for missing: of a DATE, which stands in days, its midnight."""
    if type_ != "DATE":
        return values
    missing = tf.equal(values, _INT64_MISSING)
    return tf.where(missing, values, tf.where(missing, tf.zeros_like(values), values) * _DAY)


def as_list(values: tf.RaggedTensor, type_: str, *, numeric: bool) -> tf.Tensor:
    """Return lists of numbers or of text, NaN or "" after their ends. [B, (T)] → [B, longest]."""
    flat = as_number(values.flat_values) if numeric else as_text(values.flat_values, type_)
    return values.with_flat_values(flat).to_tensor(default_value=missing_of(flat.dtype))


def missing_of(dtype: tf.DType) -> tf.Tensor:
    """Return what a request holds for a missing value."""
    return tf.constant("") if dtype == tf.string else tf.constant(float("nan"), dtype)


def is_missing(values: tf.Tensor) -> tf.Tensor:
    """Return which values of a request are missing."""
    if values.dtype == tf.string:
        return tf.equal(values, "")
    if values.dtype == tf.int64:
        return values <= MISSING_TIME
    return tf.math.is_nan(values) | (values <= MISSING_NUMBER)
