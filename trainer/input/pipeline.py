"""From shard files to batches of tensors, in whole batches throughout.

Comes in: files and how to parse them. Goes out: `tf.data.Dataset`s. Each file is batched inside the interleave and
whole batches are parsed (element-wise parallel reads are ten times slower for small records), parsed batches are
regrouped into blocks and cached, and each epoch shuffles the blocks and the rows inside them by seed and epoch number
alone: an epoch's order is the same in a resumed training. Autotune is off: it stalls at the end of an epoch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from trainer.input.source import Order

Tensors = Any  # a nest of tensors that share their first axis

READ_ROWS = 1024
READ_BUFFER_BYTES = 8 << 20
PARALLEL_FILES = 2
_BLOCK_ROWS = 65536
_CACHE_LIMIT_ROWS = 20_000_000
_SHUFFLED_BLOCKS = 8


def in_order(paths: Sequence[str], order: Order) -> tf.data.Dataset:
    """Give the paths, one at a time, in an order that a number (or a scalar tensor) decides; None: as they stand."""
    names = tf.constant(list(paths), tf.string)
    if order is not None:
        seed = tf.stack([tf.cast(order, tf.int64), tf.constant(len(paths), tf.int64)])
        names = tf.random.experimental.stateless_shuffle(names, seed=seed)
    return tf.data.Dataset.from_tensor_slices(names)


def blocks(parsed: tf.data.Dataset, transform: Callable[[Any], Tensors], rows: int) -> tf.data.Dataset:
    """Regroup parsed batches into large blocks of model inputs, kept in memory if they fit."""
    grouped = parsed.map(transform, num_parallel_calls=PARALLEL_FILES, deterministic=True).rebatch(_BLOCK_ROWS)
    return (grouped.cache() if rows <= _CACHE_LIMIT_ROWS else grouped).with_options(options())


def epochs(source: tf.data.Dataset, *, first: int, last: int, batch_size: int, seed: int) -> tf.data.Dataset:
    """Give shuffled batches of several epochs, one after the other; an epoch's last batch may be smaller.

    Args:
        source: Blocks.
        first: First epoch, from 0.
        last: Epoch before which to end.
        batch_size: Rows per batch.
        seed: With the epoch's number it decides the order.
    """

    def permuted(index: tf.Tensor, block: Tensors, epoch: tf.Tensor) -> Tensors:
        rows = tf.shape(tf.nest.flatten(block)[0])[0]
        key = tf.stack([tf.constant(seed, tf.int64) * 1_000_003 + epoch, index])
        order = tf.random.experimental.stateless_shuffle(tf.range(rows), seed=key)
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, order), block)

    def one_epoch(epoch: tf.Tensor) -> tf.data.Dataset:
        shuffled = source.shuffle(_SHUFFLED_BLOCKS, seed=seed + epoch, reshuffle_each_iteration=False)
        return shuffled.enumerate().map(lambda index, block: permuted(index, block, epoch)).rebatch(batch_size)

    numbers = tf.data.Dataset.range(first, last)
    return numbers.flat_map(one_epoch).prefetch(4).with_options(options())


def options() -> tf.data.Options:
    """Give the options of every pipeline here: deterministic, own threads, no autotune."""
    chosen = tf.data.Options()
    chosen.deterministic = True
    chosen.autotune.enabled = False
    chosen.threading.private_threadpool_size = max(os.cpu_count() or 1, 2)
    return chosen
