"""What a shard file is made of: TFRecords or CSV, chosen by the request.

Comes in: record batches of rows in file order. Goes out: the file's bytes before compression. A format is one small
object with four answers; reading, sorting, compressing, proving and storing are the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from trainer.contract.documents import ExportRequest
from trainer.export.encoding.encode import Encoder
from trainer.export.encoding.objects import ObjectImages
from trainer.storage import Storage

BytesLike = Any  # bytes, an Arrow buffer or a NumPy array
_FRAME_BYTES = 16  # of a TFRecord: length, its CRC, and the data's CRC
_ENDINGS = {"GZIP": ".gz", "NONE": ""}


class ShardFormat(Protocol):
    """How rows become a file."""

    suffix: str
    """Of file names, with its dots."""

    multiple: int
    """`encode` wants a multiple of so many rows; only the shard's last ones may be fewer."""

    def head(self) -> bytes:
        """Return what stands before the first row, also in a shard without rows."""

    def encode(self, batch: pa.RecordBatch) -> Iterator[BytesLike]:
        """Return the bytes of these rows, in pieces."""

    def row_bytes(self, batch: pa.RecordBatch) -> list[bytes]:
        """Return bytes per row that differ where the rows' places in the file would make a difference."""


def make_format(request: ExportRequest, storage: Storage) -> ShardFormat:
    """Choose the request's format.

    Args:
        request: What is exported.
        storage: Where images are that are objects.

    Raises:
        RequestError: A column's type has no form in it, or the request asks of it what it does not have.
    """
    if request.format == "csv":
        from trainer.export.encoding.csv import CsvFormat  # TFRecords need nothing of it

        return CsvFormat(request, f".csv{_ENDINGS[request.compression]}")
    return TfRecordFormat(request, f".tfrecord{_ENDINGS[request.compression]}", storage)


class TfRecordFormat:
    """`tf.train.Example` records.

    Args:
        request: Its layout and images say what the records look like.
        suffix: Of file names.
        storage: Where images are that are objects.
    """

    def __init__(self, request: ExportRequest, suffix: str, storage: Storage) -> None:
        self.suffix = suffix
        self._storage = storage
        self.multiple = request.layout.rows_per_record
        self._request = request
        self._schema: pa.Schema | None = None

    def head(self) -> bytes:
        """Nothing."""
        return b""

    def encode(self, batch: pa.RecordBatch) -> Iterator[BytesLike]:
        """Yield whole records."""
        self._prepare(batch.schema)
        for piece in self._objects.fetch(batch, self.multiple):
            yield from self._records.encode(piece)

    def row_bytes(self, batch: pa.RecordBatch) -> list[bytes]:
        """Return each row's record as it would be alone and with every column as it came."""
        self._prepare(batch.schema)
        records = []
        for buffer in self._rows.encode(batch):
            content, start = buffer.tobytes(), 0
            while start < len(content):
                end = start + _FRAME_BYTES + int.from_bytes(content[start : start + 8], "little")
                records.append(content[start:end])
                start = end
        return records

    def _prepare(self, schema: pa.Schema) -> None:
        """Make encoders; they keep tables, so that they serve all shards."""
        if self._schema is None or not self._schema.equals(schema):
            self._schema = schema
            images = self._request.images
            self._objects = ObjectImages(schema, images, self._storage)
            files = [image for image in images if image not in self._objects.images]
            self._records = Encoder(self._objects.schema(schema), self._request.layout, files)
            self._rows = Encoder(schema)
