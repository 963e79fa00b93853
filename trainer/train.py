"""The training job, top to bottom: examples, model, epochs, stored model, report.

Comes in: a train request and a source of examples. Goes out: a SavedModel, checkpoints, TensorBoard logs, and
`report.json`, which is written last: a training whose report is there is finished and does not run again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

import trainer
from trainer.callbacks import EpochEnd, EpochLine, TensorBoard, Validation, should_stop
from trainer.checkpoints import Checkpoints, TrainingState
from trainer.contract import serialise
from trainer.documents import Framework, Golden, Manifest, Report, Seconds, Signature, TrainRequest
from trainer.examples import Examples, read_examples
from trainer.golden import golden_requests
from trainer.input.pipeline import epochs
from trainer.input.source import Source
from trainer.labels import Labels, labels_of
from trainer.models.dense import DenseHyperparameters
from trainer.models.features import FeatureColumns, Preprocessing
from trainer.models.registry import find_architecture, read_hyperparameters
from trainer.replica import Replica
from trainer.savedmodel import StoredModel, digest_folder, save_model
from trainer.statistics import Statistics
from trainer.storage import Storage
from trainer.strategy import Strategy, choose_strategy

_STEPS_PER_CALL = 32


class Clock:
    """Seconds by section, from the process's start."""

    def __init__(self, start: float) -> None:
        self._start, self._last = start, start
        self._sections: dict[str, float] = {}

    def lap(self, section: str) -> float:
        """End a section; gives its seconds."""
        now = time.monotonic()
        self._sections[section] = round(now - self._last, 3)
        self._last = now
        return self._sections[section]

    def seconds(self) -> Seconds:
        """Give all sections."""
        return Seconds(**self._sections, total=round(time.monotonic() - self._start, 3))


def train(
    request: TrainRequest,
    manifest: Manifest,
    statistics: Statistics,
    source: Source,
    storage: Storage,
    *,
    replica: Replica,
    started: float,
    say: Callable[[str], None] = print,
) -> Report:
    """Train, store the best model, and write the report.

    Args:
        request: What to train.
        manifest: Of the run.
        statistics: Of the run.
        source: Opens the splits train and validation.
        storage: Where to write.
        replica: This process's place in the job.
        started: `time.monotonic()` at the process's start.
        say: Takes one line of progress at a time.

    Raises:
        RequestError: An unknown architecture, hyperparameter or feature, or examples that are not as the documents say.
    """
    clock = Clock(started)
    architecture = find_architecture(request.training.model)
    hyperparameters = read_hyperparameters(architecture, request.training.hyperparameters)
    labels = labels_of(request.label)
    _make_repeatable(request.seed)
    columns = FeatureColumns(request.features, manifest.schema, manifest.images)
    strategy = choose_strategy(replica)
    clock.lap("startup")
    preprocessing = Preprocessing(request.features, statistics)
    architecture.require_inputs(request.training.model, preprocessing.shape)
    examples = read_examples(request, manifest, source, columns, preprocessing)
    clock.lap("read")
    say(f"train: {examples.train_rows} examples, {examples.validation_rows} to validate, strategy {strategy.name}")
    with strategy.scope.scope():
        model = architecture.build(preprocessing.shape, labels.outputs, hyperparameters)
        _compile(model, labels, hyperparameters.learning_rate)
    state, resumed = _fit(request, model, examples, strategy, storage, say)
    trained_s = clock.lap("train")
    stored = _store(request, preprocessing, model, examples, storage)
    clock.lap("save")
    epochs_here = state.epochs_run - (resumed or 0)
    report = Report(
        model=request.model,
        run_key=request.run_key,
        framework=_framework(),
        strategy=strategy.name,
        hyperparameters=_plain(hyperparameters),
        resumed_from_epoch=resumed,
        **_course(state),
        train_rows=examples.train_rows,
        validation_rows=examples.validation_rows,
        steps=state.epochs_run * _steps(request, examples, strategy),
        examples_per_second=round(examples.train_rows * epochs_here / max(trained_s, 1e-9), 1),
        seconds=clock.seconds(),
        parameters=sum(int(np.prod(variable.shape)) for variable in model.trainable_variables),
        model_uri=request.model_uri,
        **vars(stored),
    )
    storage.write_once(request.report_uri, serialise(report))
    return report


class _WholeNumbers(random.Random):
    """Gives what Python 3.11 gave for whole numbers written as floats."""

    def randint(self, a: float, b: float) -> int:
        return super().randint(int(a), int(b))


def _make_repeatable(seed: int) -> None:
    """Seed Python, NumPy and TensorFlow, and allow deterministic kernels only (measured on flights: costs nothing).

    Keras 2.16 asks its seeder for `randint(1, 1e9)`, and Python 3.12 refuses the float.
    """
    tf_keras.utils.set_random_seed(seed)
    tf_keras.src.backend._SEED_GENERATOR.generator = _WholeNumbers(seed)
    tf.config.experimental.enable_op_determinism()


def _compile(model: tf_keras.Model, labels: Labels, learning_rate: float) -> None:
    """Set optimizer and loss.

    AutoGraph is switched off inside a step: rewriting Keras's own source cost ten seconds before the first step, and
    the layers here have no Python control flow over tensors.
    """
    model.compile(
        optimizer=tf_keras.optimizers.Adam(learning_rate),
        loss=labels.loss(),
        steps_per_execution=_STEPS_PER_CALL,
    )
    model.train_step = tf.autograph.experimental.do_not_convert(model.train_step)


def _fit(
    request: TrainRequest,
    model: tf_keras.Model,
    examples: Examples,
    strategy: Strategy,
    storage: Storage,
    say: Callable[[str], None],
) -> tuple[TrainingState, int | None]:
    """Train from the newest checkpoint on; leaves the best epoch's weights in the model."""
    training = request.training
    checkpoints = Checkpoints(request.checkpoint_uri, storage, model)
    model.optimizer.build(model.trainable_variables)
    state = checkpoints.restore_newest(_digest(request))
    resumed = state.epochs_run or None
    if resumed:
        say(f"train: goes on after epoch {resumed}")
    if state.epochs_run < training.epochs and not should_stop(state, training.early_stopping_patience):
        batch_size = training.batch_size * strategy.replicas
        data = epochs(
            examples.train, first=state.epochs_run, last=training.epochs, batch_size=batch_size, seed=request.seed
        )
        callbacks = [
            Validation(_validation(request, examples), labels_of(request.label)),
            EpochLine(training.epochs, examples.train_rows, say),
            TensorBoard(request.tensorboard_uri, storage, f"from-epoch-{state.epochs_run + 1:05d}"),
            EpochEnd(state, checkpoints, training.early_stopping_patience),
        ]
        model.fit(
            data,
            epochs=training.epochs,
            initial_epoch=state.epochs_run,
            steps_per_epoch=_steps(request, examples, strategy),
            callbacks=callbacks,
            verbose=0,
        )
    if state.best_epoch != state.epochs_run:
        checkpoints.restore(state.best_epoch)
    return state, resumed


def _digest(request: TrainRequest) -> str:
    content = json.dumps(dataclasses.asdict(request), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _validation(request: TrainRequest, examples: Examples) -> tf.data.Dataset:
    """Give the validation split as it is scored: of images no more at a time than in training."""
    images = any(feature.kind == "image" for feature in request.features)
    return examples.validation.rebatch(request.training.batch_size) if images else examples.validation


def _steps(request: TrainRequest, examples: Examples, strategy: Strategy) -> int:
    return -(-examples.train_rows // (request.training.batch_size * strategy.replicas))


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """The report's fields about the stored model: how to prove it, and what it answers."""

    model_digest: str
    signature: Signature
    golden: tuple[Golden, ...]


def _store(
    request: TrainRequest,
    preprocessing: Preprocessing,
    model: tf_keras.Model,
    examples: Examples,
    storage: Storage,
) -> _Stored:
    """Write the model, load it back, and ask it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save_model(path, request.features, preprocessing, model, labels_of(request.label))
        stored = StoredModel(path, request.model_uri)
        storage.upload_folder(path, request.model_uri)
        return _Stored(
            model_digest=digest_folder(path),
            signature=stored.signature,
            golden=golden_requests(stored, examples.raw_validation),
        )


def _course(state: TrainingState) -> dict[str, Any]:
    """Give the report's fields about the epochs."""
    best = state.best_epoch - 1
    return {
        "history": {name: tuple(values) for name, values in state.history.items()},
        "best_epoch": state.best_epoch,
        "epochs_run": state.epochs_run,
        "metrics": {name: values[best] for name, values in state.history.items() if name.startswith("val_")},
    }


def _plain(hyperparameters: DenseHyperparameters) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(hyperparameters).items()}


def _framework() -> Framework:
    return Framework(
        python=platform.python_version(),
        tensorflow=tf.__version__,
        tf_keras=tf_keras.__version__,
        trainer=trainer.__version__,
    )
