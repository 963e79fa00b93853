"""Our exporter as a contender of `make bench-export`, and the floor: what copying, CRC32C and writing cost alone.

Both write over a file that is there already, if it is: a virtual machine's host gives it fresh memory at 0.2 to 2 GB a
second, which would measure the neighbours. The slow contenders write so little that it makes no difference to them.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import google_crc32c

from bench.export_tables import read_batches
from trainer.export.encoding.encode import Encoder
from trainer.export.encoding.tfrecord import write_shard

_COPIED_BYTES = 4 << 20


class Ours:
    """Reads Arrow, encodes, compresses, digests (SHA-256 and CRC32C of the file) and writes.

    Args:
        path: Of the Arrow file.
        rows: So many of it.

    Attributes:
        room: Bytes that the file will have, as far as is known.
        first_batch_s: From the first read to the first records.
    """

    def __init__(self, path: Path, rows: int) -> None:
        self._path, self._rows = path, rows
        self.room = _size(path.with_suffix(".tfrecord"))
        self.first_batch_s = 0.0

    def write(self, path: Path, compression: str) -> None:
        """Write one file."""
        with overwriting(path) as file:
            write_shard(self._records(), file, "GZIP" if compression == "GZIP" else "NONE")

    def _records(self) -> Iterator[Any]:
        start, encoder = time.perf_counter(), None
        for batch in read_batches(self._path, self._rows):
            encoder = encoder or Encoder(batch.schema)
            for records in encoder.encode(batch):
                self.first_batch_s = self.first_batch_s or time.perf_counter() - start
                yield records


class Floor:
    """Copies our finished file, uncompressed, with the CRC32C of its bytes.

    Args:
        path: Of the Arrow file; the finished one stands beside it.
        rows: All.

    Attributes:
        room: Bytes of the file.
    """

    def __init__(self, path: Path, rows: int) -> None:  # noqa: ARG002 - as every writer
        self._path = path.with_suffix(".tfrecord")
        self.room = _size(self._path)

    def write(self, path: Path, compression: str) -> None:  # noqa: ARG002 - as every writer
        """Write one file."""
        crc, room = 0, bytearray(_COPIED_BYTES)
        with self._path.open("rb") as source, overwriting(path) as file:
            while count := source.readinto(room):
                copied = bytes(memoryview(room)[:count])
                crc = google_crc32c.extend(crc, copied)
                file.write(copied)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextlib.contextmanager
def overwriting(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that may be there; what is left of it behind the end goes."""
    with path.open("r+b" if path.exists() else "wb") as file:
        yield file
        file.truncate()


if __name__ == "__main__":
    Ours(Path(sys.argv[1]), int(sys.argv[3])).write(Path(sys.argv[2]), "none")
