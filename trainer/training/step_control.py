"""What happens between calls of TensorFlow inside an epoch: how many steps a call takes, checkpoints, SIGTERM, NaN.

A call runs several steps without Python in between. After each call the processes of a lockstep training agree on what
to do, so that all of them do it after the same step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import tensorflow as tf
import tf_keras

from trainer.cluster.preemption import Interruption
from trainer.cluster.strategy import Strategy
from trainer.contract.documents import Checkpoint
from trainer.errors import Diverged, PeerLost, Preempted
from trainer.training.batches import Steps
from trainer.training.checkpoints import Attached, TrainingState
from trainer.training.keras_internals import mean_loss, take_numbers_as_they_are, wait_for_workers

MOST_STEPS_PER_CALL = 32
_FIRST_STEPS_PER_CALL = 8
_CALL_S = 2.0  # a call should not take longer: SIGTERM is heard after it
_SCHEDULED_CALLS = 8  # with parameter servers: calls under way before the chief waits for them

Logs: TypeAlias = Any
"""A call's numbers by name: tensors, or a handle on them where they are computed elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """What the callbacks of one training share.

    Attributes:
        state: Changed in place.
        checkpoints: Of the model.
        strategy: Of the training.
        steps: Its length.
        rhythm: When to save inside an epoch.
        watch: Knows the first step whose loss was not a number.
        interruption: Raised by SIGTERM.
    """

    state: TrainingState
    checkpoints: Attached
    strategy: Strategy
    steps: Steps
    rhythm: Checkpoint
    watch: LossWatch
    interruption: Interruption = field(default_factory=Interruption)

    def save_state(self) -> None:
        """Save the state; ends when the checkpoint is whole, in every process.

        Raises:
            Diverged: A weight is not a number. The loss may still be one: it is of the weights before the step.
        """
        (broken,) = self.strategy.agree([not self.checkpoints.is_finite()])
        if broken:
            raise self.diverged(self.state.step, "a weight is NaN or infinite", "finite weights")
        self.checkpoints.save_state(self.state)
        self.strategy.agree([0])

    def bad_loss(self, step: int, loss: float = math.nan) -> Diverged:
        """Return the error of a loss that is not a number: of this step, or of the first one that the watch saw."""
        return self.diverged(self.watch.first_bad_step() or step, f"loss is {loss}", "a finite number")

    def diverged(self, step: int, found: str, expected: str) -> Diverged:
        """Return the error of a training that diverged at a step, from 1; it names the last checkpoint."""
        last = self.checkpoints.checkpoints.describe_last(self.state)
        return Diverged(
            f"epoch {(step - 1) // self.steps.per_epoch + 1}, step {step}",
            found,
            expected,
            f"Lower learning_rate, set clip_norm, or look for infinite values in the features. {last}",
        )


class LossWatch:
    """Remembers the first step after which an epoch's mean loss was not a number. Make it in the strategy's scope."""

    def __init__(self) -> None:
        self._step = tf.Variable(
            0, dtype=tf.int64, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
        )

    def note_loss(self, loss: tf.Tensor, step: tf.Tensor) -> None:
        """Look at a step, inside the graph. scalar, scalar."""
        is_first = tf.logical_and(tf.equal(self._step, 0), tf.logical_not(tf.math.is_finite(loss)))
        self._step.assign(tf.where(is_first, tf.cast(step, tf.int64), self._step))

    def first_bad_step(self) -> int:
        """Return that step, from 1; 0: all were numbers."""
        return int(self._step.numpy())


class Pace:
    """Steps per call: few at first, then as many as take two seconds, and never past a step that must be saved.

    Args:
        every_steps: A checkpoint's rhythm, if it has one.
    """

    def __init__(self, every_steps: int | None) -> None:
        self._every_steps = every_steps
        self._steps, self._warm = _FIRST_STEPS_PER_CALL, False
        self._started = time.monotonic()

    def start_call(self) -> None:
        """Begin a call."""
        self._started = time.monotonic()

    def propose_steps(self, steps: int) -> int:
        """Return how many steps the next call should take, after one of `steps` steps."""
        took, self._started = time.monotonic() - self._started, time.monotonic()
        if not self._warm:  # the first call also compiles
            self._warm = True
            return self._steps
        return max(1, min(MOST_STEPS_PER_CALL, 4 * self._steps, int(_CALL_S * steps / max(took, 1e-9))))

    def next_steps(self, done: int, proposed: int) -> int:
        """Return the next call's steps, after `done` steps of the training."""
        self._steps = proposed
        if self._every_steps is None:
            return proposed
        return min(proposed, self._every_steps - done % self._every_steps)

    @property
    def steps(self) -> int:
        """What was proposed last."""
        return self._steps


class CallListener(tf_keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """A callback that hears of each call, and takes its numbers as they are: they may still be computed."""

    def __init__(self) -> None:
        super().__init__()
        take_numbers_as_they_are(self)


class StepEnd(CallListener):
    """Decides after each call. Must come last.

    Args:
        clock: Gives seconds.
    """

    def __init__(self, course: Course, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._course, self._clock = course, clock
        self._pace = Pace(course.rhythm.every_steps)
        self._saved, self._epoch, self._last, self._calls = clock(), 0, 0, 0

    def on_epoch_begin(self, epoch: int, _logs: dict[str, Any] | None = None) -> None:
        """Put back what an unfinished epoch had summed up, and choose the first call's steps."""
        state = self._course.state
        self._epoch, self._last = epoch, state.step % self._course.steps.per_epoch
        if self._last:
            for variable, value in zip(mean_loss(self.model).variables, state.running, strict=True):
                variable.assign(value)
        self.model.steps_per_execution = self._pace.next_steps(state.step, self._pace.steps)
        self._pace.start_call()

    def on_train_batch_end(self, batch: int, _logs: Logs = None) -> None:
        """Look at the loss, save if it is time, stop if the machine goes.

        Raises:
            Diverged: The loss or a weight is not a number.
            Preempted: SIGTERM came; the state is saved.
            PeerLost: It came to another process.
        """
        course, done = self._course, batch + 1
        self._calls += 1
        is_end = done == course.steps.per_epoch
        step = self._epoch * course.steps.per_epoch + done
        if course.strategy.is_asynchronous and not self._settled(step, is_end):
            self.model.steps_per_execution = self._pace.next_steps(step, self._pace.steps)
            return
        bad = course.watch.first_bad_step()
        proposed = self._pace.propose_steps(done - self._last)
        save, stop, bad, proposed = course.strategy.agree(
            [self._is_due(step), course.interruption.asked, bool(bad), proposed if course.strategy.is_chief else 0]
        )
        if bad:
            raise course.bad_loss(step)
        course.state.step, self._last = step, done
        if not is_end and (save or stop):
            self._save_state()
        if stop and not is_end:
            self._end_process()
        self.model.steps_per_execution = self._pace.next_steps(step, proposed)

    def on_epoch_end(self, epoch: int, _logs: dict[str, Any] | None = None) -> None:
        """Stop between epochs if the machine goes.

        Raises:
            Preempted: SIGTERM came; the state is saved.
            PeerLost: It came to another process.
        """
        course = self._course
        self._saved = self._clock()
        (stop,) = course.strategy.agree([course.interruption.asked])
        if stop and not self.model.stop_training and epoch + 1 < course.steps.epochs:
            self._end_process()

    def _end_process(self) -> None:
        """End this process if its machine goes; else begin again beside the one that comes for it."""
        course = self._course
        if not course.interruption.asked:
            raise PeerLost("train", f"another replica ends after step {course.state.step}, and the state is saved")
        raise Preempted(
            "train",
            f"SIGTERM after step {course.state.step}",
            "",
            "The state is saved; started again, it goes on there",
        )

    def _settled(self, step: int, is_end: bool) -> bool:
        """Wait until the workers have done what was scheduled: now and then, and where something is to be done."""
        waits = is_end or self._course.interruption.asked or self._is_due(step)
        if not waits and self._calls % _SCHEDULED_CALLS:
            return False
        wait_for_workers(self.model)
        return True

    def _is_due(self, step: int) -> bool:
        rhythm = self._course.rhythm
        by_steps = rhythm.every_steps is not None and step - self._course.state.step >= 1 and self._passed(step)
        by_time = rhythm.every_seconds is not None and self._clock() - self._saved >= rhythm.every_seconds
        return by_steps or (by_time and self._course.strategy.is_chief)

    def _passed(self, step: int) -> bool:
        every = self._course.rhythm.every_steps or 1
        return step // every > self._course.state.step // every

    def _save_state(self) -> None:
        self._course.state.running = [float(variable.numpy()) for variable in mean_loss(self.model).variables]
        self._course.save_state()
        self._saved = self._clock()
