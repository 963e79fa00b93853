"""Reads the shards of a run without TensorFlow: TFRecords of `tf.train.Example`, by the standard library alone.

Comes in: a file. Goes out: its rows as dictionaries, in the file's order. A record is u64 length, u32 masked CRC32C of
the length, data, u32 masked CRC32C of the data
(https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details); an Example is a map from a column's
name to a list of bytes, floats or whole numbers (https://protobuf.dev/programming-guides/encoding). Copy this file
where the package is too much. `google_crc32c`, which comes with Google's clients, only makes it faster.
"""

from __future__ import annotations

import gzip
import struct
import sys
import zlib
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, cast

Values = Sequence[bytes] | Sequence[float] | Sequence[int]
Scalar = bytes | float | int | None

NUMERIC, ROWS = "_numeric", "_rows"
"""Columns of the manifest's `layout`: packed numeric features, and how many rows of a record are real."""

MAX_RECORD_BYTES = 2**31 - 1
"""Of a serialised message, the most that protobuf allows."""

_PIECE_BYTES = 1 << 24
_LEAST_INT64 = -(2**63)
_DELTA = 0xA282EAD8


class ShardError(Exception):
    """A file is not what the manifest says; trying again cannot help."""


def read_rows(
    path: Path, compression: str, columns: Collection[str], layout: Mapping[str, object] | None = None
) -> Iterator[dict[str, Scalar]]:
    """Yield a row per example of the table, with the value of each column; None: NULL.

    Args:
        path: Of a shard.
        compression: Of the manifest: GZIP or NONE.
        columns: Wanted, of one value each.
        layout: Of the manifest; None: a record per row, each column on its own.

    Raises:
        ShardError: The file is cut off or corrupt, or a column holds several values.
    """
    packed = {name: place for place, name in enumerate(cast("Sequence[str]", (layout or {}).get("numeric", ())))}
    stored = {NUMERIC if name in packed else name for name in columns} | {ROWS}
    per_record = cast("int", (layout or {}).get("rows_per_record", 1))
    for number, record in enumerate(read_records(path, compression)):
        example = parse_example(record, stored)
        rows = cast("int", example[ROWS][0]) if per_record > 1 else 1
        for row in range(rows):
            values: dict[str, Scalar] = {}
            for name in columns:
                if name in packed:
                    value: Scalar = example[NUMERIC][row * len(packed) + packed[name]]
                    values[name] = None if value != value else value
                elif per_record > 1:
                    value = example[name][row]
                    values[name] = None if value in (b"", _LEAST_INT64) or value != value else value
                else:
                    listed = example.get(name, ())
                    if len(listed) > 1:
                        raise ShardError(
                            f"{path}, record {number}: column {name!r} holds {len(listed)} values, not one"
                        )
                    values[name] = listed[0] if listed else None
            yield values


def read_records(path: Path, compression: str = "GZIP") -> Iterator[bytes]:
    """Yield a file's records, their checksums checked.

    Raises:
        ShardError: The file is cut off or corrupt; names the record.
    """
    number = 0
    try:
        with gzip.open(path) if compression == "GZIP" else path.open("rb") as file:
            while head := file.read(12):
                yield _read_record(cast("BinaryIO", file), head)
                number += 1
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, struct.error) as error:
        raise ShardError(f"{path}, record {number}: {error}") from error


def _read_record(file: BinaryIO, head: bytes) -> bytes:
    length, crc = struct.unpack("<QI", head)
    if masked_crc(head[:8]) != crc:
        raise ValueError("the checksum of its length is wrong")
    if length > MAX_RECORD_BYTES:
        raise ValueError(f"it claims {length} bytes, and no record of this system has more than {MAX_RECORD_BYTES}")
    data = _read_pieces(file, length)
    tail = file.read(4)
    if len(data) + len(tail) < length + 4:
        raise EOFError("the file ends inside it")
    if masked_crc(data) != struct.unpack("<I", tail)[0]:
        raise ValueError("the checksum of its data is wrong")
    return data


def _read_pieces(file: BinaryIO, length: int) -> bytes:
    """Return the next bytes, fewer at the file's end: memory is taken for what is there, not for what is claimed."""
    pieces, left = [], length
    while left and (piece := file.read(min(left, _PIECE_BYTES))):
        pieces.append(piece)
        left -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def parse_example(data: bytes, columns: Collection[str] | None = None) -> dict[str, Values]:
    """Return a serialised `tf.train.Example` by column; a column without values is an empty list.

    Args:
        data: The message.
        columns: Wanted; None: all.

    Raises:
        ShardError: It is no such message.
    """
    wanted = None if columns is None else {name.encode() for name in columns}
    parsed: dict[str, Values] = {}
    try:
        for features in _messages(data, 0, len(data), 1):
            for entry in _messages(data, *features, 1):
                key = value = None
                for field, start, end in _fields(data, *entry):
                    if field == 1:
                        key = data[start:end]
                    elif field == 2:
                        value = (start, end)
                if key is not None and (wanted is None or key in wanted):
                    parsed[key.decode()] = _values(data, *value) if value else ()
    except (IndexError, ValueError, struct.error) as error:
        raise ShardError(f"not a tf.train.Example: {error}") from error
    return parsed


def _messages(data: bytes, start: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Yield where the fields of one number begin and end."""
    return ((begin, stop) for field, begin, stop in _fields(data, start, end) if field == wanted)


def _fields(data: bytes, place: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, start and end of each field."""
    while place < end:
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == 2:
            size, place = _varint(data, place)
            stop = place + size
        elif kind == 0:
            _, stop = _varint(data, place)
        elif kind in (1, 5):
            stop = place + (8 if kind == 1 else 4)
        else:
            raise ValueError(f"a field of wire type {kind}")
        if stop > end:
            raise ValueError("a field ends beyond its message")
        yield tag >> 3, place, stop
        place = stop


def _varint(data: bytes, place: int) -> tuple[int, int]:
    byte = data[place]
    if byte < 0x80:  # most are
        return byte, place + 1
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        place += 1
        byte = data[place]
        value |= (byte & 0x7F) << shift
        shift += 7
    return value & 0xFFFFFFFFFFFFFFFF, place + 1


def _values(data: bytes, start: int, end: int) -> Values:
    """Return the list of a `tf.train.Feature`."""
    found: Values = ()
    for kind, begin, stop in _fields(data, start, end):
        if kind == 1:
            found = [data[first:last] for first, last in _messages(data, begin, stop, 1)]
        elif kind == 2:
            floats = array("f", b"".join(data[first:last] for first, last in _messages(data, begin, stop, 1)))
            if sys.byteorder == "big":
                floats.byteswap()
            found = floats
        elif kind == 3:
            found = [whole for first, last in _messages(data, begin, stop, 1) for whole in _integers(data, first, last)]
    return found


def _integers(data: bytes, place: int, end: int) -> Iterator[int]:
    while place < end:
        value, place = _varint(data, place)
        yield value - (1 << 64) if value >> 63 else value


def _table() -> tuple[int, ...]:
    values = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        values.append(value)
    return tuple(values)


_TABLE = _table()


def plain_crc32c(data: bytes) -> int:
    """Return the CRC32C of bytes, one after the other."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _fastest() -> Callable[[bytes], int]:
    try:
        import google_crc32c
    except ImportError:
        return plain_crc32c
    return cast("Callable[[bytes], int]", google_crc32c.value)


_crc32c = _fastest()


def masked_crc(data: bytes) -> int:
    """Return the checksum as TFRecord stores it."""
    crc = _crc32c(data)
    return ((crc >> 15 | crc << 17) + _DELTA) & 0xFFFFFFFF
