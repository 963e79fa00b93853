"""What the trainer's default is held against: scikit-learn's and LightGBM's models, at their own defaults.

    python -m bench.models_contender FOLDER SEED NAME…

In: the files that `models_data` wrote. Out: for each set and model a line of JSON on stdout, as `{name, model, seed,
seconds, loss, score}`. They are trained on the rows of train and validation, of which the trainer takes the second for
when to stop; those that stop early take their own share out of all.

Numbers of linear models and of the network are standardised, missing ones filled with the mean and marked; categories
are one column each. Trees take numbers and categories as they are.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bench.models_data import PART
from bench.models_scores import measure
from bench.models_sets import SETS, Set


def _columns() -> ColumnTransformer:
    return make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), make_column_selector(dtype_include=float)),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=2), make_column_selector(dtype_include="category")),
    )


def models(set_: Set, seed: int) -> dict[str, Any]:
    """Return the contenders of a set."""
    if set_.kind == "regression":
        linear = make_pipeline(_columns(), Ridge())
        if set_.is_count:
            linear = make_pipeline(_columns(), PoissonRegressor(max_iter=1000))
        loss = "poisson" if set_.is_count else "squared_error"
        return {
            "linear": linear,
            "network": _Scaled(
                make_pipeline(_columns(), MLPRegressor(hidden_layer_sizes=(100, 100), random_state=seed))
            ),
            "trees": HistGradientBoostingRegressor(loss=loss, random_state=seed),
            "lightgbm": lightgbm.LGBMRegressor(
                objective="poisson" if set_.is_count else "regression", random_state=seed, verbose=-1
            ),
        }
    return {
        "linear": make_pipeline(_columns(), LogisticRegression(max_iter=1000)),
        "network": make_pipeline(_columns(), MLPClassifier(hidden_layer_sizes=(100, 100), random_state=seed)),
        "trees": HistGradientBoostingClassifier(random_state=seed),
        "lightgbm": lightgbm.LGBMClassifier(random_state=seed, verbose=-1),
    }


class _Scaled:
    """A regressor that sees the label by its mean and deviation, as the trainer does."""

    def __init__(self, model: Pipeline) -> None:
        self._model = model

    def fit(self, rows: pd.DataFrame, label: np.ndarray) -> None:
        self._mean, self._deviation = label.mean(), label.std()
        self._model.fit(rows, (label - self._mean) / self._deviation)

    def predict(self, rows: pd.DataFrame) -> np.ndarray:
        answers: np.ndarray = self._model.predict(rows) * self._deviation + self._mean
        return answers


def compete(name: str, rows: pd.DataFrame, seed: int) -> Iterator[dict[str, Any]]:
    """Yield what each model reaches."""
    set_ = SETS[name]
    for column in rows.select_dtypes(["string", "object"]).columns.difference([PART]):
        rows[column] = rows[column].astype("object").fillna("").astype("category")
    part, label = rows.pop(PART), rows.pop("label").to_numpy()
    test = (part == "test").to_numpy()
    for kind, model in models(set_, seed).items():
        start = time.monotonic()
        model.fit(rows[~test], label[~test])
        seconds = time.monotonic() - start
        predict = model.predict if set_.kind == "regression" else model.predict_proba
        loss, score = measure(set_, label[test], predict(rows[test]))
        yield {"name": name, "model": kind, "seed": seed, "seconds": seconds, "loss": loss, "score": score}


def main() -> None:
    """Run all."""
    warnings.simplefilter("ignore")  # of a network that has not converged: that is its default
    folder, seed, *names = sys.argv[1:]
    for name in names:
        for line in compete(name, pd.read_parquet(Path(folder) / f"{name}.{seed}.parquet"), int(seed)):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
