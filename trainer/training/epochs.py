"""A training's epochs: from a built model to the best epoch's weights, through any interruption.

Comes in: model, examples, strategy. Goes out: the training's state, and the best weights in the model.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import tensorflow as tf
import tf_keras

from trainer.cluster.preemption import Interruption
from trainer.cluster.strategy import Strategy, naming_lost_peers
from trainer.contract.documents import TrainRequest
from trainer.contract.reading import digest
from trainer.input.source import Share
from trainer.objective.labels import labels_of
from trainer.storage import Storage
from trainer.telemetry.timing import Clock
from trainer.training.batches import Steps, training_batches
from trainer.training.callbacks import EpochEnd, FirstCall, Progress, Validation
from trainer.training.checkpoints import Attached, Checkpoints, TrainingState
from trainer.training.examples import Examples
from trainer.training.learning_rate import Rate
from trainer.training.step_control import Course, StepEnd
from trainer.training.steps import take_steps
from trainer.training.tensorboard import TensorBoard


@dataclass(frozen=True)
class Fit:
    """A training that is ready to begin or to go on.

    Attributes:
        request: What to train.
        model: Compiled.
        rate: Of its optimizer, where it may change.
        examples: What to train on.
        steps: How long.
        strategy: How it is spread.
        share: The part of each split that this process reads.
        storage: Where checkpoints are.
        say: Takes lines of progress.
        clock: Told of the first steps.
        listeners: Called at each epoch's end, after validation and before the checkpoint.
    """

    request: TrainRequest
    model: tf_keras.Model
    rate: Rate | None
    examples: Examples
    steps: Steps
    strategy: Strategy
    share: Share
    storage: Storage
    say: Callable[[str], None]
    clock: Clock
    listeners: tuple[tf_keras.callbacks.Callback, ...] = ()

    def run(self, finished: TrainingState | None = None) -> tuple[TrainingState, TrainingState | None]:
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
        training, examples = self.request.training, self.examples
        read = f"{examples.train_rows} examples, {examples.validation_rows} to validate"
        self.say(f"train: {read}, strategy {self.strategy.name}, {self.strategy.replicas} replicas")
        checkpoints = Checkpoints(self.request.checkpoint_uri, self.storage, self.say).attach(
            self.model, writes=self.strategy.is_chief, io_device=self.strategy.io_device
        )
        start = TrainingState(
            request_sha256=digest(self.request),
            strategy=finished.strategy if finished else self.strategy.name,
            replicas=finished.replicas if finished else self.strategy.replicas,
            steps_per_epoch=self.steps.per_epoch,
        )
        found = checkpoints.restore_newest(start)
        state, resumed = found or start, dataclasses.replace(found) if found else None
        if resumed:
            self.say(_going_on(state))
        if self.rate:
            self.rate.set_factor(state.rate_factor)
        if not state.is_over(training.epochs, training.early_stopping_patience):
            self._take_steps(checkpoints, state)
        if state.best_epoch != state.epochs_run:
            checkpoints.restore(state.best_step)
        return state, resumed

    def _take_steps(self, checkpoints: Attached, state: TrainingState) -> None:
        training, interruption = self.request.training, Interruption()
        course = Course(
            state=state,
            checkpoints=checkpoints,
            strategy=self.strategy,
            steps=self.steps,
            rhythm=training.checkpoint,
            interruption=interruption,
            watch=self.model.loss_watch,
        )
        callbacks: list[tf_keras.callbacks.Callback] = [
            Validation(
                self._validation(), labels_of(self.request.label), self.strategy if self.share.count > 1 else None
            ),
            *self.listeners,
        ]
        with contextlib.ExitStack() as stack:
            if self.strategy.is_chief:
                board = TensorBoard(
                    self.request.tensorboard_uri, self.storage, _attempt(state), training.callbacks.tensorboard
                )
                stack.callback(board.close)
                callbacks += [Progress(self.steps, self.strategy.is_asynchronous, self.say), board]
            callbacks += [
                FirstCall(lambda: self.say(self.clock.describe_start())),
                EpochEnd(course, training, self.rate),
                StepEnd(course),
            ]
            seed = self.request.seed
            batches = training_batches(self.examples, self.steps, state.step, seed, self.strategy, self.share)
            stack.enter_context(interruption.listening())
            stack.enter_context(naming_lost_peers(self.strategy.is_alone, lambda: state.step))
            take_steps(self.model, batches, training, self.steps, state.step, callbacks)

    def _validation(self) -> tf.data.Dataset:
        """Give the validation split as it is scored: of images no more at a time than in training."""
        images = any(feature.kind == "image" for feature in self.request.features)
        validation = self.examples.validation
        return validation.rebatch(self.request.training.batch_size) if images else validation


def find_finished(request: TrainRequest, storage: Storage) -> TrainingState | None:
    """Give the state of this training if it was interrupted after its last step: the others may be gone by now."""
    state = Checkpoints(request.checkpoint_uri, storage).newest_state()
    if state is None or state.request_sha256 != digest(request):
        return None
    return state if state.is_over(request.training.epochs, request.training.early_stopping_patience) else None


def _going_on(state: TrainingState) -> str:
    inside = state.step % state.steps_per_epoch
    after = f"after epoch {state.epochs_run}"
    return f"train: goes on {after}, step {inside} of the next one" if inside else f"train: goes on {after}"


def _attempt(state: TrainingState) -> str:
    inside = state.step % state.steps_per_epoch
    return f"from-epoch-{state.epochs_run + 1:05d}" + (f"-step-{inside:06d}" if inside else "")
