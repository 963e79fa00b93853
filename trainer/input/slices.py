"""Slices of rows from several streams at once, in bounded memory.

Comes in: streams of record batches, and what makes slices of one. Goes out: the slices, in the order in which they
become ready. A stream is not read further while enough slices wait; when nobody wants more, all streams are closed and
all threads end.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import pyarrow as pa

from trainer.bigquery.streams import RowStream

HELD_PER_STREAM = 2

Slice = TypeVar("Slice")


class Slices(Generic[Slice]):
    """Iterates over slices; use it as a context manager, so that its threads end with it.

    Args:
        streams: Each is read by a thread of its own.
        cut: Makes slices of a batch; runs in these threads.
    """

    def __init__(self, streams: Sequence[RowStream], cut: Callable[[pa.RecordBatch], Iterator[Slice]]) -> None:
        self._streams, self._cut = streams, cut
        self._slots = threading.Semaphore(HELD_PER_STREAM * len(streams))
        self._items: queue.SimpleQueue[Slice | Exception | None] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._read, args=(stream,), name="read-stream", daemon=True) for stream in streams
        ]

    def __enter__(self) -> Slices[Slice]:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        for stream in self._streams:
            stream.close()
        self._slots.release(max(len(self._threads), 1))  # each may wait for one
        for thread in self._threads:
            thread.join()

    def __iter__(self) -> Iterator[Slice]:
        """Yield each slice once.

        Raises:
            Exception: What a stream raised, or the cutting.
        """
        reading = len(self._threads)
        while reading:
            item = self._items.get()
            if item is None:
                reading -= 1
            elif isinstance(item, Exception):
                raise item
            else:
                self._slots.release()
                yield item

    def _read(self, stream: RowStream) -> None:
        try:
            for batch in stream:
                for piece in self._cut(batch):
                    self._slots.acquire()
                    if self._ended.is_set():
                        return
                    self._items.put(piece)
            self._items.put(None)
        except Exception as error:  # noqa: BLE001 - raised again where the slices are taken
            self._items.put(error)
