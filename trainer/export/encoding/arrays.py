"""Arrow arrays as NumPy arrays, through their buffers: Arrow's own conversions import pandas, which takes 0.5 s.

Comes in: arrays as BigQuery sends them, slices too. Goes out: int64, float32 or bytes per row, and which rows are null.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trainer.export.encoding.types import FeatureKind
from trainer.export.encoding.wire import Blobs, Bools, Ints

Floats = npt.NDArray[np.float32]

_EXACT_WHOLE = 1 << 53  # float64 holds all whole numbers up to here,
_EXACT_POWER = 22  # and all powers of ten up to this one: their quotient is rounded once


def is_array(type_: pa.DataType) -> bool:
    """Say whether a column of this type is REPEATED."""
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def feature_kind(type_: pa.DataType) -> FeatureKind | None:
    """Return the list that scalars of an Arrow type go to; None: it has no mapping."""
    types = pa.types
    if types.is_integer(type_) or types.is_boolean(type_):
        return FeatureKind.INT64
    if types.is_date(type_) or types.is_time(type_) or types.is_timestamp(type_):
        return FeatureKind.INT64
    if types.is_floating(type_) or types.is_decimal(type_):
        return FeatureKind.FLOAT
    if types.is_string(type_) or types.is_binary(type_) or types.is_large_string(type_) or types.is_large_binary(type_):
        return FeatureKind.BYTES
    return None


def validity(array: pa.Array) -> Bools | None:
    """Return which rows are not null; None where all are. [n]."""
    return _bits(array, 0).view(np.bool_) if array.null_count else None


def integers(array: pa.Array) -> Ints:
    """Return integers, booleans, dates (days) and times (microseconds) as int64. Null rows hold anything. [n]."""
    type_ = array.type
    if pa.types.is_boolean(type_):
        return _bits(array, 1).astype(np.int64)
    if pa.types.is_date64(type_):
        array = array.cast(pa.date32())
    elif pa.types.is_time(type_) and type_.unit != "us":
        array = array.cast(pa.time64("us"))
    elif pa.types.is_timestamp(type_) and type_.unit != "us":
        array = array.cast(pa.timestamp("us"))
    signed = "u" if pa.types.is_unsigned_integer(type_) else "i"
    return _values(array, np.dtype(f"<{signed}{array.type.bit_width // 8}")).astype(np.int64, copy=False)


def floats(array: pa.Array) -> Floats:
    """Return floats and decimals as float32, rounded to nearest, beyond its range ±inf. Null rows: anything. [n]."""
    if pa.types.is_decimal(array.type):
        return _to_float32(_decimals(array))
    values = _values(array, np.dtype(f"<f{array.type.bit_width // 8}"))
    if values.dtype == np.float32:
        return values  # type: ignore[return-value]  # just compared
    return _to_float32(values)


def as_binary(array: pa.Array) -> Blobs:
    """See a string or bytes array as bytes, without a copy."""
    if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        array = array.cast(pa.binary())
    view = pa.Array.from_buffers(pa.binary(), len(array), array.buffers(), array.null_count, array.offset)
    valid = validity(array)
    lengths = np.diff(offsets(array))
    return Blobs(array=view, lengths=lengths if valid is None else lengths * valid)


def offsets(array: pa.Array) -> Ints:
    """Return the start of each row in a string, bytes or list array, and the end of the last one. [n + 1]."""
    type_ = array.type
    large = pa.types.is_large_list(type_) or pa.types.is_large_string(type_) or pa.types.is_large_binary(type_)
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(1, np.int64)
    values = np.frombuffer(buffer, np.int64 if large else np.int32, count=array.offset + len(array) + 1)
    return values[array.offset :].astype(np.int64)


def elements(array: pa.Array) -> tuple[pa.Array, Ints]:
    """Return the elements of all of an array column's rows, and where each row starts in them. [m], [n + 1]."""
    starts = offsets(array)
    return array.values.slice(starts[0], starts[-1] - starts[0]), starts - starts[0]


def variable_bytes(array: pa.Array) -> Ints | None:
    """Return about how many bytes each row takes beyond a fixed number; None: no row takes more. [n]."""
    if is_array(array.type):
        child, starts = elements(array)
        if feature_kind(child.type) is FeatureKind.BYTES and len(child):
            return np.diff(offsets(child)[starts] + 2 * starts)
        return np.diff(4 * starts)
    return np.diff(offsets(array)) if feature_kind(array.type) is FeatureKind.BYTES else None


def _decimals(array: pa.Array) -> npt.NDArray[np.float64]:
    """Return decimals as float64. Arrow's own cast gives 1.8750000000000002 for 1.875; one division does not. [n]."""
    scale = array.type.scale
    if not pa.types.is_decimal128(array.type) or scale > _EXACT_POWER:
        return _values(array.cast(pa.float64()), np.dtype("<f8")).astype(np.float64, copy=False)
    halves = _values(array, np.dtype("<V16")).view("<i8").reshape(-1, 2)
    low, high = halves[:, 0], halves[:, 1]
    exact = (high == low >> 63) & (np.abs(low) <= _EXACT_WHOLE)
    values: npt.NDArray[np.float64] = low / np.float64(10**scale)
    if not exact.all():
        values[~exact] = _values(array.cast(pa.float64()), np.dtype("<f8"))[~exact]
    return values


def _to_float32(values: npt.NDArray[np.generic]) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32)


def _bits(array: pa.Array, buffer: int) -> npt.NDArray[np.uint8]:
    """Unpack a bitmap of the array. → 0 or 1 [n]."""
    if not len(array):
        return np.empty(0, np.uint8)
    first, skip = divmod(array.offset, 8)
    bits = np.frombuffer(array.buffers()[buffer], np.uint8)[first:]
    return np.unpackbits(bits, count=skip + len(array), bitorder="little")[skip:]


def _values(array: pa.Array, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, count=array.offset + len(array))[array.offset :]
