"""What happens after each epoch: validation, early stopping, checkpoint, TensorBoard, one line in the log."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from trainer.checkpoints import Checkpoints, TrainingState
from trainer.errors import DataError
from trainer.labels import Labels
from trainer.metrics import Floats
from trainer.storage import Storage


class Validation(tf_keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """Adds the exact metrics of the validation split to each epoch's numbers, `val_loss` among them. Must come first.

    Args:
        inputs: Blocks of model inputs and labels of the validation split.
        labels: Kind of label.
    """

    def __init__(self, inputs: tf.data.Dataset, labels: Labels) -> None:
        super().__init__()
        self._inputs, self._labels = inputs, labels
        self._logits: Any = None

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:  # noqa: ARG002 - Keras's signature
        """Compile the forward pass once."""
        self._logits = tf.function(
            lambda inputs: self.model(inputs, training=False), autograph=False, reduce_retracing=True
        )

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:  # noqa: ARG002 - Keras's signature
        """Score the validation split."""
        labels, scores = self.score()
        if len(labels):
            logs.update(self._labels.epoch_metrics(labels, scores))

    def score(self) -> tuple[Floats, Floats]:
        """Give labels and the model's probabilities. [n], [n] or [n, classes]."""
        labels, scores = [], []
        for inputs, targets in self._inputs:
            scores.append(self._labels.scores(self._logits(inputs)).numpy().astype(np.float64))
            labels.append(targets.numpy().astype(np.float64))
        return (np.concatenate(labels), np.concatenate(scores)) if labels else (np.zeros(0), np.zeros(0))


class EpochEnd(tf_keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """Keeps the training's state, stops when it no longer gets better, and saves a checkpoint.

    The watched metric is `val_loss`, or `loss` without validation examples.

    Args:
        state: Of the training; changed in place.
        checkpoints: Where to save.
        patience: Epochs without a better value after which to stop; 0: never.
    """

    def __init__(self, state: TrainingState, checkpoints: Checkpoints, patience: int) -> None:
        super().__init__()
        self._state, self._checkpoints, self._patience = state, checkpoints, patience

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Update, save, perhaps stop.

        Raises:
            DataError: The loss is not a number.
        """
        value = float(logs.get("val_loss", logs["loss"]))
        if not np.isfinite(value) or not np.isfinite(logs["loss"]):
            raise DataError(
                f"epoch {epoch + 1}",
                f"loss is {logs['loss']}",
                "a finite number",
                "Lower learning_rate, or look for infinite values in the features",
            )
        state = self._state
        state.epochs_run = epoch + 1
        for name, number in logs.items():
            state.history.setdefault(name, []).append(float(number))
        if value < state.best_value:
            state.best_value, state.best_epoch, state.waited = value, epoch + 1, 0
        else:
            state.waited += 1
        self._checkpoints.save(state)
        if should_stop(state, self._patience):
            self.model.stop_training = True


def should_stop(state: TrainingState, patience: int) -> bool:
    """Tell whether early stopping has ended the training."""
    return patience > 0 and state.waited >= patience


class EpochLine(tf_keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """Says one line per epoch: `epoch 2/5 loss=0.4312 val_auc=0.7031 12345 examples/s`.

    Args:
        epochs: Of the whole training.
        rows: Training examples per epoch.
        say: Takes the line.
    """

    def __init__(self, epochs: int, rows: int, say: Callable[[str], None]) -> None:
        super().__init__()
        self._epochs, self._rows, self._say = epochs, rows, say
        self._start = 0.0

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:  # noqa: ARG002 - Keras's signature
        """Start the watch."""
        self._start = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Say the line."""
        numbers = " ".join(f"{name}={value:.4f}" for name, value in sorted(logs.items()))
        rate = self._rows / max(time.monotonic() - self._start, 1e-9)
        self._say(f"epoch {epoch + 1}/{self._epochs} {numbers} {rate:.0f} examples/s")


class TensorBoard(tf_keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
    """Writes each epoch's numbers as TensorBoard scalars and copies the event file to the log directory.

    Args:
        uri: Log directory of the job.
        storage: Where that is.
        attempt: Name of the run in TensorBoard: a resumed training gets a line of its own.
    """

    def __init__(self, uri: str, storage: Storage, attempt: str) -> None:
        super().__init__()
        self._uri, self._storage = uri, storage
        self._folder = tempfile.TemporaryDirectory()
        self._writer = tf.summary.create_file_writer(str(Path(self._folder.name) / attempt))

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Write and copy."""
        with self._writer.as_default(step=epoch + 1):
            for name, value in logs.items():
                tf.summary.scalar(f"epoch_{name}", value)
        self._writer.flush()
        self._storage.upload_folder(Path(self._folder.name), self._uri)

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:  # noqa: ARG002 - Keras's signature
        """Close the event file."""
        self._writer.close()
        self._folder.cleanup()
