"""One encoder per column: an Arrow array comes in, the bytes of its map entries go out, a cell per row.

A column gives one or two pieces per row (prefix and payload); `records.py` puts the pieces of all columns together.
Columns of plain float32 without NULL give a `FloatCells` instead, so that neighbours can be written as one block. NULL
is no bytes at all: the feature is absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from trainer.errors import DataError
from trainer.export.encoding.arrays import as_binary, elements, feature_kind, floats, integers, is_array, validity
from trainer.export.encoding.types import FeatureKind
from trainer.export.encoding.wire import (
    MAX_VARINT_BYTES,
    Blobs,
    Bools,
    Cells,
    Ints,
    PrefixTable,
    Slots,
    Table,
    binary_array,
    compact,
    entry_prefix,
    offsets_of,
    varint,
    varint_cells,
    varint_lengths,
)

EMPTY = pa.scalar(b"", pa.binary())
_LOOKUP_VALUES = 16384
_LOOKUP_REBUILDS = 8


@dataclass(frozen=True, kw_only=True)
class FloatCells:
    """A column of float32 without NULL: the same prefix for every row, then four bytes.

    Attributes:
        prefix: Of every row.
        values: [n]
    """

    prefix: bytes
    values: npt.NDArray[np.float32]


Piece = Cells | Blobs | FloatCells


class ColumnEncoder(Protocol):
    """Encodes batches of one column; keeps tables from batch to batch."""

    def encode(self, array: pa.Array) -> list[Piece]:
        """Return the pieces, in the order in which they stand in a row."""


def column_encoder(name: str, type_: pa.DataType) -> ColumnEncoder:
    """Choose the encoder for a column.

    Raises:
        DataError: The Arrow type has no mapping.
    """
    key, array = name.encode(), is_array(type_)
    kind = feature_kind(type_.value_type if array else type_)
    if kind is None:
        raise DataError(
            f"column {name}",
            f"Arrow type {type_} has no mapping",
            "a scalar or an array of scalars",
            "Cast it in the query",
        )
    if array:
        return ListColumn(key, kind)
    match kind:
        case FeatureKind.INT64:
            return IntColumn(key)
        case FeatureKind.FLOAT:
            return FloatColumn(key)
        case FeatureKind.BYTES:
            return BytesColumn(key)


class FloatColumn:
    """Scalar floats and decimals."""

    def __init__(self, key: bytes) -> None:
        self._prefix = entry_prefix(key, FeatureKind.FLOAT, 4)

    def encode(self, array: pa.Array) -> list[Piece]:
        """Return the block of a column without NULL, else cells under the column's own validity."""
        values, valid = floats(array), validity(array)
        if valid is None:
            return [FloatCells(prefix=self._prefix, values=values)]
        slots = float_block([FloatCells(prefix=self._prefix, values=values)])
        width = slots.dtype.itemsize
        return [Cells(slots=slots, lengths=valid * np.int64(width), least=width, valid=valid)]


class IntColumn:
    """Scalar integers, booleans, dates and times.

    Values that lie close together are taken from a table of whole cells; others are encoded one array at a time.
    """

    def __init__(self, key: bytes) -> None:
        prefixes = [entry_prefix(key, FeatureKind.INT64, length) for length in range(1, MAX_VARINT_BYTES + 1)]
        self._equal_prefixes = len(set(map(len, prefixes))) == 1
        self._prefixes = Table(prefixes, room=MAX_VARINT_BYTES)
        self._table, self._base, self._rebuilds = Table([]), 0, 0

    def encode(self, array: pa.Array) -> list[Piece]:
        """Return one piece; two where a longer varint also makes a longer prefix."""
        values, valid = integers(array), validity(array)
        if valid is not None:
            values = np.where(valid, values, values[np.argmax(valid)] if valid.any() else 0)
        if self._cover(values):
            return [self._table.take(values - self._base, valid)]
        return self._encode(values, valid)

    def _encode(self, values: Ints, valid: Bools | None) -> list[Piece]:
        unsigned = values.view(np.uint64)
        if self._equal_prefixes:
            return [varint_cells(unsigned, self._prefixes, valid)]
        lengths = varint_lengths(unsigned).astype(np.int64)
        return [self._prefixes.take(lengths - 1, valid), varint_cells(unsigned, valid=valid)]

    def _cover(self, values: Ints) -> bool:
        """Make the table hold these values, if that is worth it."""
        if not self._equal_prefixes or not len(values):
            return False
        low, high = int(values.min()), int(values.max())
        if self._base <= low and high < self._base + len(self._table):
            return True
        if len(self._table):
            low, high = min(low, self._base), max(high, self._base + len(self._table) - 1)
        span = high - low + 1
        if span > min(_LOOKUP_VALUES, 4 * len(values)) or self._rebuilds >= _LOOKUP_REBUILDS:
            return False
        size = min(1 << (span - 1).bit_length(), 2**63 - low)
        values = np.arange(low, low + size, dtype=np.int64)
        self._table = Table.of_cells(varint_cells(values.view(np.uint64), self._prefixes))
        self._base = low
        self._rebuilds += 1
        return True


class BytesColumn:
    """Scalar strings and bytes: a prefix by length, then Arrow's own bytes without a copy."""

    def __init__(self, key: bytes) -> None:
        self._prefixes = PrefixTable(partial(entry_prefix, key, FeatureKind.BYTES, single_bytes=True))

    def encode(self, array: pa.Array) -> list[Piece]:
        """Return two pieces."""
        payload, valid = as_binary(array), validity(array)
        return [self._prefixes.take(payload.lengths, valid), payload]


class ListColumn:
    """Arrays of any scalar: a prefix by payload length, then the packed payload."""

    def __init__(self, key: bytes, kind: FeatureKind) -> None:
        self._key, self._kind = key, kind
        self._prefixes = PrefixTable(partial(entry_prefix, key, kind))
        self._elements = PrefixTable(lambda length: b"\x0a" + varint(length))

    def encode(self, array: pa.Array) -> list[Piece]:
        """Return two pieces.

        Raises:
            DataError: A NULL inside an array (BigQuery does not store one).
        """
        valid = validity(array)
        child, offsets = elements(array)
        if child.null_count:
            raise DataError(
                f"column {self._key.decode()}",
                "NULL inside an array",
                "arrays without NULL, and of STRUCTs without NULL fields",
                "Filter or replace them in the query",
            )
        starts, data = self._payload(child)
        payload_offsets = starts[offsets]
        lengths = np.diff(payload_offsets)
        payload = binary_array(payload_offsets, data, valid)
        return [
            self._prefixes.take(lengths, valid),
            Blobs(array=payload, lengths=lengths if valid is None else lengths * valid),
        ]

    def _payload(self, child: pa.Array) -> tuple[Ints, pa.Buffer | npt.NDArray[np.float32]]:
        """Return the start of each element's bytes (and the end of the last) and the bytes of all elements."""
        if self._kind is FeatureKind.FLOAT:
            return np.arange(len(child) + 1) * 4, floats(child)
        if self._kind is FeatureKind.INT64:
            packed = compact(varint_cells(integers(child).view(np.uint64)))
            return offsets_of(packed.lengths), packed.array.buffers()[2]
        values = as_binary(child)
        heads = compact(self._elements.take(values.lengths))
        joined = pc.binary_join_element_wise(heads.array, values.array, EMPTY)
        return offsets_of(heads.lengths + values.lengths), joined.buffers()[2] or pa.py_buffer(b"")


def float_block(columns: list[FloatCells]) -> Slots:
    """Write neighbouring float columns as one slot per row. → [n_rows]."""
    template = b"".join(column.prefix + bytes(4) for column in columns)
    rows = len(columns[0].values)
    slots = np.full(rows, np.frombuffer(template, f"V{len(template)}")[0], f"V{len(template)}")
    at = 0
    for column in columns:
        at += len(column.prefix)
        np.ndarray((rows,), "<f4", slots, offset=at, strides=(len(template),))[:] = column.values
        at += 4
    return slots
