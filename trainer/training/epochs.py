"""A training's epochs: from a built model to the best epoch's weights, through any interruption.

Comes in: model, examples, strategy. Goes out: the training's state, and the best weights in the model.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from dataclasses import dataclass

import tf_keras

from trainer.cluster.strategy import Strategy, naming_lost_peers
from trainer.training.batches import Steps, training_batches
from trainer.training.callbacks import EpochEnd, training_callbacks
from trainer.training.checkpoints import Attached, Checkpoints, TrainingState
from trainer.training.examples import Examples
from trainer.training.learning_rate import Rate
from trainer.training.step_control import Course
from trainer.training.steps import take_steps
from trainer.training.training_job import TrainingJob

LOGGER = logging.getLogger(__name__)
LEAST_STEPS = 100
"""Optimizer steps of a training from nothing before which no epoch is the best one."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A training that is ready to begin or to go on.

    Attributes:
        job: The training.
        model: Compiled.
        rate: Of its optimizer, where it may change.
        examples: What to train on.
        steps: How long.
        strategy: How it is spread.
        kept_steps: Optimizer steps before which the newest epoch is the best one, whatever the validation split says.
        listeners: Called at each epoch's end, after validation and before the checkpoint.
    """

    job: TrainingJob
    model: tf_keras.Model
    rate: Rate | None
    examples: Examples
    steps: Steps
    strategy: Strategy
    kept_steps: int = LEAST_STEPS
    listeners: tuple[tf_keras.callbacks.Callback, ...] = ()

    def train_epochs(self, finished: TrainingState | None = None) -> tuple[TrainingState, TrainingState | None]:
        """Train from the newest checkpoint on; leaves the best epoch's weights in the model.

        Args:
            finished: The state of a training that only has to be stored.

        Returns:
            The state at the end, and a copy of the one that it was resumed from.

        Raises:
            Preempted: SIGTERM came; the state is saved.
            PeerLost: Another replica goes away.
            Diverged: The loss is not a number.
        """
        request, strategy, examples = self.job.request, self.strategy, self.examples
        read = f"{examples.train_rows} examples, {examples.validation_rows} to validate"
        LOGGER.info("train: %s, strategy %s, %s replicas", read, strategy.name, strategy.replicas)
        io_device = strategy.io_device
        checkpoints = Checkpoints(request.checkpoint_uri, self.job.storage).attach(
            self.model, writes=strategy.is_chief, io_device=io_device
        )
        start = TrainingState.of(
            request,
            strategy=finished.strategy if finished else strategy.name,
            replicas=finished.replicas if finished else strategy.replicas,
            steps_per_epoch=self.steps.per_epoch,
        )
        restored = checkpoints.restore_newest(start)
        state, resumed = restored or start, dataclasses.replace(restored) if restored else None
        if resumed:
            LOGGER.info(_going_on(state))
        if self.rate:
            self.rate.set_factor(state.rate_factor)
        if not state.is_over(request.training.epochs, request.training.early_stopping_patience):
            self._take_steps(checkpoints, state)
        if state.best_epoch != state.epochs_run:
            checkpoints.restore(state.best_step)
        return state, resumed

    def _take_steps(self, checkpoints: Attached, state: TrainingState) -> None:
        job, training, strategy = self.job, self.job.request.training, self.strategy
        batches = training_batches(self.examples, self.steps, state.step, job.request.seed, strategy, job.share)
        course = Course(
            state=state,
            checkpoints=checkpoints,
            strategy=strategy,
            steps=self.steps,
            rhythm=training.checkpoint,
            watch=self.model.loss_watch,
        )
        with contextlib.ExitStack() as stack:
            end = EpochEnd(course, training, self.rate, self.kept_steps)
            callbacks = stack.enter_context(training_callbacks(job, course, self.examples, end, self.listeners))
            stack.enter_context(course.interruption.listening())
            stack.enter_context(naming_lost_peers(strategy.is_alone, lambda: state.step))
            take_steps(self.model, batches, training, self.steps, state.step, callbacks)


def _going_on(state: TrainingState) -> str:
    inside = state.step % state.steps_per_epoch
    after = f"after epoch {state.epochs_run}"
    return f"train: goes on {after}, step {inside} of the next one" if inside else f"train: goes on {after}"
