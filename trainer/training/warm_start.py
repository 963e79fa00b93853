"""A training's first weights: the champion's, where the request names it.

Comes in: a built model and the request. The stored model's digest is proven, its weights are read (no graph of it is
run), and its model is built again from the documents of its run. Only if that answers its own smoke requests as its
report has them, what the weights mean is known, and they are carried over. Goes out: the model, and what it began with.

The optimizer begins anew. Trained networks that go on with new rows can generalise worse than those that begin anew:
Ash, Adams, On Warm-Starting Neural Network Training, 2020, https://arxiv.org/abs/1910.08475; docs/models.md has what
was measured.
"""

from __future__ import annotations

import dataclasses
import logging
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from trainer.contract.documents import InitialModel, InitialWeights, Report, Statistics, TrainRequest
from trainer.contract.reading import read_document
from trainer.errors import NEW_ATTEMPT, DataError, RequestError
from trainer.features.preprocessing import Preprocessing
from trainer.models.dense import DenseHyperparameters
from trainer.objective.outputs import objective_of
from trainer.saved_model.model import digest_folder, input_spec
from trainer.storage import Storage
from trainer.training.recipe import Recipe
from trainer.training.training_job import TrainingJob
from trainer.training.warm_columns import Side
from trainer.training.warm_weights import Carried, carry_weights, not_carried

LOGGER = logging.getLogger(__name__)
_RELATIVE, _ABSOLUTE = 1e-3, 1e-5
"""How far answers may be off that another machine gave."""


def begin_with_champion(
    job: TrainingJob, recipe: Recipe, model: tf_keras.Model, preprocessing: Preprocessing
) -> InitialWeights | None:
    """Give a model its first weights; every replica must call it.

    Args:
        job: The training.
        recipe: Of the model.
        model: As the seed drew it.
        preprocessing: Before it.

    Returns:
        What it began with; None: the request names no version.

    Raises:
        RequestError: The architecture cannot.
        DataError: The stored model is gone, or another than its report says.
    """
    initial = job.request.initial
    if initial is None:
        return None
    if not recipe.architecture.warm_start or not isinstance(recipe.hyperparameters, DenseHyperparameters):
        raise RequestError(
            "training.initial",
            f"architecture {recipe.training.model!r} cannot begin with the champion's weights",
            "random",
            "Remove training.initial",
        )
    after = _side(job.request, recipe, model, preprocessing)
    weights = _read_weights(initial, job.storage)
    try:
        before = _built_again(initial, weights, job.storage)
    except RequestError as error:
        carried = Carried(anew={_name(item): f"not known what it means: {error}" for item in model.trainable_variables})
    else:
        carried = carry_weights(before, after)
    who = f"version {initial.version_id} (run {initial.run_key})"
    LOGGER.info("train: begins with %s of %s variables of %s", len(carried.taken), len(model.trainable_variables), who)
    for reason in dict.fromkeys(carried.anew.values()):
        names = ", ".join(variable for variable, its in carried.anew.items() if its == reason)
        LOGGER.info("train: drawn by the seed: %s: %s", names, reason)
    return InitialWeights(
        version_id=initial.version_id, run_key=initial.run_key, taken=carried.taken, anew=carried.anew
    )


def _name(variable: tf.Variable) -> str:
    name: str = variable.name
    return name.removesuffix(":0")


def _side(request: TrainRequest, recipe: Recipe, model: tf_keras.Model, preprocessing: Preprocessing) -> Side:
    hyperparameters: Any = recipe.hyperparameters
    return Side(
        name=request.training.model,
        model=model,
        preprocessing=preprocessing,
        features={feature.name: feature for feature in request.features},
        hyperparameters=hyperparameters,
        objective=recipe.objective,
    )


def _read_weights(initial: InitialModel, storage: Storage) -> list[np.ndarray[Any, Any]]:
    """Return a stored model's variables, in its order; the files are proven first.

    Raises:
        DataError: They are gone, or not those of the report.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        found = digest_folder(path) if storage.download_folder(initial.model_uri, path) else "no model"
        if found != initial.model_digest:
            raise DataError(
                initial.model_uri,
                f"SHA-256 {found}" if found != "no model" else "there is no model",
                f"version {initial.version_id} as its report has it, SHA-256 {initial.model_digest}",
                f"Bring its files back as they were, or take the alias champion from it. {NEW_ATTEMPT}",
            )
        reader = tf.train.load_checkpoint(str(path / "variables" / "variables"))
        keys = [
            f"weights/{place}/.ATTRIBUTES/VARIABLE_VALUE" for place in range(len(reader.get_variable_to_dtype_map()))
        ]
        return [reader.get_tensor(key) for key in keys if reader.has_tensor(key)]


def _built_again(initial: InitialModel, weights: list[np.ndarray[Any, Any]], storage: Storage) -> Side:
    """Return a stored model as its run's documents make it, with its weights.

    Raises:
        RequestError: This trainer makes another model of them: what the weights mean is not known.
    """
    report = read_document(Report, initial.report_uri, storage)
    request = read_document(TrainRequest, initial.request_uri, storage)
    if unknown := not_carried(request.features):
        raise RequestError(f"version {initial.version_id}", f"it reads {unknown}", "numbers and categories alone")
    statistics = read_document(Statistics, request.statistics_uri, storage)
    training = dataclasses.replace(request.training, hyperparameters=report.hyperparameters)
    objective = objective_of(request.label, request.auxiliary_labels, statistics, request.weight)
    recipe = Recipe.from_training(training, objective)
    preprocessing = Preprocessing(request.features, statistics, request.crosses)
    model = recipe.build_model(preprocessing.shape)
    shapes = [tuple(variable.shape) for variable in model.variables]
    if shapes != [values.shape for values in weights]:
        found = f"{len(weights)} variables of other shapes than the {len(shapes)} that its documents make"
        raise RequestError(f"version {initial.version_id}", found, "the same")
    model.set_weights(weights)
    side = _side(request, recipe, model, preprocessing)
    _require_same_answers(initial, report, request, side)
    return side


def _require_same_answers(initial: InitialModel, report: Report, request: TrainRequest, side: Side) -> None:
    """Check that the model answers the smoke requests of its report as it did when it was stored."""
    if not report.golden:
        return
    specs = {feature.name: input_spec(feature) for feature in request.features}
    raw = {
        name: tf.constant([item.instance[name] for item in report.golden], spec.dtype) for name, spec in specs.items()
    }
    logits = side.model(side.preprocessing(raw), training=False)
    answers = side.objective.scores(logits).numpy()
    expected = np.array([item.prediction for item in report.golden])
    if not np.allclose(answers, expected, rtol=_RELATIVE, atol=_ABSOLUTE):
        raise RequestError(
            f"version {initial.version_id}",
            f"built again it answers its smoke requests with {answers.tolist()[:1]}",
            f"{expected.tolist()[:1]}, as its report has it",
        )
