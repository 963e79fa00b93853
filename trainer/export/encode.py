"""Arrow record batches → framed `tf.train.Example` records, a column at a time; no Python runs per cell.

Comes in: a record batch. Goes out: buffers of whole TFRecord records, about 4 MB each. Bytes equal
`tf.train.Example(…).SerializeToString(deterministic=True)` with keys in the order of their UTF-8 bytes, whatever the
batches' borders: each row's bytes depend on that row alone.

Record (https://www.tensorflow.org/tutorials/load_data/tfrecord): u64 length, u32 masked CRC32C of the length, data,
u32 masked CRC32C of the data. One Arrow kernel joins header, all columns' pieces and room for the last CRC.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from trainer.export.columns import EMPTY, FloatCells, Piece, column_encoder, float_block
from trainer.export.tfrecord import data_crcs, header_crcs
from trainer.export.types import RUN_COLUMNS
from trainer.export.wire import Cells, Ints, binary_array, compact, varint_lengths, varint_words

_CHUNK_BYTES = 4 << 20  # less costs calls, more leaves the cache
_FIRST_ROWS = 1024
_MAX_CHUNK_ROWS = 65536
_CRC_ROOM = pa.scalar(bytes(4), pa.binary())
_FRAME_BYTES = 12  # u64 length, u32 CRC


class Encoder:
    """Encodes batches of one schema. Keeps tables per column, so one encoder should see many batches.

    Args:
        schema: Of the batches; the run table's own columns are left out.

    Raises:
        DataError: A column's Arrow type has no mapping.
    """

    def __init__(self, schema: pa.Schema) -> None:
        names = sorted((name for name in schema.names if name not in RUN_COLUMNS), key=str.encode)
        self._columns = [
            (schema.get_field_index(name), column_encoder(name, schema.field(name).type)) for name in names
        ]
        self._chunk_rows = _FIRST_ROWS

    def encode(self, batch: pa.RecordBatch, order: pa.Array | None = None) -> Iterator[npt.NDArray[np.uint8]]:
        """Give the records of all rows.

        Args:
            batch: Rows.
            order: Indices of the rows in the order in which to write them; default as they stand. [n_rows]
        """
        start, rows = 0, batch.num_rows if order is None else len(order)
        while start < rows:
            count = min(self._chunk_rows, rows - start)
            chunk = batch.slice(start, count) if order is None else batch.take(order.slice(start, count))
            records = self._encode_chunk(chunk)
            written = records.nbytes
            self._chunk_rows = int(np.clip(_CHUNK_BYTES * count // max(written, 1), 16, _MAX_CHUNK_ROWS))
            start += count
            yield records

    def _encode_chunk(self, batch: pa.RecordBatch) -> npt.NDArray[np.uint8]:
        pieces = [piece for index, encoder in self._columns for piece in encoder.encode(batch.column(index))]
        if pieces and all(isinstance(piece, FloatCells) for piece in pieces):
            return _fixed_records([piece for piece in pieces if isinstance(piece, FloatCells)])
        cells = _merge_floats(pieces)
        sizes = sum((cell.lengths for cell in cells), np.zeros(batch.num_rows, np.int64))
        header = _headers(sizes)
        joined = pc.binary_join_element_wise(
            header.array, *(cell.array for cell in cells), _CRC_ROOM, EMPTY, null_handling="skip"
        )
        return _with_data_crcs(joined.buffers()[2], header.lengths + sizes + 4)


def _merge_floats(pieces: list[Piece]) -> list[Cells]:
    """Turn runs of neighbouring float columns into one piece each."""
    cells: list[Cells] = []
    run: list[FloatCells] = []
    for piece in [*pieces, None]:
        if isinstance(piece, FloatCells):
            run.append(piece)
            continue
        if run:
            block = float_block(run)
            rows, width = block.shape
            cells.append(Cells(array=binary_array(np.arange(rows + 1) * width, block), lengths=np.full(rows, width)))
            run = []
        if piece is not None:
            cells.append(piece)
    return cells


def _headers(sizes: Ints) -> Cells:
    """Give length, its CRC, and the Example's own tag and length, for feature bytes of these sizes."""
    unsigned = sizes.view(np.uint64)
    lengths = varint_lengths(unsigned)
    words, _ = varint_words(unsigned, lengths)
    records = 1 + lengths + sizes
    cells = np.empty(len(sizes), np.dtype([("length", "<u8"), ("crc", "<u4"), ("tag", "u1"), ("size", "<u8")]))
    cells["length"], cells["crc"], cells["tag"], cells["size"] = records, header_crcs(records), 0x0A, words
    return compact(cells.view(f"V{cells.dtype.itemsize}"), _FRAME_BYTES + 1 + lengths)


def _with_data_crcs(buffer: pa.Buffer, record_bytes: Ints) -> npt.NDArray[np.uint8]:
    """Write each record's last four bytes."""
    ends = np.cumsum(record_bytes)
    total = int(ends[-1])
    out = np.frombuffer(buffer, np.uint8, count=total)
    if not out.flags.writeable:
        out = out.copy()
    content = out.tobytes()
    crcs = data_crcs(content, ends - record_bytes + _FRAME_BYTES, ends - 4)
    np.ndarray((total - 3,), "<u4", out, strides=(1,))[ends - 4] = crcs
    return out


def _fixed_records(columns: list[FloatCells]) -> npt.NDArray[np.uint8]:
    """Write rows of float columns only: every record is equally long, so the header is a constant."""
    width = sum(len(column.prefix) + 4 for column in columns)
    header = np.frombuffer(_headers(np.array([width])).array.buffers()[2], np.uint8)[
        : _FRAME_BYTES + 1 + int(varint_lengths(np.array([width], np.uint64))[0])
    ]
    first = FloatCells(prefix=header.tobytes() + columns[0].prefix, values=columns[0].values)
    last = len(columns[0].values)
    block = float_block([first, *columns[1:], FloatCells(prefix=b"", values=np.zeros(last, np.float32))])
    out = block.reshape(-1)
    return _with_data_crcs(pa.py_buffer(out), np.full(last, block.shape[1]))
