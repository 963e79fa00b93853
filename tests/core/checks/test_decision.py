"""A decision that cannot be positive, or a floor that stops nothing, is said before anything is paid for."""

from __future__ import annotations

import pytest

from retraining.core.checks.dataset import constant_score, decision_findings
from retraining.core.documents.checks import LabelStatistics
from retraining.core.spec.model import ModelSpec
from tests.support.small_decision import decide, failed, scores
from tests.support.small_model import make_plan, make_spec, make_statistics


def judged(metric: str = "auc", **changes: object) -> ModelSpec:
    """The small model with another section `evaluation`."""
    return make_spec(evaluation={"metric": metric, "promote": {"min_examples": 10}, **changes})


def words(spec: ModelSpec, **changes: object) -> dict[str, str]:
    """Findings by check, but that there are few positives; all only warn."""
    found = list(decision_findings(spec, make_statistics(make_plan(spec), **changes)))
    assert all(item.severity == "warn" for item in found)
    return {item.check: item.message for item in found if item.check != "min_evidence"}


@pytest.mark.parametrize(
    ("metric", "rows", "rate", "expected"),
    [
        ("auc", 30, 0.2, "6 positives are too few to judge auc by"),
        ("log_loss", 1000, 0.99, "10 negatives are too few to judge log_loss by"),
        ("auc", 100, 0.2, None),
    ],
)
def test_too_few_positives_are_said_before_anything_is_paid(metric, rows, rate, expected) -> None:
    spec = judged(metric, **({"max_value": 0.5} if metric == "log_loss" else {"min_value": 0.6}))
    counted = make_statistics(make_plan(spec), rows={"train": 80, "validation": 10, "test": rows}, rate=rate)
    found = [item.message for item in decision_findings(spec, counted) if item.check == "min_evidence"]
    assert [message.split(",")[0] for message in found] == ([expected] if expected else [])
    assert all(message.endswith("lengthen data.test_days") for message in found)


@pytest.mark.parametrize("least", [30, 31])
def test_too_few_test_rows_are_said_where_the_gate_would_fail(least: int) -> None:
    """30 test rows: the finding is there exactly where the decision's gate is closed; lowering the bound opens it."""
    spec = judged(min_value=0.6, promote={"min_examples": least})
    closed = failed(decide(make_plan(spec), scores(0.9), rows=30)) == ["examples"]
    assert ("min_examples" in words(spec)) is closed
    assert closed is (least > 30)


def test_the_words_say_what_helps() -> None:
    """Both ways out."""
    said = words(judged(min_value=0.6, promote={"min_examples": 1000}))["min_examples"]
    assert "30 test examples" in said
    assert "data.test_days" in said
    assert "evaluation.promote.min_examples" in said


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ((0.2, None), {"auc": 0.5, "accuracy": 0.8, "log_loss": 0.5004, "brier": 0.16, "pr_auc": 0.2}),
        ((None, (6, 3, 1)), {"auc": 0.5, "accuracy": 0.6, "log_loss": 0.8979, "brier": 0.54, "macro_f1": 0.25}),
        ((None, (5, 3, 1, 1)), {"balanced_accuracy": 0.25, "top3_accuracy": 0.9}),
        ((None, (1, 3)), {"brier": 0.375}),
        ((0.0, None), {"auc": 0.5, "accuracy": 1.0, "log_loss": 0.0, "brier": 0.0, "pr_auc": 0.0}),
    ],
    ids=["binary", "classes", "four classes", "two of several", "one class"],
)
def test_what_a_constant_model_scores(label, expected) -> None:
    """By the metrics' definitions."""
    mean, counts = label
    statistics = LabelStatistics(mean=mean, nulls=0, counts=counts)
    assert {metric: constant_score(metric, statistics) for metric in expected} == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("label", "costs", "expected"),
    [
        ((0.2, None), ((0, 1), (10, 0)), 0.8),  # yes to all: the negatives cost 1
        ((0.05, None), ((0, 1), (10, 0)), 0.5),  # no to all: the positives cost 10
        ((None, (6, 3, 1)), ((0, 1, 1), (1, 0, 1), (20, 20, 0)), 0.9),
        ((None, (6, 3, 1)), (), None),
    ],
)
def test_what_the_cheapest_constant_answer_costs(label, costs, expected) -> None:
    mean, counts = label
    found = constant_score("cost", LabelStatistics(mean=mean, nulls=0, counts=counts), costs)
    assert found == (None if expected is None else pytest.approx(expected))


def test_a_ceiling_that_the_same_answer_for_all_stays_under() -> None:
    """Of 0.2 positives yes to all costs 0.8."""
    label = {"name": "late", "kind": "binary", "costs": {"false_positive": 1, "false_negative": 10}}
    for ceiling, is_dead in ((0.8, True), (0.79, False)):
        evaluation = {"metric": "cost", "max_value": ceiling, "promote": {"min_examples": 10}}
        said = words(make_spec(label=label, evaluation=evaluation))
        assert ("the same has cost 0.800" in said.get("floor", "")) is is_dead


def test_without_a_label_nothing_is_said() -> None:
    """Other checks block then."""
    assert constant_score("auc", LabelStatistics(mean=None, nulls=3)) is None
    assert words(judged(min_value=0.4), rows={}) == {}


@pytest.mark.parametrize(
    ("metric", "dead", "alive"),
    [
        ("auc", {"min_value": 0.5}, {"min_value": 0.51}),
        ("accuracy", {"min_value": 0.8}, {"min_value": 0.81}),
        ("log_loss", {"max_value": 0.6}, {"max_value": 0.5}),
        ("brier", {"max_value": 0.17}, {"max_value": 0.15}),
    ],
)
def test_a_floor_that_a_constant_model_reaches(metric, dead, alive) -> None:
    """The label rate is 0.2. What the words say mends it."""
    said = words(judged(metric, **dead))["floor"]
    assert f"the same has {metric}" in said
    assert "the floor stops nothing" in said
    assert words(judged(metric, **alive)) == {}


@pytest.mark.parametrize(
    ("metric", "floor", "way_out"),
    [("auc", {"min_value": 65}, "lower it"), ("log_loss", {"max_value": -0.1}, "raise it")],
)
def test_a_floor_out_of_reach(metric, floor, way_out) -> None:
    """A percentage, a sign."""
    said = words(judged(metric, **floor))["floor"]
    assert said.endswith(f": {way_out}")
