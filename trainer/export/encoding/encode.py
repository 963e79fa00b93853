"""Arrow record batches → framed `tf.train.Example` records, a column at a time; no Python runs per cell.

Comes in: a record batch. Goes out: buffers of whole TFRecord records, about 4 MB each. Bytes equal
`tf.train.Example(…).SerializeToString(deterministic=True)` with keys in the order of their UTF-8 bytes, whatever the
batches' borders: each row's bytes depend on that row alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trainer.contract.documents import ImageColumn, ShardLayout
from trainer.export.encoding.arrays import integers, variable_bytes
from trainer.export.encoding.columns import column_encoder
from trainer.export.encoding.images import resize_columns
from trainer.export.encoding.layout import Arrangement
from trainer.export.encoding.records import frame
from trainer.export.encoding.wire import Ints

_CHUNK_BYTES = 3 << 20  # less costs calls, more leaves the cache
_MAX_CHUNK_ROWS = 65536
_FIXED_BYTES = 12  # of a scalar's entry, beside its key: a first guess


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

    def __init__(
        self, schema: pa.Schema, layout: ShardLayout | None = None, images: Sequence[ImageColumn] = ()
    ) -> None:
        layout = layout or ShardLayout()
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

    def encode(self, batch: pa.RecordBatch, positions: pa.Array | None = None) -> Iterator[npt.NDArray[np.uint8]]:
        """Yield the records of all rows. With several rows per record the last record is padded.

        Args:
            positions: Indices of the rows in the order in which to write them; default as they stand. [n_rows]

        Raises:
            DataError: A NULL inside an array, or an image that cannot be read.
        """
        ends = np.cumsum(self._guess_bytes(batch, positions))
        start = 0
        while start < len(ends):
            count = self._chunk_rows(ends, start)
            chunk = batch.slice(start, count) if positions is None else batch.take(positions.slice(start, count))
            records = self._encode_chunk(chunk)
            guessed = int(ends[start + count - 1] - (ends[start - 1] if start else 0))
            self._scale = float(np.clip(records.nbytes / guessed, 0.25, 16))
            start += count
            yield records

    def _guess_bytes(self, batch: pa.RecordBatch, positions: pa.Array | None) -> Ints:
        """Guess how many bytes each row becomes, in the order of writing. [n_rows]."""
        sizes = np.full(batch.num_rows, self._fixed_bytes, np.int64)
        for column in batch.columns:
            variable = variable_bytes(column)
            if variable is not None:
                sizes += variable
        return sizes if positions is None else sizes[integers(positions)]

    def _chunk_rows(self, ends: Ints, start: int) -> int:
        """Return how many rows make up a chunk: whole records, but for the last."""
        done = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, done + _CHUNK_BYTES / self._scale, side="right")) - start
        whole = min(fitting, _MAX_CHUNK_ROWS) // self._rows_per_record * self._rows_per_record
        return min(max(whole, self._rows_per_record), len(ends) - start)

    def _encode_chunk(self, batch: pa.RecordBatch) -> npt.NDArray[np.uint8]:
        records = -(-batch.num_rows // self._rows_per_record)
        batch = self._arrangement.arrange(resize_columns(batch, self._images))
        pieces = [piece for index, encoder in self._columns for piece in encoder.encode(batch.column(index))]
        return frame(pieces, records)
