"""From a split to epochs: an order that seed and epoch decide, in memory or not, and an end without a wait."""

from __future__ import annotations

import contextlib
import time

import numpy as np
import pytest
import tensorflow as tf

from trainer.input.pipeline import ROW_HASH, Blocks, Reading, blocks, bytes_per_row, epochs, shuffled_paths


class Numbers:
    """A split of the numbers below `rows`, in `files` pieces."""

    stable = True

    def __init__(self, rows: int, files: int = 10) -> None:
        self.rows, self._files, self.passes = rows, files, []

    def batches(self, spec, shuffle_seed=None) -> tf.data.Dataset:
        """Return the pieces in the seed's order."""
        self.passes.append(shuffle_seed)
        size = self.rows // self._files
        names = shuffled_paths([str(index) for index in range(self._files)], shuffle_seed)
        starts = names.map(lambda name: tf.strings.to_number(name, tf.int64) * size)
        numbers = starts.flat_map(lambda start: tf.data.Dataset.range(start, start + size).batch(100))
        return numbers.map(lambda number: {"x": number, ROW_HASH: -number})

    def reading(self, spec) -> contextlib.AbstractContextManager[None]:
        """Nothing goes wrong."""
        return contextlib.nullcontext()

    def require_rows(self, rows: int) -> None:
        """All are there."""


class Streams(Numbers):
    """The same in an order that is different each time."""

    stable = False

    def batches(self, spec, shuffle_seed=None) -> tf.data.Dataset:
        """Return the pieces in some order."""
        return super().batches(spec, len(self.passes) + 1)


def twice(columns):
    return columns["x"], columns["x"] * 2


def numbered(count: int) -> Blocks:
    return blocks(Numbers(count), {"x": None}, twice, seed=1)


def streamed(count: int) -> Blocks:
    return blocks(Numbers(count), {"x": None}, twice, seed=1, reading=Reading(cache_bytes=0))


def order_of(dataset: tf.data.Dataset) -> np.ndarray:
    return np.concatenate([x.numpy() for x, _ in dataset])


@pytest.mark.parametrize("make", [numbered, streamed], ids=["in memory", "streamed"])
def test_an_epochs_order_is_decided_by_seed_and_number(make) -> None:
    source = make(1000)
    both = order_of(epochs(source, first=0, last=2, batch_size=64, seed=5))
    assert sorted(both[:1000]) == list(range(1000))
    assert sorted(both[1000:]) == list(range(1000))
    assert not np.array_equal(both[:1000], both[1000:])
    resumed = order_of(epochs(make(1000), first=1, last=2, batch_size=64, seed=5))
    assert np.array_equal(resumed, both[1000:])
    assert not np.array_equal(order_of(epochs(source, first=0, last=1, batch_size=64, seed=6)), both[:1000])


@pytest.mark.parametrize("make", [numbered, streamed], ids=["in memory", "streamed"])
def test_features_and_labels_stay_together_and_batches_end_with_the_epoch(make) -> None:
    sizes = []
    for x, y in epochs(make(1000), first=0, last=2, batch_size=64, seed=5):
        assert np.array_equal(x.numpy() * 2, y.numpy())
        sizes.append(len(x))
    assert sizes == ([64] * 15 + [40]) * 2


def test_what_fits_is_read_once_and_what_does_not_in_every_epoch() -> None:
    split = Numbers(1000)
    source = blocks(split, {"x": None}, twice, seed=1)
    before = len(split.passes)
    order_of(epochs(source, first=0, last=3, batch_size=64, seed=5))
    assert len(split.passes) == before
    assert source.of_epoch is None

    split = Numbers(1000)
    source = blocks(split, {"x": None}, twice, seed=1, reading=Reading(cache_bytes=1000 * 16 - 1))
    assert source.of_epoch is not None
    order_of(epochs(source, first=0, last=3, batch_size=64, seed=5))
    assert tf.is_tensor(split.passes[-1])  # an epoch's own order of files


def test_rows_that_arrive_in_any_order_are_sorted_by_their_hash() -> None:
    split = Streams(1000)
    source = blocks(split, {"x": None}, twice, seed=1)
    assert order_of(source.plain).tolist() == list(range(999, -1, -1))  # the hash of x is -x
    again = order_of(epochs(blocks(Streams(1000), {"x": None}, twice), first=0, last=1, batch_size=64, seed=5))
    assert np.array_equal(again, order_of(epochs(source, first=0, last=1, batch_size=64, seed=5)))


def test_rows_memory_is_counted_by_shape_and_type() -> None:
    spec = {
        "pixels": tf.TensorSpec([None, 8, 8, 3], tf.uint8),
        "numbers": tf.TensorSpec([None, 10], tf.float32),
        "label": tf.TensorSpec([None], tf.float32),
    }
    assert bytes_per_row(spec) == 8 * 8 * 3 + 40 + 4


def test_wide_rows_make_small_blocks() -> None:
    wide = blocks(Numbers(1000), {"x": None}, lambda columns: tf.zeros([tf.size(columns["x"]), 1 << 20], tf.uint8))
    sizes = [len(block) for block in wide.plain.take(2)]
    assert max(sizes) <= 256


def test_autotune_is_off_unless_asked_for() -> None:
    assert Reading().options().autotune.enabled is False
    assert Reading().options().threading.private_threadpool_size >= 2
    asked = Reading(autotune=True)
    assert asked.options().autotune.enabled is True
    assert asked.parallel == tf.data.AUTOTUNE


def test_an_epoch_ends_without_a_wait() -> None:
    """The iterator says that it is at its end within a tenth of a second of the last batch; the quickest of five."""
    waits = []
    for _ in range(5):
        iterator = iter(epochs(numbered(20_000), first=0, last=1, batch_size=512, seed=1))
        for _ in range(-(-20_000 // 512)):
            next(iterator)
        before = time.monotonic()
        with pytest.raises(StopIteration):
            next(iterator)
        waits.append(time.monotonic() - before)
    assert min(waits) < 0.1
