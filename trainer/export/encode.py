"""Arrow record batches → framed `tf.train.Example` records, a column at a time; no Python runs per cell.

Comes in: a record batch. Goes out: buffers of whole TFRecord records, about 4 MB each. Bytes equal
`tf.train.Example(…).SerializeToString(deterministic=True)` with keys in the order of their UTF-8 bytes, whatever the
batches' borders: each row's bytes depend on that row alone.

Record (https://www.tensorflow.org/tutorials/load_data/tfrecord): u64 length, u32 masked CRC32C of the length, data,
u32 masked CRC32C of the data. One Arrow kernel joins header, all columns' pieces and room for the last CRC.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from trainer.documents import ImageColumn, Layout
from trainer.export.arrays import integers, variable_bytes
from trainer.export.columns import EMPTY, FloatCells, Piece, column_encoder, float_block
from trainer.export.images import resize_columns
from trainer.export.layout import Arrangement
from trainer.export.tfrecord import data_crcs, header_crcs
from trainer.export.wire import Cells, Ints, binary_array, compact, varint_lengths, varint_words

_CHUNK_BYTES = 4 << 20  # less costs calls, more leaves the cache
_MAX_CHUNK_ROWS = 65536
_FIXED_BYTES = 12  # of a scalar's entry, beside its key: a first guess
_CRC_ROOM = pa.scalar(bytes(4), pa.binary())
_FRAME_BYTES = 12  # u64 length, u32 CRC


class Encoder:
    """Encodes batches of one schema. Keeps tables per column, so one encoder should see many batches.

    Args:
        schema: Of the batches, STRUCTs flattened; the run table's own columns are left out.
        layout: How rows lie in Examples; default: an Example per row, a feature per column.
        images: Columns of images, which are resized.

    Raises:
        DataError: A column's Arrow type has no mapping.
        RequestError: The layout does not fit the schema.
    """

    def __init__(self, schema: pa.Schema, layout: Layout | None = None, images: Sequence[ImageColumn] = ()) -> None:
        layout = layout or Layout()
        self._images, self._rows_per_record = images, layout.rows_per_record
        self._arrangement = Arrangement(schema, layout, images)
        arranged = self._arrangement.schema
        self._columns = [
            (arranged.get_field_index(name), column_encoder(name, arranged.field(name).type))
            for name in sorted(arranged.names, key=str.encode)
        ]
        self._fixed_bytes = sum(len(name.encode()) + _FIXED_BYTES for name in schema.names)
        self._fixed_bytes += sum(image.height * image.width * image.channels for image in images)
        self._scale = 1.0  # bytes written for each byte guessed

    def encode(self, batch: pa.RecordBatch, order: pa.Array | None = None) -> Iterator[npt.NDArray[np.uint8]]:
        """Give the records of all rows. With several rows per record the last record is padded.

        Args:
            batch: Rows.
            order: Indices of the rows in the order in which to write them; default as they stand. [n_rows]

        Raises:
            DataError: A NULL inside an array, or an image that cannot be read.
        """
        ends = np.cumsum(self._guess_bytes(batch, order))
        start = 0
        while start < len(ends):
            count = self._chunk_rows(ends, start)
            chunk = batch.slice(start, count) if order is None else batch.take(order.slice(start, count))
            records = self._encode_chunk(chunk)
            guessed = int(ends[start + count - 1] - (ends[start - 1] if start else 0))
            self._scale = float(np.clip(records.nbytes / guessed, 0.25, 16))
            start += count
            yield records

    def _guess_bytes(self, batch: pa.RecordBatch, order: pa.Array | None) -> Ints:
        """Guess how many bytes each row becomes, in the order of writing. [n_rows]."""
        sizes = np.full(batch.num_rows, self._fixed_bytes, np.int64)
        for column in batch.columns:
            variable = variable_bytes(column)
            if variable is not None:
                sizes += variable
        return sizes if order is None else sizes[integers(order)]

    def _chunk_rows(self, ends: Ints, start: int) -> int:
        """Give how many rows make up a chunk: whole records, but for the last."""
        done = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, done + _CHUNK_BYTES / self._scale, side="right")) - start
        whole = min(fitting, _MAX_CHUNK_ROWS) // self._rows_per_record * self._rows_per_record
        return min(max(whole, self._rows_per_record), len(ends) - start)

    def _encode_chunk(self, batch: pa.RecordBatch) -> npt.NDArray[np.uint8]:
        records = -(-batch.num_rows // self._rows_per_record)
        batch = self._arrangement.arrange(resize_columns(batch, self._images))
        pieces = [piece for index, encoder in self._columns for piece in encoder.encode(batch.column(index))]
        if pieces and all(isinstance(piece, FloatCells) for piece in pieces):
            return _fixed_records([piece for piece in pieces if isinstance(piece, FloatCells)])
        cells = _merge_floats(pieces)
        sizes = sum((cell.lengths for cell in cells), np.zeros(records, np.int64))
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
