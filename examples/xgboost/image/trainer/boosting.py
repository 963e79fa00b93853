"""Gradient boosted trees of XGBoost: https://xgboost.readthedocs.io/en/stable/python/python_api.html."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import xgboost
from trainer_kit.data import Array, Encoder
from trainer_kit.framework import Model, Trained, TrainingData

MODEL_FILE = "model.ubj"


class XGBoost:
    """See `trainer_kit.framework.Framework`."""

    packages: Mapping[str, str] = {"xgboost": xgboost.__version__, "numpy": np.__version__}
    hyperparameters: Mapping[str, int | float] = {"learning_rate": 0.1, "max_depth": 6, "reg_lambda": 1.0}

    def train(self, data: TrainingData) -> Trained:
        """Add trees until the validation loss does not fall any more; the model is the best round's."""
        training, kind = data.training, data.label["kind"]
        objectives: dict[str, dict[str, Any]] = {
            "binary": {"objective": "binary:logistic", "eval_metric": "logloss"},
            "multiclass": {
                "objective": "multi:softprob",
                "eval_metric": "mlogloss",
                "num_class": data.label.get("classes"),
            },
            "regression": {"objective": "reg:squarederror", "eval_metric": "rmse"},
        }
        objective = objectives[kind]
        rows = {"train": data.train, "validation": data.validation}
        sets = [(_matrix(*rows[split], data.encoder, data.weights.get(split)), split) for split in rows]
        measured: dict[str, dict[str, list[float]]] = {}
        model = xgboost.train(
            {**self.hyperparameters, **training["hyperparameters"], **objective, "seed": data.seed},
            sets[0][0],
            num_boost_round=training["epochs"],
            evals=sets,
            evals_result=measured,
            early_stopping_rounds=training["early_stopping_patience"] or None,
            verbose_eval=False,
        )
        metric = str(objective["eval_metric"])
        history = {"loss": measured["train"][metric], "val_loss": measured["validation"][metric]}
        best = int(np.argmin(history["val_loss"])) + 1
        kept = model[:best]
        leaves = sum(line.count("leaf=") for line in kept.get_dump())
        return Trained(model=kept, history=history, best=best, parameters=leaves)

    def save(self, model: Model, folder: Path) -> None:
        """Write it in XGBoost's own form, with the features' types."""
        model.save_model(folder / MODEL_FILE)

    def load(self, folder: Path) -> Model:
        """Read it."""
        return xgboost.Booster(model_file=folder / MODEL_FILE)

    def predict(self, model: Model, matrix: Array, classes: int | None) -> Array:
        """Answer."""
        types = model.feature_types
        answers = cast("Array", model.predict(xgboost.DMatrix(matrix, feature_types=types, enable_categorical=True)))
        return np.stack([1 - answers, answers], axis=1) if classes == 2 and answers.ndim == 1 else answers


def _matrix(features: Array, labels: Array, encoder: Encoder, weights: Array | None) -> xgboost.DMatrix:
    types = ["c" if is_category else "q" for is_category in encoder.is_category]
    return xgboost.DMatrix(features, labels, weight=weights, feature_types=types, enable_categorical=True)
