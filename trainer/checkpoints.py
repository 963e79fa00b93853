"""Checkpoints on storage: after every epoch all that a training needs to go on exactly where it was.

A checkpoint is a folder `epoch-00003/` with TensorFlow's files and, written last, `state.json`; a folder without that
is not one. The newest and the best are kept.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import tensorflow as tf
import tf_keras

from trainer.errors import DataError
from trainer.storage import Storage, join

_STATE = "state.json"


@dataclass(kw_only=True)
class TrainingState:
    """What callbacks know about a training, beside its weights.

    Attributes:
        request_sha256: Of the request: a checkpoint of another one is not resumed.
        epochs_run: Finished epochs.
        history: One number per finished epoch, by name.
        best_epoch: Counted from 1; 0 before the first epoch.
        best_value: Of the watched metric, lower is better.
        waited: Epochs since the best one.
    """

    request_sha256: str
    epochs_run: int = 0
    history: dict[str, list[float]] = field(default_factory=dict)
    best_epoch: int = 0
    best_value: float = float("inf")
    waited: int = 0


class Checkpoints:
    """Saves and restores model and optimizer.

    Args:
        uri: Folder of the checkpoints.
        storage: Where that is.
        model: Compiled Keras model.
    """

    def __init__(self, uri: str, storage: Storage, model: tf_keras.Model) -> None:
        self._uri, self._storage, self._model = uri, storage, model
        self._checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)

    def save(self, state: TrainingState) -> None:
        """Write the checkpoint of the epoch just finished; older ones go, but for the best."""
        folder_uri = self._folder(state.epochs_run)
        with tempfile.TemporaryDirectory() as folder:
            self._checkpoint.write(str(Path(folder) / "weights"))
            self._storage.upload_folder(Path(folder), folder_uri)
        content = json.dumps(dataclasses.asdict(state), sort_keys=True).encode()
        self._storage.replace(join(folder_uri, _STATE), content)
        for epoch in self._epochs():
            if epoch not in (state.epochs_run, state.best_epoch):
                self._delete(epoch)

    def restore_newest(self, request_sha256: str) -> TrainingState:
        """Restore the newest complete checkpoint of this request; a fresh state where there is none."""
        for epoch in sorted(self._epochs(), reverse=True):
            content = self._storage.read(join(self._folder(epoch), _STATE))
            state = TrainingState(**json.loads(content)) if content else None
            if state is not None and state.request_sha256 == request_sha256:
                self.restore(epoch)
                return state
        return TrainingState(request_sha256=request_sha256)

    def restore(self, epoch: int) -> None:
        """Restore weights and optimizer as they were after an epoch (from 1).

        Raises:
            DataError: The checkpoint is gone or belongs to another model.
        """
        with tempfile.TemporaryDirectory() as folder:
            self._storage.download_folder(self._folder(epoch), Path(folder))
            try:
                self._checkpoint.read(str(Path(folder) / "weights")).assert_existing_objects_matched()
            except (tf.errors.OpError, AssertionError, ValueError) as error:
                raise DataError(
                    self._folder(epoch),
                    f"cannot be restored: {error}",
                    "a checkpoint of this model",
                    "Delete the folder and start again",
                ) from error

    def _epochs(self) -> set[int]:
        prefix = self._uri.rstrip("/") + "/"
        found = (re.match(r"epoch-(\d{5})/", item.uri.removeprefix(prefix)) for item in self._storage.list(prefix))
        return {int(match.group(1)) for match in found if match}

    def _delete(self, epoch: int) -> None:
        self._storage.delete(join(self._folder(epoch), _STATE))
        for item in self._storage.list(self._folder(epoch) + "/"):
            self._storage.delete(item.uri)

    def _folder(self, epoch: int) -> str:
        return join(self._uri, f"epoch-{epoch:05d}")
