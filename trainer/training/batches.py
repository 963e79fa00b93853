"""Batches of a training as its strategy wants them, from any step on.

Comes in: the training split as blocks of model inputs. Goes out: what `fit` or the custom loop iterates over. On one
device that is a `tf.data.Dataset` of (inputs, labels). Replicas in lockstep get (inputs, labels, weights), each its own
rows of the batch that one device would have got: an epoch's last batch is filled up by repeating its rows, and the
weights make the mean over all replicas the mean over the real rows. Workers with parameter servers each read all
examples in an endless order of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import tensorflow as tf
import tf_keras

from trainer.cluster.replica import most_rows
from trainer.cluster.strategy import Strategy
from trainer.contract.documents import ManifestSplit, Training
from trainer.input.pipeline import Blocks, epochs
from trainer.input.source import Share, Tensors
from trainer.input.tracing import traced_plainly
from trainer.training.augmentation import ImageAugmentation
from trainer.training.examples import Examples

_ENDLESS = 1 << 40

Batches: TypeAlias = Any
"""A `tf.data.Dataset`, distributed or not, or Keras's `DatasetCreator`."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """A training's length in steps: one step is one change of the weights.

    Attributes:
        rows: Examples of the training split.
        rows_per_step: Of all replicas together.
        per_epoch: Steps of an epoch.
        epochs: At most.
    """

    rows: int
    rows_per_step: int
    per_epoch: int
    epochs: int

    @property
    def total(self) -> int:
        """Steps of the whole training."""
        return self.per_epoch * self.epochs


def plan_steps(training: Training, split: ManifestSplit, strategy: Strategy, share: Share) -> Steps:
    """Count steps.

    Args:
        share: The part of the split that this process reads.
    """
    per_step = training.batch_size * training.accumulate_steps * strategy.replicas
    most = most_rows(split, share)
    return Steps(
        rows=split.rows, rows_per_step=per_step, per_epoch=-(-most * share.count // per_step), epochs=training.epochs
    )


def training_batches(
    examples: Examples, steps: Steps, first_step: int, seed: int, strategy: Strategy, share: Share
) -> Batches:
    """Return batches from a step on, to the end of the training; images are changed as the training wants it.

    Args:
        first_step: Steps done already.
        seed: With an epoch's number it decides the order.
        share: The part of the split that this process reads.
    """
    order = _Order(source=examples.train, steps=steps, seed=seed, augmentation=examples.augmentation)
    epoch, done = divmod(first_step, steps.per_epoch)
    if strategy.is_asynchronous:
        return tf_keras.utils.experimental.DatasetCreator(
            lambda _context: replace(order, source=examples.rebuild_train(), seed=0).endless()
        )
    if strategy.is_plain:
        return order.changed(order.batches(epoch, done))
    return strategy.scope.distribute_datasets_from_function(
        lambda _context: order.changed(_replica_batches(order, epoch, done, strategy, share))
    )


@dataclass(frozen=True, kw_only=True)
class _Order:
    """Which examples come when, and what becomes of their images.

    Attributes:
        source: The training split.
        steps: The training's.
        seed: With an epoch's number it decides the order.
        augmentation: Changes images; None: nothing does.
    """

    source: Blocks
    steps: Steps
    seed: int
    augmentation: ImageAugmentation | None

    def epochs(self, first: int, last: int, batch_size: int) -> tf.data.Dataset:
        """Return batches of some epochs, with the random numbers that change their images."""
        draw = self.augmentation.draw if self.augmentation else None
        return epochs(self.source, first=first, last=last, batch_size=batch_size, seed=self.seed, draw=draw)

    def batches(self, epoch: int, done: int) -> tf.data.Dataset:
        """Return whole batches, of all replicas together."""
        batches = self.epochs(epoch, self.steps.epochs, self.steps.rows_per_step)
        return batches.skip(done) if done else batches

    def endless(self) -> tf.data.Dataset:
        """Return pass after pass over the examples; where it starts is drawn on the worker that reads."""
        first = tf.random.uniform([], maxval=1 << 30, dtype=tf.int64)
        return self.changed(self.epochs(first, _ENDLESS, self.steps.rows_per_step))

    def changed(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Change the images of the rows that this process takes."""
        return self.augmentation.over(batches) if self.augmentation else batches


@traced_plainly
def _replica_batches(order: _Order, epoch: int, done: int, strategy: Strategy, share: Share) -> tf.data.Dataset:
    """Return the batches of this process's replicas, one after the other."""
    steps, place = order.steps, strategy.share
    per_replica = steps.rows_per_step // strategy.replicas
    here = steps.rows_per_step // place.count  # rows of a step that this process takes
    if share.count > 1:
        batches = _filled_epochs(order, epoch, here, share).skip(done)
    else:
        whole = order.batches(epoch, done)
        batches = whole.map(lambda *batch: _slice(batch, steps.rows_per_step, place.index * here, here))
    return batches.rebatch(per_replica) if here > per_replica else batches


def _slice(batch: tuple[Any, ...], rows: int, start: int, count: int) -> tuple[Any, ...]:
    """Take some rows of a batch that is filled up to a full one, with the weight that each real row then needs."""
    filled = tf.shape(batch[1])[0]
    places = tf.range(start, start + count)
    weights = tf.where(places < filled, rows / tf.cast(filled, tf.float64), 0.0)
    taken = tf.nest.map_structure(lambda tensor: _rows(tensor, places % filled, count), batch)
    return (*taken, tf.cast(weights, tf.float32))


def _filled_epochs(order: _Order, epoch: int, batch_size: int, share: Share) -> tf.data.Dataset:
    """Return as many batches per epoch as every other process gives, whoever has the most examples.

    A process with fewer starts its examples over: their weight in this epoch is a little higher.
    """
    steps = order.steps
    if order.augmentation:
        order = replace(order, augmentation=replace(order.augmentation, place=share.index))

    def one_epoch(number: tf.Tensor) -> tf.data.Dataset:
        return order.epochs(number, number + 1, batch_size).repeat().take(steps.per_epoch)

    def fill(*batch: Tensors) -> tuple[Any, ...]:
        places = tf.range(batch_size) % tf.shape(batch[1])[0]
        taken = tf.nest.map_structure(lambda tensor: _rows(tensor, places, batch_size), batch)
        return (*taken, tf.ones([batch_size]))

    return tf.data.Dataset.range(epoch, steps.epochs).flat_map(one_epoch).map(fill)


def _rows(tensor: tf.Tensor, places: tf.Tensor, count: int) -> tf.Tensor:
    return tf.ensure_shape(tf.gather(tensor, places), [count, *tensor.shape[1:]])
