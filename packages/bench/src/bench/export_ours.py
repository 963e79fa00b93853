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
from typing import IO, Literal

import google_crc32c
import pyarrow as pa

from bench.export_tables import read_batches
from bench.input_files import make_request
from trainer.cluster.replica import Replica
from trainer.contract.documents import ExportRequest, ShardLayout
from trainer.export.encoding.formats import BytesLike, TfRecordFormat
from trainer.export.progress import Progress
from trainer.export.work import Shard, Unit
from trainer.export.writer import ShardWriter
from trainer.storage import Storage

_COPIED_BYTES = 4 << 20


class Ours:
    """Writes as an export job does: encodes, compresses, digests (SHA-256 and CRC32C of the file), in its threads.

    Args:
        path: Of the Arrow file.

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
        kind: Literal["GZIP", "NONE"] = "GZIP" if compression == "GZIP" else "NONE"
        timed = _TimedFormat(make_request({}, ShardLayout(), kind, "tfrecord"), path.suffix)
        unit = Unit(span="bench", part="train", shard=0)
        shard = Shard(unit=unit, table="bench", uri=str(path), rows=self._rows, exact=True)
        with ShardWriter(timed, kind, _Kept(), _OneFile(), Progress(Replica())) as writer:  # type: ignore[arg-type]  # what it needs of them
            writer.write(shard, _Read(self._path, self._rows))  # type: ignore[arg-type]
        self.first_batch_s = timed.first_batch_s


class _TimedFormat(TfRecordFormat):
    """Notes when the first records are there."""

    def __init__(self, request: ExportRequest, suffix: str) -> None:
        super().__init__(request, suffix, Storage())
        self._start = time.perf_counter()
        self.first_batch_s = 0.0

    def encode(self, batch: pa.RecordBatch) -> Iterator[BytesLike]:
        """Return whole records."""
        for records in super().encode(batch):
            self.first_batch_s = self.first_batch_s or time.perf_counter() - self._start
            yield records


class _Read:
    """Rows as they lie in an Arrow file, in the place of sorted ones."""

    def __init__(self, path: Path, rows: int) -> None:
        self._path, self._rows = path, rows

    def __len__(self) -> int:
        return self._rows

    def pieces(self, multiple: int) -> Iterator[pa.RecordBatch]:
        """Return the batches; each row is a record (`multiple` is 1)."""
        del multiple
        return read_batches(self._path, self._rows)


class _OneFile:
    """Storage whose only file is written over."""

    @staticmethod
    def scratch(uri: str) -> contextlib.AbstractContextManager[IO[bytes]]:
        """Open it."""
        return overwriting(Path(uri))


class _Kept:
    """A span store that leaves a finished file where it is."""

    def publish(self, *_: object) -> None:
        """Do nothing."""


class Floor:
    """Copies our finished file, uncompressed, with the CRC32C of its bytes.

    Args:
        path: Of the Arrow file; the finished one stands beside it.

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
