"""Two ways to take a training's steps with the same callbacks: Keras's `fit`, and a loop of our own.

The loop does by hand what `fit` does: GradientTape in a `tf.function`, several steps per call. It can also add up the
gradients of a batch's parts (`accumulate_steps`), for batches that do not fit in memory at once. Both begin in the
middle of an epoch if need be, and give bit-equal weights on one device.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, TypeAlias

import tensorflow as tf
import tf_keras

from trainer.cluster.strategy import Strategy
from trainer.contract.documents import Training
from trainer.errors import RequestError
from trainer.input.source import Tensors
from trainer.training.batches import Batches, Steps
from trainer.training.keras_internals import FirstStep, mean_loss
from trainer.training.step_control import MOST_STEPS_PER_CALL, LossWatch

_MOST_WHOLE = 1 << 20  # numbers of an embedding: 4 MB

Gradient: TypeAlias = Any
"""A tensor, slices of one, or None."""

Batch = tuple[Any, ...]
"""(inputs, labels) or (inputs, labels, weights)."""


def take_steps(
    model: tf_keras.Model,
    batches: Batches,
    training: Training,
    steps: Steps,
    first_step: int,
    callbacks: Sequence[tf_keras.callbacks.Callback],
) -> None:
    """Train to the end, or until a callback sets `model.stop_training`.

    Args:
        model: Compiled.
        batches: From `first_step` on.
        training: Which loop.
        first_step: Steps done already.
        callbacks: Keras callbacks.
    """
    epoch, done = divmod(first_step, steps.per_epoch)
    if training.loop == "custom":
        _CustomLoop(model, training).take_steps(batches, steps, epoch, done, callbacks)
        return
    model.fit(
        batches,
        epochs=steps.epochs,
        initial_epoch=epoch,
        steps_per_epoch=steps.per_epoch,
        callbacks=[*callbacks, FirstStep(epoch, done)],
        verbose=0,
    )


def require_loop(training: Training, strategy: Strategy) -> None:
    """Check what the loops cannot do.

    Raises:
        RequestError: Names it and the way out.
    """
    if training.loop == "custom" and strategy.is_asynchronous:
        raise RequestError(
            "training.loop custom", "parameter servers", "fit", "Set training.loop to fit, or remove parameter_servers"
        )
    if training.loop == "fit" and training.accumulate_steps > 1:
        raise RequestError(
            "training.accumulate_steps",
            f"{training.accumulate_steps} with loop fit",
            "1",
            "Set training.loop to custom",
        )


def prepare_fit(model: tf_keras.Model, watch: LossWatch) -> None:
    """Let `fit`'s step tell the watch its loss.

    AutoGraph is switched off inside a step: rewriting Keras's own source cost ten seconds before the first step, and
    the layers here have no Python control flow over tensors.
    """
    keras_step = model.train_step

    def train_step(data: Batch) -> dict[str, Any]:
        logs: dict[str, Any] = keras_step(data)
        watch.note_loss(logs["loss"], model.optimizer.iterations)
        return logs

    model.train_step = tf.autograph.experimental.do_not_convert(train_step)
    model.loss_watch = watch


def exchange_at_once(optimizer: tf_keras.optimizers.Optimizer) -> None:
    """Let replicas in lockstep add up all gradients in one exchange.

    Dense ones go together, but each embedding's slices would go alone, with four more exchanges: of a table of some
    thousand numbers that takes longer than the numbers. Adam's steps are the same either way.
    """
    exchange = optimizer.aggregate_gradients

    def aggregate(pairs: Sequence[tuple[Any, tf.Variable]]) -> list[tuple[Any, tf.Variable]]:
        aggregated: list[tuple[Any, tf.Variable]] = exchange([(_whole(gradient, to), to) for gradient, to in pairs])
        return aggregated

    optimizer.aggregate_gradients = aggregate


def _whole(gradient: Gradient, variable: tf.Variable) -> Gradient:
    small = variable.shape.num_elements() <= _MOST_WHOLE
    return tf.convert_to_tensor(gradient) if small and isinstance(gradient, tf.IndexedSlices) else gradient


def _sum(one: tf.Tensor | None, other: tf.Tensor | None) -> tf.Tensor | None:
    """Add two parts of a gradient; None is that of a variable that the loss does not depend on."""
    if one is None or other is None:
        return one if other is None else other
    return one + other


class _CustomLoop:
    """Takes steps without `fit`."""

    def __init__(self, model: tf_keras.Model, training: Training) -> None:
        self._model, self._parts = model, training.accumulate_steps
        self._strategy = model.distribute_strategy
        self._traced_steps = tf.function(self._take_some, reduce_retracing=True)

    def take_steps(
        self, batches: Batches, steps: Steps, epoch: int, done: int, callbacks: Sequence[tf_keras.callbacks.Callback]
    ) -> None:
        """Take all steps."""
        model = self._model
        listeners = tf_keras.callbacks.CallbackList(
            list(callbacks), model=model, epochs=steps.epochs, steps=steps.per_epoch
        )
        model.stop_training = False
        iterator = iter(batches)
        listeners.on_train_begin()
        for number in range(epoch, steps.epochs):
            model.reset_metrics()
            listeners.on_epoch_begin(number)
            while done < steps.per_epoch:
                count = min(int(model.steps_per_execution.numpy()), MOST_STEPS_PER_CALL, steps.per_epoch - done)
                listeners.on_train_batch_begin(done)
                loss = self._traced_steps(iterator, tf.constant(count))
                done += count
                listeners.on_train_batch_end(done - 1, {"loss": loss})
            listeners.on_epoch_end(number, {metric.name: float(metric.result()) for metric in model.metrics})
            done = 0
            if model.stop_training:
                break
        listeners.on_train_end()

    def _take_some(self, iterator: Tensors, count: tf.Tensor) -> tf.Tensor:
        """Take some steps. AutoGraph turns this loop, and nothing inside a step, into one of the graph."""
        step = tf.autograph.experimental.do_not_convert(self._step)
        loss = tf.constant(0.0)
        for _ in tf.range(count):
            losses = self._strategy.run(step, args=(next(iterator),))
            loss = self._strategy.experimental_local_results(losses)[0]
        return loss

    def _step(self, batch: Tensors) -> tf.Tensor:
        """Take one step on one replica; gives the epoch's mean loss so far."""
        model, optimizer = self._model, self._model.optimizer
        pairs = list(zip(self._gradients(tuple(batch)), model.trainable_variables, strict=True))
        optimizer.apply_gradients(pairs)  # sums over the replicas, and only then clips: their sum is what has a norm
        loss = mean_loss(model).result()
        model.loss_watch.note_loss(loss, optimizer.iterations)
        return loss

    def _gradients(self, batch: Batch) -> list[Any]:
        """Return the gradients of the mean loss over a batch, part by part."""
        if self._parts == 1:
            return self._gradients_of(batch)
        rows = tf.shape(batch[1])[0]
        total: list[Any] = []
        for part in range(self._parts):
            start, end = part * rows // self._parts, (part + 1) * rows // self._parts
            share = tf.cast(end - start, tf.float32) / tf.cast(rows, tf.float32)
            gradients = self._gradients_of(tf.nest.map_structure(itemgetter(slice(start, end)), batch))
            scaled = [None if one is None else share * tf.convert_to_tensor(one) for one in gradients]
            total = [_sum(one, other) for one, other in zip(total, scaled, strict=True)] if total else scaled
        return total

    def _gradients_of(self, batch: Batch) -> list[Any]:
        model, optimizer = self._model, self._model.optimizer
        inputs, labels, weights = tf_keras.utils.unpack_x_y_sample_weight(batch)
        scales = isinstance(optimizer, tf_keras.mixed_precision.LossScaleOptimizer)
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)
            loss = model.compute_loss(inputs, labels, logits, weights)
            scaled = optimizer.get_scaled_loss(loss) if scales else loss
        gradients = tape.gradient(scaled, model.trainable_variables)
        return list(optimizer.get_unscaled_gradients(gradients) if scales else gradients)
