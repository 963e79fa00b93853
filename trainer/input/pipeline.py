"""From a split's batches to a training's epochs.

Comes in: a split and what turns its columns into model inputs. Goes out: blocks of model inputs, kept in memory when
they fit, and from them every epoch's batches, shuffled by seed and epoch number alone: an epoch's order is the same in
a resumed training and on any machine.

Autotune is off by default, and threads are the pipeline's own. With autotune an iterator may end only at the tuner's
next tick, whose period doubles from 10 ms: stalls of 0.5 to 9 s were measured after the last batch of an epoch; without
it there are none, and on small records it is not slower. `Reading(autotune=True)` is there for pipelines whose steps
differ much in cost (large images on many cores), where a stall per epoch costs less than a wrong number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from trainer.input.source import Dataset, ParseSpec, ShuffleSeed, Split, Tensor, Tensors
from trainer.input.tracing import traced_plainly

READ_ROWS = 1024
READ_BUFFER_BYTES = 1 << 20  # fits a core's cache: 4 % faster than 8 MB
ROW_HASH = "row_hash"
"""The run table's own column that decides the order of rows."""

_FILES = 2  # read at the same time; part of the order, so it does not depend on the machine
_MAX_PARALLEL = 16
_BLOCK_ROWS = 65536
_BLOCK_BYTES = 16 << 20
_LEAST_BLOCK_ROWS = 256
_SHUFFLED_BLOCKS = 8
_TEXT_BYTES = 64  # a guess, where model inputs are text
_EPOCH_STEP = 1_000_003  # keeps the orders of (seed, epoch) and (seed + 1, epoch - 1) apart


Draw: TypeAlias = Callable[[Any, Tensor], Any]
"""From a batch and a seed, int64 [2], to that batch with random numbers."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a pipeline uses the machine.

    Attributes:
        autotune: Let TensorFlow choose the number of threads while it runs.
        threads: Of the pipeline's own pool; default one per core, two at least.
        prefetch: Batches made before they are asked for.
        cache_bytes: Model inputs of at most so much stay in memory after the first pass; more are read, parsed and
            shuffled again in every epoch.
    """

    autotune: bool = False
    threads: int = max(os.cpu_count() or 1, 2)
    prefetch: int = 4
    cache_bytes: int = 4 << 30

    @property
    def files(self) -> dict[str, int]:
        """What `interleave` takes: the files read at the same time, and by how many threads."""
        return {"cycle_length": _FILES, "num_parallel_calls": int(tf.data.AUTOTUNE) if self.autotune else _FILES}

    @property
    def parallel(self) -> int:
        """What `num_parallel_calls` takes."""
        return int(tf.data.AUTOTUNE) if self.autotune else min(self.threads, _MAX_PARALLEL)

    def options(self) -> tf.data.Options:
        """Return the options of a pipeline: always deterministic."""
        chosen = tf.data.Options()
        chosen.deterministic = True
        chosen.autotune.enabled = self.autotune
        if not self.autotune:
            chosen.threading.private_threadpool_size = self.threads
        return chosen


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """A split as blocks of model inputs.

    Attributes:
        plain: In the order of the files, or of the seed.
        of_epoch: Where they are read again in each epoch: gives the blocks with the files in an epoch's order.
    """

    plain: Dataset
    of_epoch: Callable[[ShuffleSeed], Dataset] | None = None


def shuffled_paths(paths: Sequence[str], shuffle_seed: ShuffleSeed) -> Dataset:
    """Return the paths, one at a time, in an order that a number (or a scalar tensor) decides; None: as they stand."""
    names = tf.constant(list(paths), tf.string)
    if shuffle_seed is not None:
        seed = tf.stack([tf.cast(shuffle_seed, tf.int64), tf.constant(len(paths), tf.int64)])
        names = tf.random.experimental.stateless_shuffle(names, seed=seed)
    return tf.data.Dataset.from_tensor_slices(names)


@traced_plainly
def blocks(
    split: Split,
    spec: ParseSpec,
    transform: Callable[[Tensors], Tensors],
    seed: int | None = None,
    reading: Reading | None = None,
) -> Blocks:
    """Regroup a split into large blocks of model inputs, kept in memory if they fit.

    Args:
        spec: Columns that `transform` reads.
        transform: Turns columns into model inputs.
        seed: Shuffles the order of files; default as they stand.
        reading: How to use the machine.
    """
    chosen = reading or Reading()

    def inputs(shuffle_seed: ShuffleSeed) -> Dataset:
        return split.batches(spec, shuffle_seed).map(transform, num_parallel_calls=chosen.parallel, deterministic=True)

    row_bytes = bytes_per_row(inputs(seed).element_spec)
    block_rows = max(_LEAST_BLOCK_ROWS, min(_BLOCK_ROWS, _BLOCK_BYTES // row_bytes))
    if split.rows * row_bytes > chosen.cache_bytes:
        return Blocks(
            plain=inputs(seed).rebatch(block_rows).with_options(chosen.options()),
            of_epoch=None if seed is None else lambda order: inputs(order).rebatch(block_rows),
        )
    whole = inputs(seed) if split.stable else _sorted(split, spec, transform, chosen)
    return Blocks(plain=whole.rebatch(block_rows).cache().with_options(chosen.options()))


@traced_plainly
def epochs(
    source: Blocks,
    *,
    first: int,
    last: int,
    batch_size: int,
    seed: int,
    reading: Reading | None = None,
    draw: Draw | None = None,
) -> Dataset:
    """Return shuffled batches of several epochs, one after the other; an epoch's last batch may be smaller.

    Blocks are shuffled a few at a time, and the rows inside each; where blocks are not in memory, so is the order of
    the files before that.

    Args:
        source: Blocks.
        first: First epoch, from 0.
        last: Epoch before which to end.
        batch_size: Rows per batch.
        seed: With the epoch's number it decides the order.
        reading: How to use the machine.
        draw: Adds random numbers to each batch, by the epoch's seed and the batch's place in the epoch.
    """
    chosen = reading or Reading()

    def permuted(index: Tensor, block: Tensors, epoch: Tensor) -> Tensors:
        rows = _row_count(block)
        key = tf.stack([_epoch_seed(seed, epoch), index])
        permutation = tf.random.experimental.stateless_shuffle(tf.range(rows), seed=key)
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, permutation), block)

    def one_epoch(epoch: Tensor) -> Dataset:
        blocks_of_epoch = source.plain if source.of_epoch is None else source.of_epoch(_epoch_seed(seed, epoch))
        shuffled = blocks_of_epoch.shuffle(_SHUFFLED_BLOCKS, seed=seed + epoch, reshuffle_each_iteration=False)
        batches = shuffled.enumerate().map(lambda index, block: permuted(index, block, epoch)).rebatch(batch_size)
        if draw is None:
            return batches
        return batches.enumerate().map(lambda step, batch: draw(batch, tf.stack([_epoch_seed(seed, epoch), step])))

    numbers = tf.data.Dataset.range(first, last)
    return numbers.flat_map(one_epoch).prefetch(chosen.prefetch).with_options(chosen.options())


def bytes_per_row(element_spec: Tensors) -> int:
    """Return how much memory a row of a batch takes."""
    total = 0
    for tensor in tf.nest.flatten(element_spec):
        values = int(np.prod([size or 1 for size in tensor.shape[1:]], dtype=int))
        total += values * (tensor.dtype.size if tensor.dtype != tf.string else _TEXT_BYTES)
    return max(total, 1)


def _epoch_seed(seed: int, epoch: Tensor) -> Tensor:
    return tf.constant(seed, tf.int64) * _EPOCH_STEP + epoch


def _row_count(tensors: Tensors) -> Tensor:
    return tf.shape(tf.nest.flatten(tensors)[0], tf.int64)[0]


def _sorted(split: Split, spec: ParseSpec, transform: Callable[[Tensors], Tensors], chosen: Reading) -> Dataset:
    """Return a split as one batch in the order of `row_hash`, as files have it, however its rows arrive."""
    hashed_spec = {**spec, ROW_HASH: tf.io.FixedLenFeature([], tf.int64)}

    def keyed(columns: Tensors) -> tuple[Tensor, Tensors]:
        return columns[ROW_HASH], transform({name: columns[name] for name in spec})

    def sort(hashes: Tensor, inputs: Tensors) -> Tensors:
        positions = tf.argsort(hashes, stable=True)
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, positions), inputs)

    rows = split.batches(hashed_spec).map(keyed, num_parallel_calls=chosen.parallel, deterministic=True)
    return rows.rebatch(max(split.rows, 1)).map(sort)
