"""Protocol-buffer wire format over whole arrays: varints, length prefixes, cells.

Comes in: NumPy arrays of lengths or integers. Goes out: a byte string per row, as `Cells` of one width or as `Blobs`.
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

from trainer.export.encoding.types import FeatureKind

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Slots = npt.NDArray[np.void]

BytesLike = Any  # bytes, an Arrow buffer or a NumPy array

MAX_VARINT_BYTES = 10
_TAGS = {FeatureKind.BYTES: b"\x0a", FeatureKind.FLOAT: b"\x12", FeatureKind.INT64: b"\x1a"}
_VARINT_LIMITS = [np.uint64(1) << np.uint64(7 * k) for k in range(1, MAX_VARINT_BYTES)]
# 0x80 in each of the first length - 1 bytes: the continuation bits of a varint's first eight bytes.
_CONTINUATION = np.array([sum(0x80 << (8 * k) for k in range(min(max(n - 1, 0), 8))) for n in range(11)], np.uint64)
_TABLE_LIMIT = 8192


@dataclass(frozen=True, kw_only=True)
class Cells:
    """One short byte string per row, each at the start of a slot; all slots are equally wide.

    Attributes:
        slots: What stands behind a cell in its slot means nothing. [n_rows]
        lengths: Bytes per row, 0 for a null. [n_rows]
        least: No cell but a null's is shorter.
        valid: Rows that are not null; None: all. [n_rows]
    """

    slots: Slots
    lengths: Ints
    least: int
    valid: Bools | None = None

    @property
    def width(self) -> int:
        """Bytes of a slot."""
        return self.slots.dtype.itemsize


@dataclass(frozen=True, kw_only=True)
class Blobs:
    """One byte string per row, of any length.

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


def varint_lengths(values: Words) -> npt.NDArray[np.uint8]:
    """Return the bytes that each value takes as a varint, 1 to 10. [n] → [n]."""
    lengths = np.ones(len(values), np.uint8)
    top = values.max(initial=np.uint64(0))
    for limit in _VARINT_LIMITS:
        if limit > top:
            break
        lengths += (values >= limit).view(np.uint8)
    return lengths


def varint_words(values: Words, lengths: npt.NDArray[np.uint8]) -> tuple[Words, npt.NDArray[np.uint16]]:
    """Return the varints' first eight bytes as little-endian words, and their last two.

    Seven-bit groups are spread to bytes by three shifts over the whole array, then the continuation bits are set.
    """
    x = (values & np.uint64(0x0FFFFFFF)) | ((values & np.uint64(0x00FFFFFFF0000000)) << np.uint64(4))
    x = (x & np.uint64(0x00003FFF00003FFF)) | ((x & np.uint64(0x0FFFC0000FFFC000)) << np.uint64(2))
    x = (x & np.uint64(0x007F007F007F007F)) | ((x & np.uint64(0x3F803F803F803F80)) << np.uint64(1))
    x |= _CONTINUATION.take(lengths)
    top = (values >> np.uint64(56)).astype(np.uint16)  # bits 56 to 62, and 63: the ninth byte and the tenth
    return x, (top & np.uint16(0x7F)) | ((top >> np.uint16(7)) * np.uint16(0x180))


def varint_cells(values: Words, prefixes: Table | None = None, valid: Bools | None = None) -> Cells:
    """Encode every value as a prefix and its varint.

    Args:
        values: [n]
        prefixes: The prefix for a varint of k + 1 bytes at index k, all equally long, in slots with room for ten bytes
            more; default none.
        valid: Rows that are not null. [n]
    """
    lengths = varint_lengths(values)
    words, tails = varint_words(values, lengths)
    at = 0
    if prefixes is None:
        slots = np.empty(len(values), f"V{MAX_VARINT_BYTES}")
    else:
        at = int(prefixes.lengths[0])
        slots = prefixes.slots.take(lengths - np.uint8(1))
    width = slots.dtype.itemsize
    if len(values):
        np.ndarray((len(values),), "<u8", slots, offset=at, strides=(width,))[:] = words
        np.ndarray((len(values),), "<u2", slots, offset=at + 8, strides=(width,))[:] = tails
    sizes = np.add(lengths, at, dtype=np.int64)
    return Cells(slots=slots, lengths=sizes if valid is None else sizes * valid, least=at + 1, valid=valid)


class Table:
    """Byte strings by index, made once and then taken.

    Attributes:
        slots: [n]
        lengths: [n]

    Args:
        values: The byte strings.
        room: Bytes of each slot beyond the longest of them.
    """

    def __init__(self, values: list[bytes], room: int = 0) -> None:
        self.lengths = np.fromiter(map(len, values), np.int64, len(values))
        width = max(int(self.lengths.max(initial=0)), 1) + room
        self.slots: Slots = np.frombuffer(b"".join(value.ljust(width, b"\0") for value in values), f"V{width}")
        self.least = int(self.lengths.min(initial=width))

    @classmethod
    def of_cells(cls, cells: Cells) -> Table:
        """Make a table of cells that are there already."""
        table = cls([])
        table.slots, table.lengths, table.least = cells.slots, cells.lengths, cells.least
        return table

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, indices: Ints, valid: Bools | None = None) -> Cells:
        """Return the cell for each index; empty where not valid. [n] → n cells."""
        lengths = self.lengths.take(indices)
        slots = self.slots.take(indices)
        return Cells(slots=slots, lengths=lengths if valid is None else lengths * valid, least=self.least, valid=valid)


def compact(cells: Cells) -> Blobs:
    """Lay cells end to end."""
    offsets = offsets_of(cells.lengths)
    buffer = np.empty(int(offsets[-1]) + cells.width, np.uint8)
    scatter(buffer, offsets[:-1], cells)
    return Blobs(array=binary_array(offsets, buffer), lengths=cells.lengths)


def scatter(buffer: npt.NDArray[np.uint8], positions: Ints, cells: Cells) -> None:
    """Write each slot whole at its place, in ascending order: what a slot has too much is overwritten by the next one.

    Args:
        buffer: Has at least the slots' width behind the last cell; that room is used.
        positions: Ascending. [n]
        cells: n of them.
    """
    if cells.valid is not None:  # the slot of a null must not cover what is behind it
        positions = np.where(cells.valid, positions, len(buffer) - cells.width)
    if len(positions):
        np.ndarray((len(buffer) - cells.width + 1,), cells.slots.dtype, buffer, strides=(1,))[positions] = cells.slots


def slots_of(blobs: Blobs) -> Cells:
    """Put blobs, which should be short, into slots."""
    lengths, array = blobs.lengths, blobs.array
    width = max(int(lengths.max(initial=0)), 1)
    valid = lengths > 0 if array.null_count else None
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array)]
    first = int(offsets[0])
    data = array.buffers()[2]
    last = int(offsets[-1]) + int(lengths[-1])
    source = np.empty(last - first + width, np.uint8)
    if data is not None:
        source[: last - first] = np.frombuffer(data, np.uint8)[first:last]
    windows = np.ndarray((len(source) - width + 1,), f"V{width}", source, strides=(1,))
    least = int(lengths.min(initial=width) if valid is None else lengths[valid].min(initial=width))
    return Cells(slots=windows[offsets - first], lengths=lengths, least=least, valid=valid)


def offsets_of(lengths: Ints) -> Ints:
    """Return the start of each cell, and the end of the last one. [n] → [n + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def binary_array(offsets: Ints, data: BytesLike, valid: Bools | None = None) -> pa.Array:
    """Make an Arrow binary array over existing bytes, without a copy of them."""
    validity = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def entry_prefix(key: bytes, kind: FeatureKind, payload_bytes: int, *, single_bytes: bool = False) -> bytes:
    """Return all that stands before the payload of one feature's map entry.

    Args:
        key: The feature's name, UTF-8.
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
    """Prefixes by payload length."""

    def __init__(self, prefix: Callable[[int], bytes]) -> None:
        self._prefix = prefix
        self._table = Table([])

    def take(self, payload_bytes: Ints, valid: Bools | None = None) -> Cells:
        """Return the prefix for each payload length; empty where not valid. [n] → n cells."""
        longest = int(payload_bytes.max(initial=0))
        if longest >= max(len(self._table), min(len(payload_bytes), _TABLE_LIMIT)):  # a table would hardly be used
            distinct, indices = np.unique(payload_bytes, return_inverse=True)
            return Table([self._prefix(int(length)) for length in distinct]).take(indices.astype(np.int64), valid)
        if longest >= len(self._table):
            self._table = Table([self._prefix(length) for length in range(max(64, 1 << longest.bit_length()))])
        return self._table.take(payload_bytes, valid)
