"""A whole shard file in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any, Literal

from trainer.export.encoding.tfrecord import FileDigest, ShardFile


def write_shard(buffers: Iterable[Any], file: IO[bytes], compression: Literal["GZIP", "NONE"]) -> FileDigest:
    """Write records, as `Encoder.encode` gives them, to an empty file, and return its digest."""
    shard = ShardFile(file, compression)
    for buffer in buffers:
        shard.write(buffer)
    return shard.finish()
