"""Protocol-buffer wire format over whole arrays: varints, length prefixes, ragged byte cells.

Comes in: NumPy arrays of lengths or integers. Goes out: `Cells`, a byte string per row in one buffer.
Wire format of an Example (https://protobuf.dev/programming-guides/encoding):

    Example  = 0A len Features          Features = entry*           entry = 0A len (0A len key  12 len Feature)
    Feature  = tag len List             tag = 0A bytes | 12 float | 1A int64
    List     = 0A len data (bytes: once per value; float, int64: packed; no values: nothing)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trainer.export.types import FeatureKind

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BytesLike = Any  # bytes, an Arrow buffer or a NumPy array

MAX_VARINT_BYTES = 10
_TAGS = {FeatureKind.BYTES: b"\x0a", FeatureKind.FLOAT: b"\x12", FeatureKind.INT64: b"\x1a"}
_VARINT_LIMITS = [np.uint64(1) << np.uint64(7 * k) for k in range(1, MAX_VARINT_BYTES)]
# 0x80 in each of the first length - 1 bytes: the continuation bits of a varint's first eight bytes.
_CONTINUATION = np.array([sum(0x80 << (8 * k) for k in range(min(max(n - 1, 0), 8))) for n in range(11)], np.uint64)
_TABLE_LIMIT = 8192


@dataclass(frozen=True, kw_only=True)
class Cells:
    """One byte string per row.

    Attributes:
        array: Arrow binary array; a null is an empty string.
        lengths: Bytes per row, 0 for a null. [n_rows]
    """

    array: pa.Array
    lengths: Ints


def varint(value: int) -> bytes:
    """Encode one non-negative integer."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint_lengths(values: npt.NDArray[np.uint64]) -> Ints:
    """Give the bytes that each value takes as a varint, 1 to 10. [n] → [n]."""
    lengths = np.ones(len(values), np.int64)
    top = values.max(initial=np.uint64(0))
    for limit in _VARINT_LIMITS:
        if limit > top:
            break
        lengths += values >= limit
    return lengths


def varint_words(
    values: npt.NDArray[np.uint64], lengths: Ints
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]:
    """Give the varints' first eight bytes as little-endian words, and their last two.

    Seven-bit groups are spread to bytes by three shifts over the whole array, then the continuation bits are set.
    """
    x = (values & np.uint64(0x0FFFFFFF)) | ((values & np.uint64(0x00FFFFFFF0000000)) << np.uint64(4))
    x = (x & np.uint64(0x00003FFF00003FFF)) | ((x & np.uint64(0x0FFFC0000FFFC000)) << np.uint64(2))
    x = (x & np.uint64(0x007F007F007F007F)) | ((x & np.uint64(0x3F803F803F803F80)) << np.uint64(1))
    x |= _CONTINUATION[lengths]
    tail = (values >> np.uint64(56)) & np.uint64(0x7F)
    tail |= np.where(lengths == MAX_VARINT_BYTES, np.uint64(0x80), np.uint64(0))
    tail |= (values >> np.uint64(63)) << np.uint64(8)
    return x, tail.astype("<u2")


def varint_cells(
    values: npt.NDArray[np.uint64], prefixes: list[bytes] | None = None, valid: Bools | None = None
) -> Cells:
    """Encode every value as a prefix and its varint.

    Args:
        values: [n]
        prefixes: The prefix for a varint of k + 1 bytes at index k, all equally long; default none.
        valid: Rows that are not null. [n]
    """
    lengths = varint_lengths(values)
    words, tails = varint_words(values, lengths)
    width = len(prefixes[0]) if prefixes else 0
    fields: list[tuple[str, Any]] = [("prefix", f"V{width}")] if width else []
    cells = np.empty(len(values), np.dtype([*fields, ("word", "<u8"), ("tail", "<u2")]))
    if prefixes and width:
        cells["prefix"] = np.frombuffer(b"".join(prefixes), f"V{width}")[lengths - 1]
    cells["word"], cells["tail"] = words, tails
    return compact(cells.view(f"V{width + MAX_VARINT_BYTES}"), lengths + width, valid)


def compact(cells: npt.NDArray[np.void], lengths: Ints, valid: Bools | None = None) -> Cells:
    """Lay the first `lengths` bytes of each fixed-width cell end to end.

    One scatter through a view with a stride of one byte: cells are written in ascending order, so that what a cell
    has too much is overwritten by the next one.
    """
    width = cells.dtype.itemsize
    if valid is not None:
        lengths = np.where(valid, lengths, 0)
    offsets = offsets_of(lengths)
    total = int(offsets[-1])
    buffer = np.empty(total + width, np.uint8)
    windows = np.ndarray((total + 1,), cells.dtype, buffer, strides=(1,))
    windows[offsets[:-1]] = cells
    return Cells(array=binary_array(offsets, buffer), lengths=lengths)


def offsets_of(lengths: Ints) -> Ints:
    """Give the start of each cell, and the end of the last one. [n] → [n + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def binary_array(offsets: Ints, data: BytesLike, valid: Bools | None = None) -> pa.Array:
    """Make an Arrow binary array over existing bytes, without a copy of them."""
    buffers = [validity_buffer(valid), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def validity_buffer(valid: Bools | None) -> pa.Buffer | None:
    """Pack a mask of rows as Arrow wants it."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def literals(values: list[bytes]) -> Cells:
    """Make cells of given byte strings."""
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    return Cells(array=binary_array(offsets_of(lengths), b"".join(values)), lengths=lengths)


def take(table: Cells, indices: Ints, valid: Bools | None = None) -> Cells:
    """Give the table's cell for each index; empty where not valid. Arrow's take is the fastest on ragged cells."""
    arrow = pa.Array.from_buffers(
        pa.int64(), len(indices), [validity_buffer(valid), pa.py_buffer(np.ascontiguousarray(indices))]
    )
    lengths = table.lengths[indices]
    return Cells(array=table.array.take(arrow), lengths=lengths if valid is None else lengths * valid)


def entry_prefix(key: bytes, kind: FeatureKind, payload_bytes: int, *, single_bytes: bool = False) -> bytes:
    """Give all that stands before the payload of one feature's map entry.

    Args:
        key: The feature's name, UTF-8.
        kind: Which list.
        payload_bytes: Packed numbers, or the bytes of a bytes list with their own prefixes.
        single_bytes: The payload is one bytes value without its own prefix.
    """
    inner = b""
    if single_bytes or (kind is not FeatureKind.BYTES and payload_bytes):
        inner = b"\x0a" + varint(payload_bytes)
    list_bytes = len(inner) + payload_bytes
    list_head = _TAGS[kind] + varint(list_bytes) + inner
    feature_head = b"\x12" + varint(len(list_head) - len(inner) + list_bytes) + list_head
    key_field = b"\x0a" + varint(len(key)) + key
    entry_bytes = len(key_field) + len(feature_head) + payload_bytes
    return b"\x0a" + varint(entry_bytes) + key_field + feature_head


class PrefixTable:
    """Prefixes by payload length, made once and then taken by index."""

    def __init__(self, prefix: Callable[[int], bytes]) -> None:
        self._prefix = prefix
        self._table = literals([])

    def take(self, payload_bytes: Ints, valid: Bools | None = None) -> Cells:
        """Give the prefix for each payload length; empty where not valid. [n] → n cells."""
        longest = int(payload_bytes.max(initial=0))
        if longest >= _TABLE_LIMIT:
            distinct, indices = np.unique(payload_bytes, return_inverse=True)
            return take(literals([self._prefix(int(length)) for length in distinct]), indices.astype(np.int64), valid)
        if longest >= len(self._table.lengths):
            size = max(64, 1 << longest.bit_length())
            self._table = literals([self._prefix(length) for length in range(size)])
        return take(self._table, payload_bytes, valid)
