"""What a training leaves: the stored model, and the report, which is written last.

Comes in: a training that has reached its end. Goes out: `model/` and `report.json`.
"""

from __future__ import annotations

import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

import trainer
from trainer.cluster.preemption import wait_for_report
from trainer.contract.documents import Framework, Golden, InitialWeights, Report, Signature
from trainer.contract.reading import serialise
from trainer.features.preprocessing import Preprocessing
from trainer.saved_model.model import StoredModel, digest_folder, key_spec, save_model
from trainer.saved_model.smoke_requests import smoke_requests
from trainer.telemetry.usage import measure_usage
from trainer.training.callbacks import validation_blocks
from trainer.training.checkpoints import TrainingState
from trainer.training.contact_sheet import write_contact_sheet
from trainer.training.epochs import Fit
from trainer.training.member_metrics import measure_members
from trainer.training.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The report's fields about the stored model: how to prove it, and what it answers."""

    model_digest: str
    signature: Signature
    golden: tuple[Golden, ...]
    members: dict[str, tuple[float, ...]]


def store_model(fit: Fit, recipe: Recipe) -> Stored | None:
    """Write the model, load it back, and ask it; replicas that are not the chief wait until the report is there."""
    job, model, preprocessing = fit.job, fit.model, fit.examples.preprocessing
    request, storage = job.request, job.storage
    if not fit.strategy.is_plain:
        preprocessing = Preprocessing(request.features, job.statistics, request.crosses)
        model = recipe.copy_model(model, preprocessing.shape)
    if not fit.strategy.is_chief:
        wait_for_report(storage, request)
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        lite = bool(request.training.export_lite)
        types = {column.name: column.type for column in job.manifest.columns}
        key = key_spec(request.key, types.get(request.key)) if request.key_input else None
        save_model(path, request.features, preprocessing, model, recipe.objective, lite=lite, key=key)
        stored = StoredModel(path, request.model_uri)
        storage.upload_folder(path, request.model_uri)
        return Stored(
            model_digest=digest_folder(path),
            signature=stored.signature,
            golden=smoke_requests(stored, fit.examples.raw_validation),
            members=_members(fit, recipe, model),
        )


def _members(fit: Fit, recipe: Recipe, model: tf_keras.Model) -> dict[str, tuple[float, ...]]:
    """Return each member's metrics; nothing where this process has a part of the validation split alone."""
    if fit.job.share.count > 1:
        return {}
    blocks = validation_blocks(fit.job, fit.examples)
    return measure_members(model, blocks, recipe.objective, fit.job.request.trial_metric)


def write_report(
    fit: Fit,
    recipe: Recipe,
    stored: Stored,
    state: TrainingState,
    resumed: TrainingState | None,
    seconds: float,
    initial: InitialWeights | None = None,
) -> Report:
    """Write the report: from then on the training counts as done.

    Args:
        resumed: That this process began with, if it did not begin at the start.
        seconds: Spent here on the way to the weights.
        initial: What the weights began as.
    """
    job, request = fit.job, fit.job.request
    job.clock.lap("save")
    report = Report(
        model=request.model,
        run_key=request.run_key,
        request_digest=job.request_digest,
        framework=_framework(),
        hyperparameters=vars(recipe.hyperparameters),
        **_course(fit, state, resumed, seconds),
        validation_rows=job.manifest.splits["validation"].rows,
        seconds=job.clock.seconds(),
        usage=measure_usage(),
        initial=initial,
        model_uri=request.model_uri,
        **vars(stored),
    )
    write_contact_sheet(fit)
    job.storage.write_once(request.report_uri, serialise(report))
    return report


def _course(fit: Fit, state: TrainingState, resumed: TrainingState | None, seconds: float) -> dict[str, Any]:
    """Return the report's fields about the way to the weights, of which `seconds` were spent here."""
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
