"""Groups come whole and in order, ahead of need, and little is held."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.errors import StorageError
from trainer.export.reading.read_ahead import HELD_BATCHES, ReadAhead
from trainer.export.work import Shard, Unit

ROW_BYTES = 8


def make_shards(rows: Sequence[int], table: str = "p.d.t") -> list[Shard]:
    return [
        Shard(
            unit=Unit(span="2024-01-01", part="train", shard=index),
            table=table,
            uri=f"/{index}",
            rows=count,
            exact=True,
        )
        for index, count in enumerate(rows)
    ]


class Rows:
    """Gives rows that name their shard, some in each of two streams; counts what it gave and was asked."""

    def __init__(self, rows: Sequence[int], batch_rows: int = 10, streams: int = 1) -> None:
        self.rows, self.batch_rows, self.streams = list(rows), batch_rows, streams
        self.given, self.asked, self.wanted_streams = 0, [], []
        self.lock = threading.Lock()

    def open_streams(self, _table: str, units: Sequence[Unit], streams: int) -> list[Iterator[pa.RecordBatch]]:
        """Start reading."""
        with self.lock:
            self.asked.append([unit.shard for unit in units])
            self.wanted_streams.append(streams)
        numbers = [unit.shard for unit in units for _ in range(self.rows[unit.shard])]
        return [self.stream(numbers[start :: self.streams]) for start in range(self.streams)]

    def stream(self, numbers: list[int]) -> Iterator[pa.RecordBatch]:
        """Yield one of the streams."""
        for start in range(0, len(numbers), self.batch_rows):
            with self.lock:
                self.given += 1
            yield pa.record_batch({"shard": pa.array(numbers[start : start + self.batch_rows], pa.int64())})


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 60), max_size=30),
    st.integers(1, 100),
    st.integers(8, 600),
    st.integers(1, 3),
    st.booleans(),
)
def test_every_shard_comes_once_in_order_with_all_its_rows(
    rows: list[int], group_rows: int, group_bytes: int, streams: int, lies: bool
) -> None:
    """Also when a shard has more rows than was said, so that a group must be given up and read in halves."""
    reader = Rows([count * 3 if lies else count for count in rows], streams=streams)
    shards = make_shards(rows)
    with ReadAhead(reader, shards, group_rows, group_bytes) as groups:
        found = []
        for group in groups:
            numbers = [number for batch in group.batches for number in batch["shard"].to_pylist()]
            assert sorted(numbers) == [
                shard.unit.shard for shard in group.shards for _ in range(reader.rows[shard.unit.shard])
            ]
            if len(group.shards) > 1:
                assert len(numbers) * ROW_BYTES <= group_bytes
            found += group.shards
    assert found == shards


def test_small_shards_are_read_together_and_large_ones_alone() -> None:
    reader = Rows([20, 20, 20, 20, 500, 20, 20])
    with ReadAhead(reader, make_shards(reader.rows), group_rows=60) as groups:
        found = [[shard.unit.shard for shard in group.shards] for group in groups]
    assert found == [[0], [1, 2, 3], [4], [5, 6]]


def test_shards_of_two_tables_are_not_read_together() -> None:
    reader = Rows([5, 5, 5, 5])
    shards = [*make_shards(reader.rows[:3]), *make_shards(reader.rows, "p.d.golden")[3:]]
    with ReadAhead(reader, shards) as groups:
        assert [[shard.unit.shard for shard in group.shards] for group in groups] == [[0], [1, 2], [3]]


@pytest.mark.parametrize("streams", [1, 2])
def test_at_most_two_batches_are_held_beyond_the_group(streams: int) -> None:
    reader = Rows([100] * 6, streams=streams)
    with ReadAhead(reader, make_shards(reader.rows), group_rows=100) as groups:
        for number, _group in enumerate(groups, 1):
            settle = threading.Event()
            settle.wait(0.05)  # long enough to read too much, if nothing held it back
            assert reader.given <= number * 10 + HELD_BATCHES


def test_sessions_are_opened_ahead() -> None:
    """A session takes a second on the real service, a small group is encoded in a tenth of that."""
    reader = Rows([100] * 10)
    with ReadAhead(reader, make_shards(reader.rows), group_rows=100) as groups:
        iterator = iter(groups)
        next(iterator)
        next(iterator)
        threading.Event().wait(0.05)
        assert len(reader.asked) >= 5


def test_large_groups_ask_for_several_streams() -> None:
    reader = Rows([10, 100])
    shards = make_shards([10, 5_000_000])
    with ReadAhead(reader, shards) as groups:
        list(groups)
    assert reader.wanted_streams == [1, 2]


@pytest.mark.parametrize("at", [0, 1, 3])
def test_what_reading_raises_comes_out(at: int) -> None:
    class Broken(Rows):
        def open_streams(self, table, units, streams):
            if units[0].shard >= at:
                raise StorageError(table, "gone")
            return super().open_streams(table, units, streams)

    with ReadAhead(Broken([100] * 6), make_shards([100] * 6), group_rows=100) as groups, pytest.raises(StorageError):
        list(groups)


def test_leaving_early_ends_the_threads_and_the_streams() -> None:
    closed = threading.Event()

    class Watched(Rows):
        def stream(self, numbers):
            try:
                yield from super().stream(numbers)
            finally:
                closed.set()

    before = threading.active_count()
    with ReadAhead(Watched([1000] * 3), make_shards([1000] * 3), group_rows=100) as groups:
        next(iter(groups))
    assert closed.wait(5)
    assert threading.active_count() <= before + 4  # idle session threads end by themselves
