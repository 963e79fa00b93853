"""TFRecord files: how they are read, and the message about one that cannot be.

A record is u64 length, u32 masked CRC32C of the length, data, u32 masked CRC32C of the data
(https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details). TensorFlow reads them fast and says
little about a bad one; `find_fault` reads them slowly and names file, record and column.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import google_crc32c
import tensorflow as tf
from google.protobuf.message import DecodeError

from trainer.contract.documents import ShardLayout
from trainer.errors import DataError
from trainer.input.content import Content, CutOffError, opened
from trainer.input.files import WAY_OUT, Shard
from trainer.input.pipeline import READ_BUFFER_BYTES, READ_ROWS
from trainer.input.records import ROWS, RecordParser
from trainer.input.source import Dataset, ParseSpec, Share, Tensor

_HEAD_BYTES = 12
_CRC_BYTES = 4
_GZIP = b"\x1f\x8b"
_UNROLLED_ROWS = 8192  # of records that hold several: the batch costs more than its rows
_KINDS = {tf.int64: "int64_list", tf.float32: "float_list", tf.string: "bytes_list"}


class Records:
    """Files of `tf.train.Example`s.

    Args:
        layout: How the export wrote them.
    """

    def __init__(self, layout: ShardLayout | None = None) -> None:
        self._layout = layout or ShardLayout()

    def batches_of(self, path: Tensor, compression: str, within: Share | None) -> Dataset:
        """Return a file's records."""
        records = tf.data.TFRecordDataset(path, compression, READ_BUFFER_BYTES)
        if within is not None:
            records = records.shard(within.count, within.index)
        per_record = self._layout.rows_per_record
        return records.batch(READ_ROWS if per_record == 1 else max(1, _UNROLLED_ROWS // per_record))

    def parser(self, spec: ParseSpec) -> RecordParser:
        """Return what parses a batch."""
        return RecordParser(spec, self._layout)

    def rows_within(self, rows: int, within: Share | None) -> int:
        """Count the rows of every count-th record; the last record of a file may hold fewer."""
        if within is None:
            return rows
        per_record = self._layout.rows_per_record
        records = -(-rows // per_record)
        chosen = len(range(within.index, records, within.count))
        has_last = records > 0 and (records - 1) % within.count == within.index
        return chosen * per_record - (records * per_record - rows if has_last else 0)

    def find_fault(self, shard: Shard, compression: str, spec: ParseSpec) -> DataError | None:
        """Check framing, CRC32C and features of every record until one is wrong."""
        features = self.parser(spec).stored
        try:
            for record in read_records(shard, compression):
                try:
                    example = tf.train.Example.FromString(record.data)
                except DecodeError:
                    return DataError(record.where, "is not a tf.train.Example", "one, serialised", WAY_OUT)
                fault = _feature_fault(record, example, features)
                if fault is not None:
                    return fault
        except DataError as fault:
            return fault
        return None

    def count_rows(self, shard: Shard, compression: str) -> int:
        """Count records, or the real rows in them."""
        if self._layout.rows_per_record == 1:
            return sum(1 for _ in read_records(shard, compression))
        return sum(
            tf.train.Example.FromString(record.data).features.feature[ROWS].int64_list.value[0]
            for record in read_records(shard, compression)
        )


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a file holds at a place, which is named as messages name it."""

    where: str
    data: bytes


def read_records(shard: Shard, compression: str) -> Iterator[Record]:
    """Yield a file's records.

    Raises:
        DataError: The file is missing or cut off, or a CRC32C does not fit; names file, record and byte.
    """
    number = offset = 0
    try:
        with opened(shard, compression) as content:
            while head := content.read(_HEAD_BYTES):
                where = f"{shard.uri}, record {number} (counted from 0; at byte {offset} uncompressed)"
                data = _data(content, head, where)
                yield Record(where=where, data=data)
                number, offset = number + 1, offset + _HEAD_BYTES + len(data) + _CRC_BYTES
    except CutOffError as error:
        where = f"{shard.uri}, record {number} (counted from 0; at byte {offset} uncompressed)"
        raise DataError(where, f"the file ends inside it: {error}", "a whole record", WAY_OUT) from error


def compression_of(path: str) -> str:
    """Return how a file is compressed, GZIP or not at all, by its first record: a length may begin as gzip does."""
    with tf.io.gfile.GFile(path, "rb") as raw:
        head = raw.read(_HEAD_BYTES)
    framed = len(head) == _HEAD_BYTES and _masked_crc(head[:8]) == struct.unpack("<I", head[8:])[0]
    return "GZIP" if head.startswith(_GZIP) and not framed else ""


def _data(content: Content, head: bytes, where: str) -> bytes:
    if len(head) < _HEAD_BYTES:
        content.read(1)  # says so if the gzip stream is not whole
        raise CutOffError(f"{len(head)} of {_HEAD_BYTES} bytes of its head")
    (size,) = struct.unpack("<Q", head[:8])
    _require_crc(head[:8], head[8:], where, "its length")
    data = content.read(size)
    crc = content.read(_CRC_BYTES)
    if len(data) + len(crc) < size + _CRC_BYTES:
        content.read(1)  # says so if the gzip stream is not whole
        raise CutOffError(f"{len(data) + len(crc)} of {size + _CRC_BYTES} bytes")
    _require_crc(data, crc, where, "its data")
    return data


def _require_crc(content: bytes, stored: bytes, where: str, what: str) -> None:
    actual = _masked_crc(content)
    (expected,) = struct.unpack("<I", stored)
    if actual != expected:
        raise DataError(
            where, f"{what} has the CRC32C {actual:08x}", f"{expected:08x}, as stored: the record is corrupt", WAY_OUT
        )


def _masked_crc(content: bytes) -> int:
    plain: int = google_crc32c.value(content)
    return (((plain >> 15) | (plain << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _feature_fault(record: Record, example: tf.train.Example, features: ParseSpec) -> DataError | None:
    for name, spec in features.items():
        kind = _KINDS[spec.dtype]
        stored = example.features.feature.get(name)
        stored_kind = stored.WhichOneof("kind") if stored is not None else None
        fixed = isinstance(spec, tf.io.FixedLenFeature)
        if stored_kind is None or stored is None:
            if fixed and spec.default_value is None:
                return _column_fault(record, name, "is absent", kind)
            continue
        values = len(getattr(stored, stored_kind).value)
        size = int(tf.TensorShape(spec.shape).num_elements()) if fixed else None
        expected = kind if size is None else f"{kind} of {size} value{'s' if size != 1 else ''}"
        if stored_kind != kind or (size is not None and values != size):
            return _column_fault(record, name, f"{stored_kind} of {values} value{'s' if values != 1 else ''}", expected)
    return None


def _column_fault(record: Record, name: str, found: str, expected: str) -> DataError:
    return DataError(f"{record.where}, column {name!r}", found, f"{expected}, as the manifest's schema has it", WAY_OUT)
