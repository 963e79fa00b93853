"""What happens at each epoch's end: validation, early stopping, a lower learning rate, a checkpoint; and log lines.

`training_callbacks` gives all callbacks of a training, in their order.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from trainer.cluster.strategy import Strategy
from trainer.contract.documents import Training
from trainer.input.source import Tensors
from trainer.objective.metrics import Floats
from trainer.objective.outputs import Objective, objective_of
from trainer.training.batches import Steps
from trainer.training.checkpoints import TrainingState
from trainer.training.examples import Examples
from trainer.training.keras_internals import mean_loss
from trainer.training.learning_rate import Rate
from trainer.training.step_control import CallListener, Course, Logs, StepEnd
from trainer.training.tensorboard import TensorBoard
from trainer.training.training_job import TrainingJob
from trainer.training.trial import Measurements

LOGGER = logging.getLogger(__name__)
_LINE_S = 10.0


@contextlib.contextmanager
def training_callbacks(
    job: TrainingJob,
    course: Course,
    examples: Examples,
    end: EpochEnd,
    listeners: Sequence[tf_keras.callbacks.Callback] = (),
) -> Iterator[list[tf_keras.callbacks.Callback]]:
    """Yield a training's callbacks in the order in which they must be called; their files are closed at the end.

    Args:
        end: Called when an epoch has been measured.
        listeners: Called after validation and before the checkpoint.
    """
    request, strategy = job.request, course.strategy
    validation = Validation(
        validation_blocks(job, examples),
        objective_of(request.label, request.auxiliary_labels, job.statistics, request.weight),
        strategy if job.share.count > 1 else None,
        asked=request.trial_metric,
    )
    callbacks: list[tf_keras.callbacks.Callback] = [validation, *listeners]
    with contextlib.ExitStack() as stack:
        if strategy.is_chief:
            options = request.training.callbacks.tensorboard
            board = TensorBoard(request.tensorboard_uri, job.storage, _attempt(course.state), options)
            stack.callback(board.close)
            callbacks += [Progress(course.steps, strategy.is_asynchronous), board]
        callbacks += [
            FirstCall(lambda: LOGGER.info(job.clock.describe_start())),
            end,
            StepEnd(course),
        ]
        yield callbacks


def validation_blocks(job: TrainingJob, examples: Examples) -> tf.data.Dataset:
    """Return the validation split as it is scored: of images no more at a time than in training."""
    images = any(feature.kind == "image" for feature in job.request.features)
    return examples.validation.rebatch(job.request.training.batch_size) if images else examples.validation


def _attempt(state: TrainingState) -> str:
    inside = state.step % state.steps_per_epoch
    return f"from-epoch-{state.epochs_run + 1:05d}" + (f"-step-{inside:06d}" if inside else "")


class Validation(tf_keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """Adds the exact metrics of the validation split to each epoch's numbers, `val_loss` among them. Must come first.

    Args:
        inputs: Blocks of model inputs and labels of the validation split.
        strategy: Whose processes each hold a part of the split; None: this one has all of it.
        asked: A metric to measure beside those that always are.
    """

    def __init__(
        self,
        inputs: tf.data.Dataset,
        objective: Objective,
        strategy: Strategy | None = None,
        asked: str | None = None,
    ) -> None:
        super().__init__()
        self._inputs, self._objective, self._strategy, self._asked = inputs, objective, strategy, asked
        self._logits: Any = None

    def on_train_begin(self, _logs: dict[str, float] | None = None) -> None:
        """Compile the forward pass once."""
        self._logits = tf.function(self._forward, autograph=False, reduce_retracing=True)

    def on_epoch_end(self, _epoch: int, logs: dict[str, float]) -> None:
        """Score the validation split."""
        labels, scores = self.score()
        if len(labels):
            logs.update(self._objective.epoch_metrics(labels, scores, self._asked))

    def score(self) -> tuple[Floats, Floats]:
        """Return targets and what is held against them. [n] or [n, labels], [n] or [n, outputs]."""
        labels, scores = [], []
        for inputs, targets in self._inputs:
            scores.append(self._objective.epoch_scores(self._logits(inputs)).numpy().astype(np.float64))
            labels.append(targets.numpy().astype(np.float64))
        if not labels:
            return np.zeros(0), np.zeros(0)
        if self._strategy is None:
            return np.concatenate(labels), np.concatenate(scores)
        return tuple(self._strategy.gather(tf.constant(np.concatenate(mine))).numpy() for mine in (labels, scores))

    def _forward(self, inputs: Tensors) -> tf.Tensor:
        if self._strategy is None:
            return self.model(inputs, training=False)
        # In replica context nothing is read from other processes, which may score another number of blocks.
        scope = self._strategy.scope
        logits = scope.run(lambda block: self.model(block, training=False), args=(inputs,))
        return scope.experimental_local_results(logits)[0]


class EpochReport(tf_keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """Reports a trial's metric at each epoch's end. Must come after `Validation`.

    Args:
        reports: Whether this process is the one that reports; the others only look.

    Attributes:
        has_measured: Whether an epoch ended, here or before this process.
    """

    def __init__(self, measurements: Measurements, *, reports: bool = True) -> None:
        super().__init__()
        self._measurements, self._reports = measurements, reports
        self.has_measured = False

    def on_epoch_begin(self, epoch: int, _logs: dict[str, float] | None = None) -> None:
        """Note whether the training goes on from a checkpoint."""
        self.has_measured = self.has_measured or epoch > 0

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Report, where the metric is a number."""
        value = logs.get(self._measurements.metric)
        if value is not None and np.isfinite(value) and np.isfinite(logs["loss"]):
            self.has_measured = True
            if self._reports:
                self._measurements.report(float(value), epoch + 1)


class EpochEnd(tf_keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """Keeps the training's state, lowers the learning rate, stops when nothing gets better, and saves a checkpoint.

    The watched metric is `val_loss`, or `loss` without validation examples. Of an epoch that ends before the step
    `kept_steps`, it says nothing: of few validation rows the first epoch can be the best by chance, of a network that
    has learnt nothing yet. Until then the newest epoch is the best one, and nothing is waited for.

    Args:
        training: Whose patience counts.
        rate: Of the optimizer, where it may change.
        kept_steps: Optimizer steps, 0 or more; 0: any epoch may be the best one.
    """

    def __init__(self, course: Course, training: Training, rate: Rate | None, kept_steps: int) -> None:
        super().__init__()
        self._course, self._rate, self._kept_steps = course, rate, kept_steps
        self._patience, self._reduce = training.early_stopping_patience, training.callbacks.reduce_lr

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Update, save, perhaps stop.

        Raises:
            Diverged: The loss or a weight is not a number.
        """
        watched = "val_loss" if "val_loss" in logs else "loss"
        value = float(logs[watched])
        state, steps = self._course.state, self._course.steps
        if not np.isfinite(value) or not np.isfinite(logs["loss"]):
            raise self._course.bad_loss((epoch + 1) * steps.per_epoch, value)
        state.step, state.epochs_run, state.running = (epoch + 1) * steps.per_epoch, epoch + 1, []
        least = min(state.history.get(watched, []), default=float("inf"))
        for name, number in logs.items():
            state.history.setdefault(name, []).append(float(number))
        state.rate_waited = 0 if value < least else state.rate_waited + 1
        if value < state.best_value or state.best_step < self._kept_steps:
            state.best_value, state.best_epoch, state.waited = value, epoch + 1, 0
        else:
            state.waited += 1
        self._lower_rate()
        self._course.save_state()
        if state.should_stop(self._patience):
            self.model.stop_training = True

    def _lower_rate(self) -> None:
        state = self._course.state
        if self._rate and self._reduce and 0 < self._reduce.patience <= state.rate_waited:
            state.rate_factor, state.rate_waited = state.rate_factor * self._reduce.factor, 0
            self._rate.set_factor(state.rate_factor)


class Progress(CallListener):
    """Logs a line per epoch, and inside a long one a line every ten seconds.

        epoch 2/5 step 320/1405 loss=0.4312 12345 examples/s 0:42 left
        epoch 2/5 loss=0.4312 val_auc=0.7031 12345 examples/s

    The time left is that of all epochs, validation not counted.

    Args:
        asynchronous: Whether steps are only scheduled when they are counted here.
        clock: Gives seconds.
    """

    def __init__(self, steps: Steps, asynchronous: bool, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._steps, self._asynchronous, self._clock = steps, asynchronous, clock
        self._start = self._logged = clock()
        self._epoch, self._first = 0, 0

    def on_epoch_begin(self, epoch: int, _logs: dict[str, float] | None = None) -> None:
        """Start the watch."""
        self._epoch, self._first = epoch, -1
        self._start = self._logged = self._clock()

    def on_train_batch_begin(self, batch: int, _logs: Logs = None) -> None:
        """Note where the epoch goes on."""
        if self._first < 0:
            self._first = batch

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Log a line if the last one is old."""
        now, done = self._clock(), batch + 1
        if now - self._logged < _LINE_S or done == self._steps.per_epoch:
            return
        self._logged = now
        per_step = (now - self._start) / (done - self._first)
        left = per_step * (self._steps.total - self._epoch * self._steps.per_epoch - done)
        loss = float(mean_loss(self.model).result() if self._asynchronous else logs["loss"])
        where = f"epoch {self._epoch + 1}/{self._steps.epochs} step {done}/{self._steps.per_epoch}"
        rate, time_left = self._steps.rows_per_step / per_step, f"{left // 60:.0f}:{left % 60:02.0f}"
        LOGGER.info("%s loss=%.4f %.0f examples/s %s left", where, loss, rate, time_left)

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Log the epoch's line."""
        numbers = " ".join(f"{name}={value:.4f}" for name, value in sorted(logs.items()))
        rows = self._steps.rows * (1 - max(self._first, 0) / self._steps.per_epoch)
        rate = rows / max(self._clock() - self._start, 1e-9)
        LOGGER.info("epoch %s/%s %s %.0f examples/s", epoch + 1, self._steps.epochs, numbers, rate)


class FirstCall(CallListener):
    """Calls a function once, after the first steps."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self._call: Callable[[], None] | None = call

    def on_train_batch_end(self, _batch: int, _logs: Logs = None) -> None:
        """Call it."""
        if self._call:
            self._call()
            self._call = None
