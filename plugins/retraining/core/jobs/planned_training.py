"""The section `training` of a train request: what the spec has written, and the recipe for the rest.

In: a spec, a search's hyperparameters, the statistics of the run's examples. Out: the request's `Training`, in which
every number stands that the trainer goes by: the decision is recorded there, and the run's page reads it there.
"""

from __future__ import annotations

from collections.abc import Mapping

from retraining.core.documents.checks import Statistics
from retraining.core.documents.training import Training
from retraining.core.jobs.recipe import Recipe, recipe_of
from retraining.core.spec.cluster import Cluster, resolve_tier
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.training import MEMBERS, HyperparameterValue
from retraining.core.spec.training import Training as TrainingSpec
from retraining.core.untyped import JsonObject

_TPU_CORES = 8


def planned_training(
    spec: ModelSpec,
    hyperparameters: Mapping[str, HyperparameterValue] | None = None,
    statistics: Statistics | None = None,
) -> Training:
    """Return what the trainer is asked of the training itself.

    Args:
        spec: With the run's overrides.
        hyperparameters: Instead of the spec's; those of the recipe that they leave open stay.
        statistics: Of the run's examples; None: as few rows are assumed as the checks let pass.
    """
    written = spec.training
    recipe = recipe_of(
        written.model,
        training_rows(spec, statistics),
        batch_size=written.batch_size,
        epochs=written.epochs,
        batches_per_step=written.accumulate_steps * _lockstep_replicas(resolve_tier(written.cluster)),
    )
    given = written.hyperparameters if hyperparameters is None else hyperparameters
    known = _known_hyperparameters(written, recipe)
    patience = recipe.patience if written.early_stopping_patience is None else written.early_stopping_patience
    values = written.model_dump(include=set(Training.model_fields))
    return Training.model_validate(
        {
            **values,
            "epochs": recipe.epochs,
            "batch_size": recipe.batch_size,
            "early_stopping_patience": patience,
            "callbacks": {**values["callbacks"], "reduce_lr": _falling_rate(written, recipe)},
            "hyperparameters": {**known, **given},
        }
    )


def training_rows(spec: ModelSpec, statistics: Statistics | None = None) -> int:
    """Return how many rows a run has to learn from."""
    return statistics.splits["train"].rows if statistics else spec.data.checks.min_rows


def _known_hyperparameters(written: TrainingSpec, recipe: Recipe) -> dict[str, HyperparameterValue]:
    """Return what the spec and the recipe say of hyperparameters that the spec does not name."""
    own = written.runtime.models == "own"  # of another framework, perhaps
    known: dict[str, HyperparameterValue] = {} if own else dict(recipe.hyperparameters)
    if written.export_lite:
        known.pop(MEMBERS, None)  # a phone has one network
    if written.ensemble == 1:
        known.pop(MEMBERS, None)  # every architecture's own default, also of those without the hyperparameter
    elif written.ensemble != "auto":
        known[MEMBERS] = written.ensemble
    return known


def _falling_rate(training: TrainingSpec, recipe: Recipe) -> JsonObject | None:
    """Return when the learning rate falls; who has written how long to wait has the rate stay, as it did before."""
    written = training.callbacks.reduce_lr
    if written is not None:
        return written.model_dump() if written.patience else None
    if training.early_stopping_patience is not None:
        return None
    return recipe.falling_rate


def _lockstep_replicas(cluster: Cluster) -> int:
    """Return how many devices take each step together."""
    chief = cluster.chief
    servers = cluster.parameter_servers.count if cluster.parameter_servers else 0
    if chief is None or servers:
        return 1
    if chief.is_tpu:
        return chief.accelerator.count if chief.accelerator else _TPU_CORES
    devices = chief.accelerator.count if chief.accelerator else 1
    return devices * (1 + (cluster.workers.count if cluster.workers else 0))
