"""Makes files of sorted rows and hands them to the span store, in bounded memory.

Comes in: a shard and its rows in file order. Goes out: the shard in the store, its sidecar beside it, and a line of
progress. The caller's thread gathers and encodes, a few megabytes at a time; a second one compresses and digests into
an unnamed file on disk; others upload finished files. Each goes on with the next shard while the last is on its way.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from trainer.export.encoding.formats import BytesLike, ShardFormat
from trainer.export.encoding.tfrecord import FileDigest, ShardFile
from trainer.export.memory import Room
from trainer.export.progress import Progress
from trainer.export.reading.sorting import SortedRows
from trainer.export.span_store import SpanStore, changed_rows
from trainer.export.work import Shard
from trainer.storage import Storage, room_for

ENCODED_BYTES = 4 << 20  # made and not yet compressed
UPLOADS = 4
UPLOADED_BYTES = 24 << 20  # in the client's memory: of a file up to 8 MB twice its size, of a larger one less
_LEAST_BYTES, _MOST_BYTES = 4 << 20, 16 << 20  # what a file counts at least and at most


@dataclass(kw_only=True)
class _Open:
    """A shard whose file is being written."""

    shard: Shard
    rows: int
    scratch: IO[bytes]
    file: ShardFile
    closing: contextlib.ExitStack


class ShardWriter:
    """Writes shards; use it as a context manager: it ends when all of them are stored.

    Args:
        shard_format: What the files are made of.
        compression: GZIP or NONE.
        store: Where they go.
        storage: Gives scratch files.
        progress: Hears what is finished.
    """

    def __init__(
        self, shard_format: ShardFormat, compression: str, store: SpanStore, storage: Storage, progress: Progress
    ) -> None:
        self._format, self._compression = shard_format, compression
        self._store, self._storage, self._progress = store, storage, progress
        self._compressing = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="compress")
        self._uploading = concurrent.futures.ThreadPoolExecutor(UPLOADS, thread_name_prefix="upload")
        self._encoded, self._uploaded = Room(ENCODED_BYTES), Room(UPLOADED_BYTES)
        self._error: BaseException | None = None

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        failed = kind is not None
        if failed:
            self._fail(InterruptedError())
        self._compressing.shutdown(wait=True, cancel_futures=failed)
        self._uploading.shutdown(wait=True, cancel_futures=failed)
        if not failed:
            self._raise_error()

    def write(self, shard: Shard, rows: SortedRows) -> None:
        """Make the shard; it is stored some time later.

        Raises:
            DataError: The shard does not have the request's rows; or an earlier one is stored with other bytes.
            StorageError: The disk is full, or storage did not take an earlier shard.
        """
        if shard.exact and len(rows) != shard.rows:
            raise changed_rows(shard.table, shard.unit.span, shard.unit.part, len(rows), shard.rows)
        closing = contextlib.ExitStack()
        scratch = closing.enter_context(self._storage.scratch(shard.uri))
        opened = _Open(
            shard=shard,
            rows=len(rows),
            scratch=scratch,
            file=ShardFile(scratch, self._compression),
            closing=closing,
        )
        self._append(opened, self._format.head())
        for piece in rows.pieces(self._format.multiple):
            for buffer in self._format.encode(piece):
                self._append(opened, buffer)
        self._compressing.submit(self._or_fail, self._finish, opened)

    def _append(self, opened: _Open, buffer: BytesLike) -> None:
        size = memoryview(buffer).nbytes
        self._encoded.take(size)
        self._raise_error()
        self._compressing.submit(self._or_fail, self._compress, opened, buffer, size)

    def _compress(self, opened: _Open, buffer: BytesLike, size: int) -> None:
        try:
            with room_for(opened.shard.uri):
                opened.file.write(buffer)
        finally:
            self._encoded.give(size)

    def _finish(self, opened: _Open) -> None:
        with room_for(opened.shard.uri):
            digest = opened.file.finish()
        size = min(max(2 * digest.bytes, _LEAST_BYTES), _MOST_BYTES)
        self._uploaded.take(size)
        self._uploading.submit(self._or_fail, self._publish, opened, digest, size)

    def _publish(self, opened: _Open, digest: FileDigest, size: int) -> None:
        try:
            with opened.closing:
                self._store.publish(opened.shard, opened.scratch, opened.rows, digest)
        finally:
            self._uploaded.give(size)
        self._progress.add(opened.rows, digest.bytes)

    def _or_fail(self, step: Callable[..., None], *arguments: object) -> None:
        """Run a step of another thread; what it raises is raised in the caller's."""
        if self._error is None:
            try:
                step(*arguments)
            except BaseException as error:  # noqa: BLE001 - raised again by the next call
                self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._encoded.open()
        self._uploaded.open()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error
