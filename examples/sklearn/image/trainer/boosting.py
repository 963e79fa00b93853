"""Gradient boosted trees of scikit-learn: https://scikit-learn.org/stable/modules/ensemble.html#histogram-based-gradient-boosting."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import joblib
import numpy as np
import sklearn
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from trainer_kit.data import Array
from trainer_kit.framework import Model, Trained, TrainingData

MODEL_FILE = "model.joblib"


class ScikitLearn:
    """See `trainer_kit.framework.Framework`."""

    packages: Mapping[str, str] = {"scikit-learn": sklearn.__version__, "numpy": np.__version__}
    hyperparameters: Mapping[str, int | float] = {"learning_rate": 0.1, "max_leaf_nodes": 31, "l2_regularization": 0.0}

    def train(self, data: TrainingData) -> Trained:
        """Add trees until the validation loss does not fall any more."""
        training = data.training
        kind = HistGradientBoostingRegressor if data.label["kind"] == "regression" else HistGradientBoostingClassifier
        patience = training["early_stopping_patience"]
        model = kind(
            **{**self.hyperparameters, **training["hyperparameters"]},
            max_iter=training["epochs"],
            early_stopping=True,
            n_iter_no_change=patience or training["epochs"],
            scoring="loss",
            categorical_features=data.encoder.is_category,
            random_state=data.seed,
        )
        (matrix, labels), (checked, truth) = data.train, data.validation
        weights = {"sample_weight": data.weights.get("train"), "sample_weight_val": data.weights.get("validation")}
        model.fit(matrix, labels, X_val=checked, y_val=truth, **weights)
        history = {
            "loss": [-float(value) for value in model.train_score_[1:]],
            "val_loss": [-float(value) for value in model.validation_score_[1:]],
        }
        leaves = sum(tree.get_n_leaf_nodes() for trees in model._predictors for tree in trees)  # no public count
        return Trained(model=model, history=history, best=int(model.n_iter_), parameters=int(leaves))

    def save(self, model: Model, folder: Path) -> None:
        """Write it as Vertex AI's own containers for scikit-learn expect it."""
        joblib.dump(model, folder / MODEL_FILE)

    def load(self, folder: Path) -> Model:
        """Read it; a pickle is a program, and the folder is of this trainer alone."""
        return joblib.load(folder / MODEL_FILE)

    def predict(self, model: Model, matrix: Array, classes: int | None) -> Array:
        """Answer; a class that training did not see has the probability 0."""
        if classes is None:
            return cast("Array", model.predict(matrix))
        shares = np.zeros((len(matrix), classes))
        shares[:, model.classes_.astype(int)] = model.predict_proba(matrix)
        return shares
