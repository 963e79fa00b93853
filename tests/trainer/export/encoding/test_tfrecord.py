"""Shard files: what TensorFlow reads back, and digests that are true."""

from __future__ import annotations

import base64
import gzip
import hashlib
from pathlib import Path

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from tests.trainer.export.encoding.shard_files import write_shard
from trainer.export.encoding.encode import Encoder
from trainer.export.encoding.tfrecord import header_crcs

BATCH = pa.record_batch({"x": pa.array(range(3000)), "text": pa.array([f"row {index}" for index in range(3000)])})


@pytest.mark.parametrize("compression", ["GZIP", "NONE"])
def test_tensorflow_reads_the_file_and_the_digests_are_those_of_its_bytes(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "shard"
    with path.open("wb") as file:
        digest = write_shard(Encoder(BATCH.schema).encode(BATCH), file, compression)
    content = path.read_bytes()
    assert digest.bytes == len(content)
    assert digest.sha256 == hashlib.sha256(content).hexdigest()
    assert digest.crc32c == base64.b64encode(google_crc32c.value(content).to_bytes(4, "big")).decode()
    records = tf.data.TFRecordDataset(str(path), compression if compression == "GZIP" else "")
    values = [
        tf.train.Example.FromString(record.numpy()).features.feature["x"].int64_list.value[0] for record in records
    ]
    assert values == list(range(3000))


def test_a_gzip_header_has_no_time_and_no_name(tmp_path: Path) -> None:
    with (tmp_path / "shard").open("wb") as file:
        write_shard(Encoder(BATCH.schema).encode(BATCH), file, "GZIP")
    content = (tmp_path / "shard").read_bytes()
    assert content[:8] == b"\x1f\x8b\x08\x00" + bytes(4)
    assert len(gzip.decompress(content)) > len(content)


@pytest.mark.parametrize("compression", ["GZIP", "NONE"])
def test_a_shard_without_rows_has_no_records(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "shard"
    with path.open("wb") as file:
        digest = write_shard([], file, compression)
    assert digest.bytes == path.stat().st_size
    assert list(tf.data.TFRecordDataset(str(path), compression if compression == "GZIP" else "")) == []


def test_header_crcs_equal_crcs_one_by_one() -> None:
    lengths = np.array([0, 1, 255, 256, 65535, 70000, 2**24 + 3, 2**31 - 1])
    for length, crc in zip(lengths.tolist(), header_crcs(lengths).tolist(), strict=True):
        plain = google_crc32c.value(length.to_bytes(8, "little"))
        assert crc == (((plain >> 15) | (plain << 17)) + 0xA282EAD8) & 0xFFFFFFFF
