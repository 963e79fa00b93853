"""The training job, top to bottom: examples, model, epochs, stored model, report.

Comes in: a train request and a source of examples. Goes out: a SavedModel, checkpoints, TensorBoard logs, and
`report.json`, which is written last: a training whose report is there is finished and does not run again.
"""

from __future__ import annotations

import dataclasses
import platform
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

import trainer
from trainer.cluster.preemption import wait_for_report
from trainer.cluster.replica import Replica
from trainer.cluster.strategy import Strategy, choose_strategy
from trainer.contract.documents import (
    Framework,
    Golden,
    Manifest,
    Report,
    Signature,
    Statistics,
    Training,
    TrainRequest,
)
from trainer.contract.reading import serialise
from trainer.errors import Diverged
from trainer.features.preprocessing import FeatureColumns, Preprocessing
from trainer.input.source import WHOLE, Share, Source
from trainer.objective.labels import labels_of
from trainer.saved_model.model import StoredModel, digest_folder, save_model
from trainer.saved_model.smoke_requests import golden_requests
from trainer.storage import Storage
from trainer.telemetry.timing import Clock
from trainer.telemetry.usage import measure_usage
from trainer.training.batches import Steps, plan_steps
from trainer.training.callbacks import EpochReport
from trainer.training.checkpoints import TrainingState
from trainer.training.epochs import Fit, find_finished
from trainer.training.examples import read_examples
from trainer.training.learning_rate import Rate, plan_rate
from trainer.training.recipe import Recipe
from trainer.training.steps import require_loop
from trainer.training.trial import Trial


def train(
    request: TrainRequest,
    manifest: Manifest,
    statistics: Statistics,
    source: Source,
    storage: Storage,
    *,
    replica: Replica,
    started: float,
    share: Share = WHOLE,
    say: Callable[[str], None] = print,
) -> Report | None:
    """Train, store the best model, and write the report; the chief alone does the last two.

    Args:
        request: What to train.
        manifest: Of the run.
        statistics: Of the run.
        source: Opens the splits train and validation.
        storage: Where to write.
        replica: This process's place in the job.
        started: `time.monotonic()` at the process's start.
        share: The part of each split that the source gives.
        say: Takes one line of progress at a time.

    Returns:
        The report; None from replicas that are not the chief, when the chief has written it, and from a trial.

    Raises:
        Preempted: SIGTERM came; the state is saved.
        PeerLost: Another replica goes away; the state is saved.
        RequestError: An unknown architecture, hyperparameter or feature, or examples that are not as the documents say.
    """
    clock, training = Clock(started), request.training
    recipe = Recipe.read(training, labels_of(request.label))
    columns = FeatureColumns(request.features, manifest.columns, manifest.images)
    _make_repeatable(request.seed)
    finished = find_finished(request, storage)
    if finished and not replica.is_chief:
        wait_for_report(storage, request)
        return None
    strategy = _join(training, replica, finished)
    clock.lap("startup")
    preprocessing = _prepare(request, statistics, recipe, strategy)
    examples = read_examples(request, manifest, source, columns, preprocessing)
    clock.lap("read")
    steps = plan_steps(training, manifest.splits["train"], strategy, share)
    model, rate = _build(recipe, preprocessing, steps, strategy)
    clock.part("model")
    fit = Fit(request, model, rate, examples, steps, strategy, share, storage, say, clock)
    if trial := Trial.of(request, storage, say):
        _score(trial, fit, finished, vars(recipe.hyperparameters))
        return None
    state, resumed = fit.run(finished)
    trained_s = clock.lap("train")
    if (stored := _store(fit, recipe, preprocessing, statistics)) is None:
        return None
    clock.lap("save")
    report = Report(
        model=request.model,
        run_key=request.run_key,
        framework=_framework(),
        hyperparameters=vars(recipe.hyperparameters),
        **_course(fit, state, resumed, trained_s),
        validation_rows=manifest.splits["validation"].rows,
        seconds=clock.seconds(),
        usage=measure_usage(),
        model_uri=request.model_uri,
        **vars(stored),
    )
    storage.write_once(request.report_uri, serialise(report))
    return report


def _build(
    recipe: Recipe, preprocessing: Preprocessing, steps: Steps, strategy: Strategy
) -> tuple[tf_keras.Model, Rate | None]:
    """Give the compiled model and its learning rate, where that may change."""
    plan = plan_rate(recipe.training, recipe.hyperparameters.learning_rate, steps, strategy)
    with strategy.scope.scope():
        model = recipe.build(preprocessing.shape)
        return model, recipe.compile(model, plan)


def _score(trial: Trial, fit: Fit, finished: TrainingState | None, hyperparameters: dict[str, Any]) -> None:
    """Take a trial's epochs and report them, as the chief; its weights are not kept.

    One that diverges at once has nothing to report, and ends well: the service counts it as infeasible, not as failed.
    That holds in all replicas: one that failed would fail the job.

    Raises:
        Diverged: It had reported before, and must not be judged by that.
    """
    listener = EpochReport(trial.measurements, reports=fit.strategy.is_chief)
    history: dict[str, list[float]] = {}
    try:
        state, _ = dataclasses.replace(fit, listeners=(listener,)).run(finished)
    except Diverged as error:
        if listener.has_measured:
            raise
        words = str(error)
    else:
        history, words = state.history, f"{state.epochs_run} epochs, best {state.best_epoch}"
    if fit.strategy.is_chief:
        trial.finish(hyperparameters, history, words)
    else:
        wait_for_report(fit.storage, fit.request)


def _prepare(request: TrainRequest, statistics: Statistics, recipe: Recipe, strategy: Strategy) -> Preprocessing:
    """Give the preprocessing, whose tables are where the strategy wants them."""
    with strategy.tables():
        preprocessing = Preprocessing(request.features, statistics)
    recipe.require_inputs(preprocessing.shape)
    return preprocessing


def _join(training: Training, replica: Replica, finished: TrainingState | None) -> Strategy:
    """Give the strategy; one device is enough where the training only has to be stored."""
    if finished:
        return choose_strategy(Replica(), "one_device")
    strategy = choose_strategy(replica, training.strategy)
    require_loop(training, strategy)
    return strategy


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


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """The report's fields about the stored model: how to prove it, and what it answers."""

    model_digest: str
    signature: Signature
    golden: tuple[Golden, ...]


def _store(fit: Fit, recipe: Recipe, preprocessing: Preprocessing, statistics: Statistics) -> _Stored | None:
    """Write the model, load it back, and ask it; replicas that are not the chief wait until the report is there."""
    request, storage, model = fit.request, fit.storage, fit.model
    if not fit.strategy.is_plain:
        preprocessing = Preprocessing(request.features, statistics)
        model = recipe.copy(model, preprocessing.shape)
    if not fit.strategy.is_chief:
        wait_for_report(storage, request)
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        lite = bool(request.training.export_lite)
        save_model(path, request.features, preprocessing, model, recipe.labels, lite=lite)
        stored = StoredModel(path, request.model_uri)
        storage.upload_folder(path, request.model_uri)
        return _Stored(
            model_digest=digest_folder(path),
            signature=stored.signature,
            golden=golden_requests(stored, fit.examples.raw_validation),
        )


def _course(fit: Fit, state: TrainingState, resumed: TrainingState | None, seconds: float) -> dict[str, Any]:
    """Give the report's fields about the way to the weights, of which `seconds` were spent here."""
    best, steps_here = state.best_epoch - 1, state.step - (resumed.step if resumed else 0)
    return {
        "strategy": state.strategy,
        "replicas": state.replicas,
        "train_rows": fit.steps.rows,
        "steps": state.step,
        "resumed_from_epoch": resumed.epochs_run if resumed else None,
        "resumed_from_step": resumed.step if resumed else None,
        "examples_per_second": round(steps_here / state.steps_per_epoch * fit.steps.rows / max(seconds, 1e-9), 1),
        "parameters": sum(int(np.prod(variable.shape)) for variable in fit.model.trainable_variables),
        "history": {name: tuple(values) for name, values in state.history.items()},
        "best_epoch": state.best_epoch,
        "epochs_run": state.epochs_run,
        "metrics": {name: values[best] for name, values in state.history.items() if name.startswith("val_")},
    }


def _framework() -> Framework:
    return Framework(
        python=platform.python_version(),
        tensorflow=tf.__version__,
        tf_keras=tf_keras.__version__,
        trainer=trainer.__version__,
    )
