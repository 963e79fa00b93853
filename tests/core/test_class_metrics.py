"""The trainer's metrics of classes are scikit-learn's, which is not in the trainer's environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.calibration import calibration_curve

from trainer.contract.metrics import LIKELIEST
from trainer.objective.class_metrics import measure_scores, weigh_scores

Floats = np.ndarray[Any, np.dtype[np.float64]]
CLOSE = 1e-6
SIXTEENTHS = st.integers(0, 16).map(lambda part: part / 16)
"""Few values, so that there are ties."""


def columns(rows: list[tuple[float, ...]]) -> list[Floats]:
    return [np.array(column, np.float64) for column in zip(*rows, strict=True)]


@st.composite
def binary(draw: st.DrawFn) -> tuple[Floats, Floats, Floats]:
    """Labels, scores and weights of up to 40 examples, perhaps of one class."""
    row = st.tuples(st.integers(0, 1), SIXTEENTHS, st.integers(1, 5))
    labels, scores, weights = columns(draw(st.lists(row, min_size=1, max_size=40)))
    return labels, scores, weights


@st.composite
def several(draw: st.DrawFn) -> tuple[Floats, Floats, Floats]:
    """Labels, probabilities [n, K] and weights of two to six classes."""
    classes, n = draw(st.integers(2, 6)), draw(st.integers(1, 30))
    labels = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)), np.float64)
    raw = draw(st.lists(st.integers(1, 9), min_size=n * classes, max_size=n * classes))
    scores = np.array(raw, np.float64).reshape(n, classes)
    weights = np.array(draw(st.lists(st.integers(1, 5), min_size=n, max_size=n)), np.float64)
    return labels, scores / scores.sum(axis=1, keepdims=True), weights


def correlation(labels: Floats, answers: Floats, weights: Floats) -> float:
    """Scikit-learn warns where there is one value only."""
    if len({*labels, *answers}) == 1:
        return 0.0
    return float(metrics.matthews_corrcoef(labels, answers, sample_weight=weights))


@settings(deadline=None)
@given(binary())
def test_two_classes(examples: tuple[Floats, Floats, Floats]) -> None:
    labels, scores, weights = examples
    found = measure_scores(labels, scores, weights)
    clipped = np.clip(scores, 1e-7, 1 - 1e-7)
    assert found.log_loss == pytest.approx(
        metrics.log_loss(labels, clipped, sample_weight=weights, labels=[0, 1]), abs=CLOSE
    )
    assert found.brier == pytest.approx(np.average((scores - labels) ** 2, weights=weights), abs=CLOSE)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(labels, scores >= 0.5, sample_weight=weights))
    assert found.mcc == pytest.approx(correlation(labels, (scores >= 0.5).astype(float), weights), abs=CLOSE)
    for value, beta in ((found.f1, 1), (found.f2, 2), (found.f0_5, 0.5)):
        assert (value is None) is (1 not in labels)
        if value is not None:
            expected = metrics.fbeta_score(labels, scores >= 0.5, beta=beta, sample_weight=weights, zero_division=0)
            assert value == pytest.approx(expected, abs=CLOSE)
    both = len(set(labels)) == 2
    assert (found.auc is None) is not both
    if both:
        assert found.auc == pytest.approx(metrics.roc_auc_score(labels, scores, sample_weight=weights), abs=CLOSE)
    assert (found.pr_auc is None) is (1 not in labels)
    if 1 in labels:
        expected = metrics.average_precision_score(labels, scores, sample_weight=weights)
        assert found.pr_auc == pytest.approx(expected, abs=CLOSE)


@settings(deadline=None)
@given(binary())
def test_calibration_error_is_that_of_scikit_learns_curve(examples: tuple[Floats, Floats, Floats]) -> None:
    labels, scores, weights = examples
    rows = np.repeat(np.arange(len(labels)), weights.astype(int))
    labels, repeated = labels[rows], scores[rows]
    share, mean = calibration_curve(labels, repeated, n_bins=15)
    sizes = np.bincount(np.searchsorted(np.linspace(0, 1, 16)[1:-1], repeated))
    expected = np.average(np.abs(share - mean), weights=sizes[sizes > 0])
    assert measure_scores(examples[0], scores, weights).calibration_error == pytest.approx(expected, abs=CLOSE)


@settings(deadline=None)
@given(several())
def test_more_classes(examples: tuple[Floats, Floats, Floats]) -> None:
    labels, scores, weights = examples
    classes = scores.shape[1]
    found, answers = measure_scores(labels, scores, weights), scores.argmax(axis=1)
    there = sorted(set(labels))
    recalls = metrics.recall_score(labels, answers, labels=there, average=None, sample_weight=weights)
    assert found.balanced_accuracy == pytest.approx(np.mean(recalls), abs=CLOSE)
    expected = metrics.f1_score(labels, answers, average="macro", sample_weight=weights, zero_division=0)
    assert found.macro_f1 == pytest.approx(expected, abs=CLOSE)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(labels, answers, sample_weight=weights))
    assert found.mcc == pytest.approx(correlation(labels, answers, weights), abs=CLOSE)
    expected = metrics.log_loss(labels, scores, sample_weight=weights, labels=range(classes))
    assert found.log_loss == pytest.approx(expected, abs=CLOSE)
    for name, most in LIKELIEST.items():
        value = getattr(found, name)
        assert (value is None) is (classes <= most)
        if value is not None:
            # Of equal scores scikit-learn takes the last class, so it is asked with the classes the other way round.
            expected = metrics.top_k_accuracy_score(
                classes - 1 - labels, scores[:, ::-1], k=most, sample_weight=weights, labels=range(classes)
            )
            assert value == pytest.approx(expected, abs=CLOSE)


@settings(deadline=None)
@given(st.one_of(binary(), several()))
def test_a_weight_of_two_is_the_example_twice(examples: tuple[Floats, Floats, Floats]) -> None:
    labels, scores, weights = examples
    rows = np.repeat(np.arange(len(labels)), weights.astype(int))
    repeated = vars(measure_scores(labels[rows], scores[rows]))
    for name, value in vars(measure_scores(labels, scores, weights)).items():
        assert value == (None if repeated[name] is None else pytest.approx(repeated[name], abs=CLOSE)), name


@settings(deadline=None)
@given(st.one_of(binary(), several()), st.data())
def test_cost_is_of_the_cheapest_answers(examples: tuple[Floats, Floats, Floats], data: st.DataObject) -> None:
    """By scikit-learn's confusion, and answers that are found one by one."""
    labels, scores, weights = examples
    classes = 2 if scores.ndim == 1 else scores.shape[1]
    amounts = st.lists(st.integers(1, 20), min_size=classes, max_size=classes)
    costs = np.array([data.draw(amounts) for _ in range(classes)], np.float64) * (1 - np.eye(classes))
    shares = np.stack([1 - scores, scores], axis=1) if scores.ndim == 1 else scores
    expected_costs = [
        [sum(share * costs[right, answer] for right, share in enumerate(row)) for answer in range(classes)]
        for row in shares
    ]
    found = measure_scores(labels, scores, weights, costs).cost
    near = [
        [costs[int(label), at] for at in range(classes) if row[at] < min(row) + 1e-12]
        for label, row in zip(labels, expected_costs, strict=True)
    ]
    least, most = (np.average([pick(each) for each in near], weights=weights) for pick in (min, max))
    assert least - CLOSE <= found <= most + CLOSE  # of equally cheap ones rounding decides
    if all(len(each) == 1 for each in near):
        answers = np.argmin(expected_costs, axis=1)
        counted = metrics.confusion_matrix(labels, answers, sample_weight=weights, labels=range(classes))
        assert found == pytest.approx((counted * costs).sum() / weights.sum(), abs=CLOSE)


def test_of_two_equally_cheap_answers_yes_is_given() -> None:
    """With 1 and 3 from a quarter on."""
    costs = np.array([[0.0, 1.0], [3.0, 0.0]])
    assert measure_scores(np.array([1.0]), np.array([0.25]), costs=costs).cost == 0
    assert measure_scores(np.array([0.0]), np.array([0.25]), costs=costs).cost == 1
    assert measure_scores(np.array([1.0]), np.array([0.2499]), costs=costs).cost == 3


def test_without_costs_there_is_no_cost() -> None:
    assert measure_scores(np.array([0.0, 1.0]), np.array([0.2, 0.9])).cost is None


def test_what_a_kind_of_label_does_not_have_is_null() -> None:
    labels, scores = np.array([0.0, 1.0]), np.array([0.2, 0.9])
    assert measure_scores(labels, scores).macro_f1 is None
    several = measure_scores(labels, np.stack([1 - scores, scores], axis=1))
    assert (several.pr_auc, several.f1) == (None, None)


def test_without_weight_on_a_positive_the_precision_curve_has_no_area() -> None:
    weigh = weigh_scores("pr_auc", np.array([0.0, 1.0]), np.array([0.2, 0.9]))
    assert weigh(np.array([1.0, 0.0])) is None
    assert weigh(np.array([0.0, 2.0])) == 1
