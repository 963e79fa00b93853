"""The pieces of all columns → framed records.

Comes in: per row, the pieces of its Example in order. Goes out: one buffer of TFRecord records. A record is
(https://www.tensorflow.org/tutorials/load_data/tfrecord): u64 length, u32 masked CRC32C of the length, data, u32 masked
CRC32C of the data. There are three ways, all with the same bytes: rows of floats alone are equally long and written as
blocks; short pieces are scattered to their places column by column; long ones are joined by an Arrow kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from trainer.export.encoding.columns import EMPTY, FloatCells, Piece, float_block
from trainer.export.encoding.tfrecord import data_crcs, header_crcs
from trainer.export.encoding.wire import (
    Blobs,
    Cells,
    Ints,
    compact,
    offsets_of,
    scatter,
    slots_of,
    varint_lengths,
    varint_words,
)

Buffer = npt.NDArray[np.uint8]

_FRAME_BYTES = 12  # u64 length, u32 CRC
_CRC_BYTES = 4
_CRC_ROOM = pa.scalar(bytes(_CRC_BYTES), pa.binary())
_SHORT_BYTES = 64  # longer blobs are cheaper copied once, by Arrow, than twice


def frame(pieces: Sequence[Piece], rows: int) -> Buffer:
    """Put pieces together.

    Args:
        pieces: Of all columns in the order in which they stand in a row, n_rows cells each.
        rows: n_rows
    """
    floats = [piece for piece in pieces if isinstance(piece, FloatCells)]
    if floats and len(floats) == len(pieces):
        return _of_floats(floats)
    merged = _merge_floats(pieces)
    sizes = sum((piece.lengths for piece in merged), np.zeros(rows, np.int64))
    short = _all_short(merged)
    return _joined(merged, sizes) if short is None else _scattered(short, sizes)


def _of_floats(columns: list[FloatCells]) -> Buffer:
    """Write rows of float columns only: every record is equally long, so the header is a constant."""
    width = sum(len(column.prefix) + 4 for column in columns)
    header = compact(_headers(np.array([width])))
    frame = header.array.buffers()[2].to_pybytes()[: int(header.lengths[0])]
    first = FloatCells(prefix=frame + columns[0].prefix, values=columns[0].values)
    rows = len(first.values)
    crc_room = FloatCells(prefix=b"", values=np.zeros(rows, np.float32))
    slots = float_block([first, *columns[1:], crc_room])
    return _with_data_crcs(slots.view(np.uint8), np.full(rows, slots.dtype.itemsize))


def _scattered(pieces: Sequence[Cells], sizes: Ints) -> Buffer:
    """Write column by column, each cell at its place; a slot's surplus goes where a later column will write.

    What the last columns have too much falls on the frame between two records, which is written last.
    """
    headers = _headers(sizes)
    offsets = offsets_of(headers.lengths + sizes + _CRC_BYTES)
    total = int(offsets[-1])
    buffer = np.empty(total + max(piece.width for piece in [headers, *pieces]), np.uint8)
    scatter(buffer, offsets[:-1], headers)
    positions = offsets[:-1] + headers.lengths
    for piece in pieces:
        scatter(buffer, positions, piece)
        positions += piece.lengths
    frames = Cells(
        slots=np.ndarray((len(sizes),), f"V{_FRAME_BYTES}", headers.slots, strides=(headers.width,)),
        lengths=np.full(len(sizes), _FRAME_BYTES),
        least=_FRAME_BYTES,
    )
    scatter(buffer, offsets[:-1], frames)
    return _with_data_crcs(buffer[:total], headers.lengths + sizes + _CRC_BYTES)


def _joined(pieces: Sequence[Cells | Blobs], sizes: Ints) -> Buffer:
    """Join blobs of any length."""
    headers = compact(_headers(sizes))
    blobs = [compact(piece) if isinstance(piece, Cells) else piece for piece in pieces]
    joined = pc.binary_join_element_wise(
        headers.array, *(blob.array for blob in blobs), _CRC_ROOM, EMPTY, null_handling="skip"
    )
    return _with_data_crcs(np.frombuffer(joined.buffers()[2], np.uint8), headers.lengths + sizes + _CRC_BYTES)


def _merge_floats(pieces: Sequence[Piece]) -> list[Cells | Blobs]:
    """Turn runs of neighbouring float columns into one piece each."""
    merged: list[Cells | Blobs] = []
    run: list[FloatCells] = []
    for piece in [*pieces, None]:
        if isinstance(piece, FloatCells):
            run.append(piece)
            continue
        if run:
            slots = float_block(run)
            width = slots.dtype.itemsize
            merged.append(Cells(slots=slots, lengths=np.full(len(slots), width), least=width))
            run = []
        if piece is not None:
            merged.append(piece)
    return merged


def _all_short(pieces: Sequence[Cells | Blobs]) -> list[Cells] | None:
    """Put all pieces into slots; None where one is too long, or a slot would reach into the next row's columns."""
    if any(isinstance(piece, Blobs) and piece.lengths.max(initial=0) > _SHORT_BYTES for piece in pieces):
        return None
    cells = [slots_of(piece) if isinstance(piece, Blobs) else piece for piece in pieces]
    room = _CRC_BYTES + _FRAME_BYTES
    for cell in reversed(cells):
        if cell.width - cell.least > room:
            return None
        room += cell.least if cell.valid is None else 0
    return cells


def _headers(sizes: Ints) -> Cells:
    """Return length, its CRC, and the Example's own tag and length, for feature bytes of these sizes."""
    unsigned = sizes.view(np.uint64)
    lengths = varint_lengths(unsigned)
    varints, _ = varint_words(unsigned, lengths)
    records = 1 + lengths + sizes
    slots = np.empty(len(sizes), np.dtype([("length", "<u8"), ("crc", "<u4"), ("tag", "u1"), ("size", "<u8")]))
    slots["length"], slots["crc"], slots["tag"], slots["size"] = records, header_crcs(records), 0x0A, varints
    return Cells(
        slots=slots.view(f"V{slots.dtype.itemsize}"),
        lengths=np.add(lengths, _FRAME_BYTES + 1, dtype=np.int64),
        least=_FRAME_BYTES + 2,
    )


def _with_data_crcs(buffer: Buffer, record_bytes: Ints) -> Buffer:
    """Write each record's last four bytes."""
    if not len(record_bytes):
        return buffer[:0]
    ends = np.cumsum(record_bytes)
    out = buffer[: int(ends[-1])]
    if not out.flags.writeable:
        out = out.copy()
    crcs = data_crcs(out, ends - record_bytes + _FRAME_BYTES, ends - _CRC_BYTES)
    np.ndarray((len(out) - 3,), "<u4", out, strides=(1,))[ends - _CRC_BYTES] = crcs
    return out
