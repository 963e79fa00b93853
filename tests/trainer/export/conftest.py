"""What tests of the encoder share: records taken apart, and what TensorFlow itself would have written."""

from __future__ import annotations

import datetime
import decimal
import struct
from collections.abc import Callable, Mapping
from typing import Any

import google_crc32c
import pyarrow as pa
import pytest
import tensorflow as tf

from trainer.export.encoding.arrays import feature_kind, is_array
from trainer.export.encoding.encode import Encoder
from trainer.export.encoding.types import FeatureKind

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
FEATURES = {
    FeatureKind.INT64: lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
    FeatureKind.FLOAT: lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
    FeatureKind.BYTES: lambda values: tf.train.Feature(bytes_list=tf.train.BytesList(value=values)),
}


def split_records(content: bytes) -> list[bytes]:
    """Split TFRecords and check both CRCs of each."""
    records, at = [], 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        data = content[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", content, at + 8)[0] == masked_crc(content[at : at + 8])
        assert struct.unpack_from("<I", content, at + 12 + length)[0] == masked_crc(data)
        records.append(data)
        at += 16 + length
    return records


def masked_crc(data: bytes) -> int:
    """CRC32C as TFRecord stores it."""
    crc = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def encode_batch(batch: pa.RecordBatch, **options: Any) -> bytes:
    """Encode a batch alone."""
    return b"".join(chunk.tobytes() for chunk in Encoder(batch.schema, **options).encode(batch))


def tutorial_example(row: Mapping[str, Any], schema: pa.Schema) -> bytes:
    """Serialise a row as the tutorial does, value by value; deterministically."""
    features = {}
    for name, value in row.items():
        if value is None:
            continue
        type_ = schema.field(name).type
        kind = feature_kind(type_.value_type if is_array(type_) else type_)
        values = value if is_array(type_) else [value]
        features[name] = FEATURES[kind]([plain(item) for item in values])
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString(deterministic=True)


def plain(value: Any) -> int | float | bytes:
    """What a Python value becomes by the table in docs/types.md."""
    match value:
        case bool():
            return int(value)
        case str():
            return value.encode()
        case decimal.Decimal():
            return float(value)
        case datetime.datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
            return (aware - EPOCH) // datetime.timedelta(microseconds=1)
        case datetime.date():
            return (value - EPOCH.date()).days
        case datetime.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return value


@pytest.fixture(scope="session")
def records_of() -> Callable[..., list[bytes]]:
    """Encode a batch; gives its records, their CRCs checked."""
    return lambda batch, **options: split_records(encode_batch(batch, **options))


@pytest.fixture(scope="session")
def examples_of(records_of) -> Callable[..., list[dict[str, Any]]]:
    """Encode a batch; gives each Example's features as lists."""

    def parse(record: bytes) -> dict[str, Any]:
        features = tf.train.Example.FromString(record).features.feature
        return {name: list(getattr(value, value.WhichOneof("kind")).value) for name, value in features.items()}

    return lambda batch, **options: [parse(record) for record in records_of(batch, **options)]


@pytest.fixture(scope="session")
def tutorial() -> Callable[[pa.RecordBatch], list[bytes]]:
    """Return what a loop over rows with TensorFlow's own classes would have written."""
    return lambda batch: [tutorial_example(row, batch.schema) for row in batch.to_pylist()]
