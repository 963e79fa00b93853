"""Reads groups of shards ahead of their writing, in bounded memory.

Comes in: the shards to write. Goes out: groups of them, each with all its rows. While a group is being written the next
ones' read sessions are opened and at most two record batches are held beyond it. Small shards are read together, so
that a session's start (a second on BigQuery) is paid once for many: up to 65,536 rows and 32 MB. How many bytes a row
has is learned while reading; a group that turns out larger is given up and read in two halves.
"""

from __future__ import annotations

import concurrent.futures
import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from trainer.export.reading.reader import RowReader
from trainer.export.work import Shard

GROUP_ROWS = 65536
GROUP_BYTES = 32 << 20
GROUP_SHARDS = 256
HELD_BATCHES = 2
LARGE_BYTES = 32 << 20  # beyond a larger group only one batch is held
SESSIONS_AHEAD = 4
MAX_STREAMS = 2  # more streams than batches that may be held are of no use
STREAM_BYTES = 16 << 20  # less is not worth a second stream
STREAM_BATCH_BYTES = 4 << 20  # of larger batches only one may be arriving: until it is whole it is there twice

Streams = Sequence[Iterator[pa.RecordBatch]]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Shards of one table that were read together.

    Attributes:
        shards: In the order in which they came.
        batches: All their rows, in any order; empty when there are none.
    """

    shards: tuple[Shard, ...]
    batches: list[pa.RecordBatch] = field(default_factory=list)


@dataclass(frozen=True)
class _Whole:
    """Follows a group's last batch."""

    shards: tuple[Shard, ...]


class _GivenUp:
    """Takes the place of `_Whole` when a group was too large: forget its batches."""


class ReadAhead:
    """Iterates over groups; use it as a context manager, so that its threads end with it.

    Args:
        reader: Rows from where.
        shards: What to read, in this order.
        group_rows: At most so many rows of several shards together.
        group_bytes: At most so many bytes of several shards together.
    """

    def __init__(
        self,
        reader: RowReader,
        shards: Sequence[Shard],
        group_rows: int = GROUP_ROWS,
        group_bytes: int = GROUP_BYTES,
    ) -> None:
        self._reader = reader
        self._waiting = deque(shards)
        self._group_rows, self._group_bytes = group_rows, group_bytes
        self._row_bytes = 0.0  # the most of any group so far; 0: nothing was read yet
        self._batch_bytes = 0  # the most of any batch so far
        self._opened: deque[tuple[tuple[Shard, ...], concurrent.futures.Future[Streams]]] = deque()
        self._slots = threading.Semaphore(HELD_BATCHES)
        self._items: queue.SimpleQueue[pa.RecordBatch | _Whole | _GivenUp | BaseException | None] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._sessions = concurrent.futures.ThreadPoolExecutor(SESSIONS_AHEAD, thread_name_prefix="session")
        self._streams = concurrent.futures.ThreadPoolExecutor(MAX_STREAMS, thread_name_prefix="stream")
        self._feeder = threading.Thread(target=self._feed, name="read-ahead", daemon=True)

    def __enter__(self) -> ReadAhead:
        self._feeder.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        for _ in range(HELD_BATCHES):
            self._slots.release()
        self._sessions.shutdown(wait=False, cancel_futures=True)
        self._feeder.join()
        self._streams.shutdown(wait=True, cancel_futures=True)

    def __iter__(self) -> Iterator[Group]:
        """Yield each group once all its rows are there.

        Raises:
            TrainerError: What reading raised.
        """
        batches: list[pa.RecordBatch] = []
        size, is_large = 0, False
        while (item := self._items.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, pa.RecordBatch):
                batches.append(item)
                size += item.nbytes
                if size > LARGE_BYTES and not is_large:
                    is_large = True  # keep this slot while the group is there
                else:
                    self._slots.release()  # the batch is the group's now, not one that is held ahead
                continue
            whole, batches = batches, []
            if isinstance(item, _Whole):
                yield Group(shards=item.shards, batches=whole)
            del whole
            if is_large:
                self._slots.release()
            size, is_large = 0, False

    def _feed(self) -> None:
        try:
            while not self._ended.is_set() and (self._opened or self._waiting):
                self._open_sessions()
                shards, opened = self._opened.popleft()
                self._read_group(shards, opened.result())
            self._items.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again where the groups are taken
            self._items.put(error)

    def _open_sessions(self) -> None:
        while self._waiting and len(self._opened) < (SESSIONS_AHEAD if self._row_bytes else 1):
            self._opened.append(self._open_session(self._next_group()))

    def _open_session(self, shards: tuple[Shard, ...]) -> tuple[tuple[Shard, ...], concurrent.futures.Future[Streams]]:
        expected = self._row_bytes * sum(shard.rows for shard in shards)
        streams = max(1, min(MAX_STREAMS, round(expected / STREAM_BYTES)))
        if self._batch_bytes > STREAM_BATCH_BYTES:
            streams = 1
        units = [shard.unit for shard in shards]
        return shards, self._sessions.submit(self._reader.open_streams, shards[0].table, units, streams)

    def _next_group(self) -> tuple[Shard, ...]:
        group = [self._waiting.popleft()]
        rows = group[0].rows
        limit = min(self._group_rows, self._group_bytes / self._row_bytes) if self._row_bytes else 0
        while self._waiting and len(group) < GROUP_SHARDS and self._waiting[0].table == group[0].table:
            rows += self._waiting[0].rows
            if rows > limit:
                break
            group.append(self._waiting.popleft())
        return tuple(group)

    def _read_group(self, shards: tuple[Shard, ...], streams: Streams) -> None:
        read = _Read(limit=self._group_bytes if len(shards) > 1 else None)
        if len(streams) == 1:
            self._drain(streams[0], read)
        else:
            for drained in [self._streams.submit(self._drain, stream, read) for stream in streams]:
                drained.result()
        self._batch_bytes = max(self._batch_bytes, read.largest)
        if read.rows:
            self._row_bytes = max(self._row_bytes, read.bytes / read.rows)
        if not read.too_large():
            self._items.put(_Whole(shards))
            return
        self._items.put(_GivenUp())
        half = len(shards) // 2
        self._opened.extendleft([self._open_session(shards[half:]), self._open_session(shards[:half])])

    def _drain(self, stream: Iterator[pa.RecordBatch], read: _Read) -> None:
        """Pass a stream's batches on; each waits for a slot before it is even asked for."""
        try:
            while True:
                self._slots.acquire()
                batch = None if self._ended.is_set() or read.too_large() else next(stream, None)
                if batch is None:
                    self._slots.release()
                    return
                read.add(batch)
                self._items.put(batch)
                del batch
        finally:
            close = getattr(stream, "close", None)  # a generator's: ends what it reads from
            if close is not None:
                close()


class _Read:
    """What the streams of one group gave so far."""

    def __init__(self, limit: int | None) -> None:
        self.rows, self.bytes, self.largest = 0, 0, 0
        self._limit = limit
        self._lock = threading.Lock()

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch."""
        with self._lock:
            self.rows, self.bytes = self.rows + batch.num_rows, self.bytes + batch.nbytes
            self.largest = max(self.largest, batch.nbytes)

    def too_large(self) -> bool:
        """Whether it is to be given up."""
        return self._limit is not None and self.bytes > self._limit
