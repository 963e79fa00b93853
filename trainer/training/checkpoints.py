"""Checkpoints on storage: all that a training needs to go on exactly where it was, after any step.

A checkpoint is a folder `step-000000320/` with TensorFlow's files and, written last, `state.json`, which names them and
their digests; a folder without that, or with other files than it names, is not one. The newest two and the best are
kept.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.contract.documents import TrainRequest
from trainer.contract.json_text import read_json
from trainer.contract.reading import digest as digest_request
from trainer.errors import DataError
from trainer.storage import Storage, join_uri, path_below

LOGGER = logging.getLogger(__name__)
_STATE = "state.json"
_KEPT = 2
_SHA256 = re.compile("[0-9a-f]{64}")
_LONGEST_NAME = 255  # of a file, on the disks that checkpoints are fetched to
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_QUOTE = re.compile(r"(?<=[\s\[,:])(NaN|-?Infinity)(?=[\s\],}])")
"""Numbers that JSON has not, as Python and earlier releases write them: they are stored as texts."""
_COUNTS = ("replicas", "steps_per_epoch", "step", "epochs_run", "best_epoch", "waited", "rate_waited")


@dataclass(kw_only=True)
class TrainingState:
    """What callbacks know about a training, beside its weights.

    Attributes:
        request_sha256: Of the request: a checkpoint of another one is not resumed,
        strategy: nor one with another strategy
        replicas: or another number of replicas in lockstep.
        steps_per_epoch: Of the training.
        step: Finished steps.
        epochs_run: Finished epochs.
        history: One number per finished epoch, by name.
        best_epoch: Counted from 1; 0 before the first epoch.
        best_value: Of the watched metric, lower is better.
        waited: Epochs since the best one.
        rate_factor: What the learning rate is multiplied by.
        rate_waited: Epochs since the least loss of all or since the learning rate was lowered.
        running: The unfinished epoch's sums behind its mean loss.
    """

    request_sha256: str
    strategy: str = "one_device"
    replicas: int = 1
    steps_per_epoch: int = 1
    step: int = 0
    epochs_run: int = 0
    history: dict[str, list[float]] = field(default_factory=dict)
    best_epoch: int = 0
    best_value: float = float("inf")
    waited: int = 0
    rate_factor: float = 1.0
    rate_waited: int = 0
    running: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, request: TrainRequest, *, strategy: str, replicas: int, steps_per_epoch: int) -> TrainingState:
        """Return the state in which a request's training begins."""
        return cls(
            request_sha256=digest_request(request),
            strategy=strategy,
            replicas=replicas,
            steps_per_epoch=steps_per_epoch,
        )

    def continues(self, start: TrainingState) -> bool:
        """Return whether this is a later state of a training that began with `start`."""
        return (self.request_sha256, self.strategy, self.replicas) == (
            start.request_sha256,
            start.strategy,
            start.replicas,
        )

    @property
    def best_step(self) -> int:
        """Step at the end of the best epoch."""
        return self.best_epoch * self.steps_per_epoch

    def should_stop(self, patience: int) -> bool:
        """Return whether early stopping has ended the training; patience 0: never."""
        return patience > 0 and self.waited >= patience

    def is_over(self, epochs: int, patience: int) -> bool:
        """Return whether there is nothing left to train."""
        return self.epochs_run >= epochs or self.should_stop(patience)


class Checkpoints:
    """Finds, saves and restores.

    Args:
        uri: Folder of the checkpoints.
    """

    def __init__(self, uri: str, storage: Storage) -> None:
        self._uri, self._storage = uri, storage
        self.way_out = f"Delete {uri} and start again: the training begins anew"

    def attach(self, model: tf_keras.Model, *, writes: bool = True, io_device: str | None = None) -> Attached:
        """Tie them to a model.

        Args:
            model: Whose variables are saved and restored, with those of its optimizer if it is compiled.
            writes: Whether this process is the one that writes; the others take part and keep nothing.
            io_device: Where TensorFlow reads and writes files.
        """
        return Attached(self, model, writes=writes, io_device=io_device)

    def newest(self, start: TrainingState, folder_path: Path) -> TrainingState | None:
        """Fetch the newest whole checkpoint of a training into an empty folder; None where there is none."""
        for step in sorted(self.steps(), reverse=True):
            state = self._state(step)
            if state is None or not state.continues(start):
                continue
            try:
                self.fetch(step, folder_path)
            except DataError as error:
                LOGGER.warning("train: %s The one before it is taken", error)
                continue
            return state
        return None

    def newest_state(self) -> TrainingState | None:
        """Read the newest checkpoint's state, of whatever training; None where there is none."""
        states = (self._state(step) for step in sorted(self.steps(), reverse=True))
        return next((state for state in states if state is not None), None)

    def fetch(self, step: int, folder_path: Path) -> None:
        """Copy a checkpoint's files and prove them.

        Raises:
            DataError: It is gone, or its files are not those that it was written with.
        """
        document = self._document(step)
        if document is None:
            raise DataError(self.folder(step), "there is no checkpoint", "a folder with state.json")
        for name, digest in document.files.items():
            path = path_below(folder_path, name)
            self._storage.download(join_uri(self.folder(step), name), path)
            actual = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
            if actual != digest:
                raise DataError(join_uri(self.folder(step), name), f"SHA-256 {actual}", f"SHA-256 {digest}")

    def store_step(self, step: int, folder_path: Path, state: Mapping[str, Any], keep: set[int]) -> None:
        """Copy a local folder to storage, its `state.json` last, and drop older checkpoints."""
        self._storage.delete_object(join_uri(self.folder(step), _STATE))
        self._storage.upload_folder(folder_path, self.folder(step))
        files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder_path.iterdir()}
        self._storage.replace(join_uri(self.folder(step), _STATE), _write_document(state, files))
        steps = sorted(self.steps())
        for other in steps:
            if other not in {*steps[-_KEPT:], *keep} and other != step:
                self._delete_step(other)

    def folder(self, step: int) -> str:
        """Return a checkpoint's address."""
        return join_uri(self._uri, f"step-{step:09d}")

    def describe_last(self, state: TrainingState) -> str:
        """Say which checkpoint is the last whole one of a training until `state`; all that are saved are finite."""
        states = (self._state(step) for step in self.steps() if step <= state.step)
        steps = [other.step for other in states if other is not None and other.continues(state)]
        if not steps:
            return "There is no checkpoint before it"
        return f"The last checkpoint with finite weights is {self.folder(max(steps))}"

    def steps(self) -> set[int]:
        """List the steps of which something is there, whole or not."""
        prefix = self._uri.rstrip("/") + "/"
        matches = (
            re.match(r"step-(\d{9})/", item.uri.removeprefix(prefix)) for item in self._storage.list_objects(prefix)
        )
        return {int(match.group(1)) for match in matches if match}

    def _state(self, step: int) -> TrainingState | None:
        document = self._document(step)
        return document.state if document else None

    def _document(self, step: int) -> _Document | None:
        """Read a checkpoint's `state.json`; None where there is none, or what is there was not written as it is."""
        uri = join_uri(self.folder(step), _STATE)
        content = self._storage.read_object(uri)
        if content is None:
            return None
        try:
            return _read_document(content, step)
        except ValueError as error:
            LOGGER.warning("train: %s: is no checkpoint's state (%s). The one before it is taken", uri, error)
            return None

    def _delete_step(self, step: int) -> None:
        self._storage.delete_object(join_uri(self.folder(step), _STATE))
        for item in self._storage.list_objects(self.folder(step) + "/"):
            self._storage.delete_object(item.uri)


@dataclass(frozen=True, kw_only=True)
class _Document:
    """A `state.json`."""

    state: TrainingState
    files: dict[str, str]


def _write_document(state: Mapping[str, Any], files: Mapping[str, str]) -> bytes:
    body: Any = read_json(_QUOTE.sub(r'"\1"', json.dumps({"state": state, "files": files})))
    return json.dumps({**body, "sha256": _digest(body)}, sort_keys=True).encode()


def _read_document(content: bytes, step: int) -> _Document:
    """Return what `_write_document` gave. One of an earlier release has no digest, and is held to its types alone.

    Raises:
        ValueError: It is something else; says what.
    """
    document = read_json(_QUOTE.sub(r'"\1"', content.decode()))
    if not isinstance(document, dict) or not isinstance(document.get("state"), dict):
        raise ValueError("it has no state")
    files = document.get("files")
    if not isinstance(files, dict) or not all(
        isinstance(item, str) and _SHA256.fullmatch(item) for item in files.values()
    ):
        raise ValueError("it has no digests of files")
    if any(len(name.encode(errors="replace")) > _LONGEST_NAME for name in files):
        raise ValueError(f"it names a file by more than {_LONGEST_NAME} bytes")
    state = _read_state(document["state"])
    if state.step != step:
        raise ValueError(f"it is of step {state.step}")
    body = {name: item for name, item in document.items() if name != "sha256"}
    if "sha256" in document and document["sha256"] != _digest(body):
        raise ValueError("it is not as it was written")
    return _Document(state=state, files=files)


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _read_state(value: Mapping[str, Any]) -> TrainingState:
    names = {item.name for item in dataclasses.fields(TrainingState)}
    if unknown := value.keys() - names:
        raise ValueError(f"unknown: {sorted(unknown)[:3]}")
    if "request_sha256" not in value:
        raise ValueError("it names no request")
    values: dict[str, Any] = {name: _of_kind(name, item) for name, item in value.items()}
    return TrainingState(**values)


def _of_kind(name: str, value: object) -> object:
    """Return a value of the state, if it is of the kind that it is written with."""
    if name in ("request_sha256", "strategy") and isinstance(value, str):
        return value
    if name in ("best_value", "rate_factor"):
        return _number(name, value)
    if name == "running" and isinstance(value, list):
        return [_number(name, item) for item in value]
    if name == "history" and isinstance(value, dict) and all(isinstance(item, list) for item in value.values()):
        return {key: [_number(name, item) for item in items] for key, items in value.items()}
    if name in _COUNTS and isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
        return value
    raise ValueError(f"{name} is {str(value)[:40]!r}")


def _number(name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _NOT_FINITE:
        return float(value)
    raise ValueError(f"{name} has {str(value)[:40]!r}")


def find_finished(request: TrainRequest, storage: Storage) -> TrainingState | None:
    """Return the state of a training that was interrupted after its last step: the others may be gone by now."""
    state = Checkpoints(request.checkpoint_uri, storage).newest_state()
    if state is None or state.request_sha256 != digest_request(request):
        return None
    return state if state.is_over(request.training.epochs, request.training.early_stopping_patience) else None


class Attached:
    """Checkpoints of one model and its optimizer.

    Args:
        checkpoints: Where they are.
        model: Compiled, its optimizer's variables made.
        writes: Whether what is saved is kept.
        io_device: Where TensorFlow reads and writes files.
    """

    def __init__(self, checkpoints: Checkpoints, model: tf_keras.Model, *, writes: bool, io_device: str | None) -> None:
        self.checkpoints = checkpoints
        self._model, self._writes = model, writes
        optimizer = {"optimizer": model.optimizer} if getattr(model, "optimizer", None) else {}
        self._checkpoint = tf.train.Checkpoint(model=model, **optimizer)
        self._options = tf.train.CheckpointOptions(experimental_io_device=io_device)

    def is_finite(self) -> bool:
        """Return whether every trainable weight is a number, and not infinite."""
        return all(bool(tf.reduce_all(tf.math.is_finite(weight))) for weight in self._model.trainable_variables)

    def save_state(self, state: TrainingState) -> None:
        """Write the checkpoint of the step just finished."""
        with tempfile.TemporaryDirectory() as folder:
            self._checkpoint.write(str(Path(folder) / "weights"), self._options)
            if self._writes:
                self.checkpoints.store_step(state.step, Path(folder), dataclasses.asdict(state), {state.best_step})

    def restore_newest(self, start: TrainingState) -> TrainingState | None:
        """Restore the newest whole checkpoint of the training that began with `start`; None where there is none."""
        with tempfile.TemporaryDirectory() as folder:
            state = self.checkpoints.newest(start, Path(folder))
            if state is not None:
                self._read_weights(Path(folder), state.step)
            return state

    def restore(self, step: int) -> None:
        """Restore weights and optimizer as they were after a step.

        Raises:
            DataError: The checkpoint is gone, damaged, or of another model.
        """
        with tempfile.TemporaryDirectory() as folder:
            try:
                self.checkpoints.fetch(step, Path(folder))
            except DataError as error:
                raise DataError(error.where, error.found, error.expected, self.checkpoints.way_out) from error
            self._read_weights(Path(folder), step)

    def _read_weights(self, folder_path: Path, step: int) -> None:
        try:
            status = self._checkpoint.read(str(folder_path / "weights"), self._options)
            status.assert_existing_objects_matched().expect_partial()  # who only scores has no optimizer
        except (tf.errors.OpError, AssertionError, ValueError) as error:
            raise DataError(
                self.checkpoints.folder(step),
                f"cannot be restored: {error}",
                "a checkpoint of this model",
                self.checkpoints.way_out,
            ) from error
