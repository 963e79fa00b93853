"""What a section `tuning` searches that names no parameters: of architectures whose space is known.

In: an architecture's name. Out: its parameters. The bounds are those of published studies, narrowed to what matters:

- of networks of tables, and of boosted trees, Gorishniy et al., Revisiting Deep Learning Models for Tabular Data, 2021,
  https://arxiv.org/abs/2106.11959: rate, dropout, weight decay and width, around what the recipe has; learning rate,
  least examples, shares of rows and columns, with leaves in place of depth;
- of random forests Probst, Wright, Boulesteix, Hyperparameters and Tuning Strategies for Random Forest, 2019,
  https://arxiv.org/abs/1804.03515: columns for each split first, then the examples that a tree draws and a leaf keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retraining.core.spec.tuning import TuningParameter
from retraining.core.untyped import JsonObject


def _number(name: str, low: float, high: float, scale: str = "linear") -> TuningParameter:
    return TuningParameter.model_validate({"name": name, "kind": "double", "min": low, "max": high, "scale": scale})


def _whole(name: str, low: int, high: int) -> TuningParameter:
    return TuningParameter.model_validate({"name": name, "kind": "integer", "min": low, "max": high, "scale": "log"})


_NETWORK = (
    _number("learning_rate", 0.0003, 0.01, "log"),
    _number("dropout", 0.0, 0.5),
    _number("weight_decay", 0.0001, 0.1, "log"),
    TuningParameter.model_validate(
        {"name": "hidden_units", "kind": "categorical", "values": ["32-32", "64-64", "128-128", "256-256"]}
    ),
)
SEARCH_SPACES: Mapping[str, tuple[TuningParameter, ...]] = {
    "wide_deep": _NETWORK,
    "deep_cross": _NETWORK,
    "dense": _NETWORK,
    "boosted_trees": (
        _number("learning_rate", 0.01, 0.3, "log"),
        _whole("max_leaves", 4, 256),
        _whole("min_examples", 2, 100),
        _number("subsample", 0.5, 1.0),
        _number("column_share", 0.2, 1.0),
    ),
    "random_forest": (
        _number("column_share", 0.05, 1.0),
        _whole("min_examples", 1, 100),
        _number("subsample", 0.3, 1.0),
    ),
}
"""By architecture. None of the names need stand in `training.hyperparameters`: the recipe has them, or the trainer."""


def with_search_space(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in the parameters of a file's section `tuning` that names none, where the architecture's are known."""
    training, tuning = values.get("training"), values.get("tuning")
    if not isinstance(training, Mapping) or not isinstance(tuning, Mapping) or "parameters" in tuning:
        return values
    space = SEARCH_SPACES.get(str(training.get("model")))
    if space is None:
        return values
    parameters: list[JsonObject] = [item.model_dump(mode="json", exclude_defaults=True) for item in space]
    return {**values, "tuning": {**tuning, "parameters": parameters}}
