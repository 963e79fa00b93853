"""What errors cost, in the file: of two classes and of several, and the metric that counts it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from retraining.core.spec.features import class_count, cost_matrix, deciding_metrics
from retraining.core.spec.model import ModelSpec
from tests.support.small_model import make_spec, spec_values

BY_COST: dict[str, Any] = {"metric": "cost", "max_value": 0.9, "promote": {"max_slice_loss": 0.1}}
ERRORS = {"false_positive": 1, "false_negative": 10}


def make(evaluation: dict[str, Any] | None = None, **label: Any) -> ModelSpec:
    """The small model with another label."""
    evaluation = BY_COST if evaluation is None else evaluation
    return make_spec(label={"name": "late", "kind": "binary", **label}, evaluation=evaluation)


def several(costs: Any, classes: Any = ("cat", "dog", "lynx"), **changes: Any) -> ModelSpec:
    """The same with several classes."""
    named = list(classes) if isinstance(classes, tuple) else classes
    return make(kind="multiclass", classes=named, costs=costs, **changes)


def test_models_are_compared_by_cost_where_the_label_has_costs() -> None:
    assert "cost" in deciding_metrics(make(costs=ERRORS).label)
    assert cost_matrix(make(costs=ERRORS).label) == ((0, 1), (10, 0))
    assert "cost" not in deciding_metrics(make_spec().label)
    assert cost_matrix(make_spec().label) == ()


def test_what_is_not_said_costs_1() -> None:
    label = several({"lynx": {"cat": 5, "dog": 0}}).label
    assert cost_matrix(label) == ((0, 1, 1), (1, 0, 1), (5, 0, 0))
    assert "cost" in deciding_metrics(label)


def test_classes_that_are_numbers_are_keys_as_they_stand_in_yaml() -> None:
    costs = yaml.safe_load("{0: {2: 5}, 2: {1: 0.5}}")
    spec = several(costs, classes=3)
    assert cost_matrix(spec.label) == ((0, 1, 5), (1, 0, 1), (1, 0.5, 0))
    assert ModelSpec.model_validate_json(spec.model_dump_json()) == spec
    assert class_count(spec.label) == 3


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ({}, "metric cost is of labels with costs: say in label.costs"),
        ({"costs": {"false_positive": 1}}, "costs.false_negative"),
        ({"costs": {**ERRORS, "false_positive": 0}}, "greater than 0"),
        ({"costs": {**ERRORS, "missed": 1}}, "missed"),
        ({"kind": "multiclass", "classes": 3}, "metric cost is of labels with costs: say in label.costs"),
        ({"kind": "multiclass", "classes": 3, "costs": {}}, "at least 1 item"),
        ({"kind": "multiclass", "classes": 3, "costs": {3: {0: 1}}}, "costs has class '3'; expected one of 0, 1, 2"),
        ({"kind": "multiclass", "classes": 3, "costs": {1: {"x": 1}}}, "costs has class 'x'; expected one of 0, 1, 2"),
        ({"kind": "multiclass", "classes": 3, "costs": {1: {1: 2}}}, "a right answer costs nothing: remove it"),
        ({"kind": "multiclass", "classes": 3, "costs": {1: {0: -2}}}, "greater than or equal to 0"),
        ({"kind": "multiclass", "classes": 2, "costs": {0: {1: 0}, 1: {0: 0}}}, "makes every error free"),
        ({"kind": "multiclass", "classes": 101, "costs": {0: {1: 2}}}, "at most 100 classes, and there are 101"),
        ({"kind": "multiclass", "classes": ["no", "yes"], "costs": {True: {"no": 2}}}, "costs"),
        ({"kind": "regression", "costs": ERRORS}, "costs"),
    ],
)
def test_costs_that_say_nothing_are_refused(label: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make(**label)


def test_an_amount_of_cost_has_no_default() -> None:
    """No number suits every unit."""
    with pytest.raises(ValueError, match=r"cost is in the unit of label.costs, of which promote.max_slice_loss has no"):
        make({"metric": "cost", "max_value": 1, "slices": ["carrier"]}, costs=ERRORS)
    assert make({**BY_COST, "promote": {"min_gain": 25, "max_slice_loss": 1}}, costs=ERRORS).evaluation.floor == 0.9


def test_a_file_without_costs_is_stored_as_before() -> None:
    assert "costs" not in make_spec().label.model_dump()
    assert spec_values()["label"].keys() == {"name", "kind"}
