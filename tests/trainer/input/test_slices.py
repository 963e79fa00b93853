"""Several streams are read at once, in bounded memory, and nothing is left when somebody stops early."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
import tensorflow as tf

from tests.support.storage_read import client_of, storage_read
from trainer.bigquery.streams import TableReader
from trainer.contract.documents import Manifest
from trainer.errors import StorageError
from trainer.input.bigquery import TableSplit
from trainer.input.slices import HELD_PER_STREAM, Slices

INTEGER = tf.io.FixedLenFeature([], tf.int64, default_value=-1)


class Stream:
    """Batches of one row; may break, or wait until it is closed, after so many."""

    def __init__(self, first: int, count: int, then: Exception | None = None, *, waits: bool = False) -> None:
        self.given = 0
        self.closed = threading.Event()
        self._batches = self._read(first, count, then, waits)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    def _read(self, first: int, count: int, then: Exception | None, waits: bool) -> Iterator[pa.RecordBatch]:
        for number in range(first, first + count):
            self.given += 1
            yield pa.record_batch({"x": [number]})
        if then:
            raise then
        if waits:
            assert self.closed.wait(60)

    def close(self) -> None:
        """End it, as the server's answer would."""
        self.closed.set()


def cut(batch: pa.RecordBatch) -> Iterator[int]:
    """Yield its number."""
    yield batch["x"][0].as_py()


def readers() -> list[threading.Thread]:
    """Return the threads that still read."""
    return [thread for thread in threading.enumerate() if thread.name == "read-stream"]


def test_every_slice_of_every_stream_comes_once() -> None:
    with Slices([Stream(0, 50), Stream(50, 50), Stream(100, 0)], cut) as slices:
        assert sorted(slices) == list(range(100))
    assert not readers()


def test_without_streams_there_is_nothing() -> None:
    with Slices([], cut) as slices:
        assert list(slices) == []


def test_a_stream_that_breaks_ends_the_others() -> None:
    waiting = Stream(0, 1, waits=True)
    with (
        pytest.raises(StorageError, match="no answer"),
        Slices([waiting, Stream(5, 1, StorageError("t", "no answer"))], cut) as slices,
    ):
        list(slices)
    assert waiting.closed.is_set()
    assert not readers()


def test_no_stream_is_read_far_ahead_and_all_end_when_nobody_wants_more() -> None:
    streams = [Stream(0, 10_000), Stream(10_000, 10_000)]
    with Slices(streams, cut) as slices:
        iterator = iter(slices)
        for _ in range(10):
            next(iterator)
    assert not readers()
    # Taken, waiting, and one in each thread's hand.
    assert sum(stream.given for stream in streams) <= 10 + (HELD_PER_STREAM + 1) * 2
    assert all(stream.closed.is_set() for stream in streams)


def test_a_data_set_that_is_dropped_ends_its_reading(exported) -> None:
    """By TensorFlow: the generator is closed, the thread ends, and the server is told."""
    manifest: Manifest = exported.manifest()
    rows = pa.table({"distance": pa.array(range(500_000), pa.int64())})
    with storage_read(rows) as server, client_of(server) as client:
        batches = TableSplit("train", manifest, reader=TableReader(client)).batches({"distance": INTEGER})
        iterator = iter(batches)
        assert len(next(iterator)["distance"]) == 100
        assert len(readers()) > 0
        del iterator
        gc.collect()
        assert server.cancelled.wait(60)
        for thread in readers():
            thread.join(60)
    assert not readers()
