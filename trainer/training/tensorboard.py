"""TensorBoard's files in the job directory: each epoch's numbers, weights as histograms, a profile of some steps."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf

from trainer.contract.documents import TensorBoardOptions
from trainer.storage import Storage
from trainer.training.step_control import CallListener, Logs

_PROFILED_CALLS = (1, 3)  # from the end of the first call, which compiles, to the end of the third


class TensorBoard(CallListener):
    """Writes event files and copies them to the log directory at each epoch's end.

    Args:
        uri: Log directory of the job.
        attempt: Name of the run in TensorBoard: a resumed training gets a line of its own.
        options: What to write beside scalars.
    """

    def __init__(self, uri: str, storage: Storage, attempt: str, options: TensorBoardOptions) -> None:
        super().__init__()
        self._uri, self._storage, self._options = uri, storage, options
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / attempt
        self._writer = tf.summary.create_file_writer(str(self._path))
        self._calls = 0

    def on_train_batch_end(self, _batch: int, _logs: Logs = None) -> None:
        """Start and stop the profiler."""
        self._calls += 1
        if self._options.profile and self._calls == _PROFILED_CALLS[0]:
            tf.profiler.experimental.start(str(self._path))
        if self._options.profile and self._calls == _PROFILED_CALLS[1]:
            tf.profiler.experimental.stop()

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Write and copy."""
        if self._options.profile and _PROFILED_CALLS[0] <= self._calls < _PROFILED_CALLS[1]:
            tf.profiler.experimental.stop()
            self._calls = _PROFILED_CALLS[1]
        self.write_numbers(epoch, logs)
        with self._writer.as_default(step=epoch + 1):
            for variable in self.model.trainable_variables if self._options.histograms else ():
                tf.summary.histogram(variable.name.replace(":", "_"), variable)
        self.upload()

    def write_numbers(self, epoch: int, numbers: Mapping[str, float]) -> None:
        """Write an epoch's numbers, by name; epochs are counted from 0."""
        with self._writer.as_default(step=epoch + 1):
            for name, value in numbers.items():
                tf.summary.scalar(f"epoch_{name}", value)

    def upload(self) -> None:
        """Copy what was written until now."""
        self._writer.flush()
        self._storage.upload_folder(Path(self._folder.name), self._uri)

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()
        self._folder.cleanup()
