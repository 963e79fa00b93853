"""What the trainer uses of Keras that is not in its public API, each with the versions that it was seen in.

No other file does; `tests/trainer/training/test_keras_internals.py` fails where a version does not have it any more.
"""

from __future__ import annotations

import random

import tensorflow as tf
import tf_keras


def mean_loss(model: tf_keras.Model) -> tf_keras.metrics.Metric:
    """Return the metric that sums up an epoch's loss: `model.metrics` has it only after the first step.

    tf_keras 2.16 and 2.21: `LossesContainer._total_loss_mean`.
    """
    return model.compiled_loss._total_loss_mean


def wait_for_workers(model: tf_keras.Model) -> None:
    """Return when the workers of parameter servers have done what was scheduled.

    tf_keras 2.16 and 2.21: `Model._cluster_coordinator`, which `fit` makes and gives to nobody.
    """
    model._cluster_coordinator.join()


def take_numbers_as_they_are(callback: tf_keras.callbacks.Callback) -> None:
    """Let a callback have a call's numbers as tensors: else Keras waits for each call to be done.

    tf_keras 2.16 and 2.21: `Callback._supports_tf_logs`, as in its own `ModelCheckpoint`.
    """
    callback._supports_tf_logs = True


def variable_key(optimizer: tf_keras.optimizers.Optimizer, variable: tf.Variable) -> str:
    """Return what an optimizer knows a variable by, also as a part of a distributed one.

    tf_keras 2.16 and 2.21: `Optimizer._var_key`.
    """
    return str(optimizer._var_key(variable))


class FirstStep(tf_keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """Tells `fit` at which step inside the first epoch it begins.

    tf_keras 2.16 and 2.21: `Model._training_state`, as its `BackupAndRestore` sets it.

    Args:
        epoch: To begin with, from 0.
        done: Steps of it that are done.
    """

    def __init__(self, epoch: int, done: int) -> None:
        super().__init__()
        self._epoch, self._done = epoch, done

    def on_train_begin(self, _logs: dict[str, float] | None = None) -> None:
        """Take the place of Keras's own state."""
        self.model._training_state = self

    def maybe_load_initial_counters_from_ckpt(self, *_given: object, **_named: object) -> tuple[int, int]:
        """Return epoch and step, as Keras asks for them."""
        return self._epoch, self._done

    def on_train_end(self, _logs: dict[str, float] | None = None) -> None:
        """Give the place back."""
        self.model._training_state = None


def seed_layers(seed: int) -> None:
    """Let layers draw their seeds from this one, in every version of Python alike.

    Keras asks its seeder for `randint(1, 1e9)`, and Python 3.12 refuses the float.
    tf_keras 2.16 and 2.21: `backend._SEED_GENERATOR`.
    """
    tf_keras.utils.set_random_seed(seed)
    tf_keras.src.backend._SEED_GENERATOR.generator = _WholeNumbers(seed)


class _WholeNumbers(random.Random):
    """Gives what Python 3.11 gave for whole numbers written as floats."""

    def randint(self, a: float, b: float) -> int:
        return super().randint(int(a), int(b))
