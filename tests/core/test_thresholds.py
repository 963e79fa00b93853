"""Thresholds and the rates at them are scikit-learn's, which is not in the trainer's environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from trainer.contract.documents import ThresholdRule
from trainer.objective.bootstrap import Resampling
from trainer.objective.thresholds import choose_threshold, measure_at

Floats = np.ndarray[Any, np.dtype[np.float64]]
CLOSE = 1e-6
RESAMPLING = Resampling(samples=100, seed=3, confidence=0.9)
SIXTEENTHS = st.integers(0, 16).map(lambda part: part / 16)
"""Few values, so that there are ties."""


@st.composite
def examples(draw: st.DrawFn) -> tuple[Floats, Floats, Floats]:
    """Labels, scores and weights of up to 40 examples, perhaps of one class."""
    row = st.tuples(st.integers(0, 1), SIXTEENTHS, st.floats(0.25, 5))
    rows = draw(st.lists(row, min_size=1, max_size=40))
    labels, scores, weights = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    return labels, scores, weights


def rates_at(threshold: float, labels: Floats, scores: Floats, weights: Floats) -> tuple[float, float, float]:
    """Precision, recall and F1 by scikit-learn, 0 where they are not defined."""
    found = metrics.precision_recall_fscore_support(
        labels, scores >= threshold, average="binary", sample_weight=weights, zero_division=0
    )
    return found[0], found[1], found[2]


def candidates(scores: Floats) -> list[float]:
    return [*sorted(set(scores.tolist())), float(np.nextafter(scores.max(), 9))]


@settings(deadline=None)
@given(examples(), SIXTEENTHS)
def test_rates_and_confusion(rows: tuple[Floats, Floats, Floats], threshold: float) -> None:
    labels, scores, _ = rows
    found = measure_at(threshold, labels, scores, RESAMPLING)
    expected = rates_at(threshold, labels, scores, np.ones(len(labels)))
    for estimate, value in zip((found.precision, found.recall, found.f1), expected, strict=True):
        assert (estimate.value if estimate else 0.0) == pytest.approx(value, abs=CLOSE)
        assert estimate is None or 0 <= estimate.low <= estimate.high <= 1
    matrix = metrics.confusion_matrix(labels, scores >= threshold, labels=[0, 1]).ravel().tolist()
    assert [found.true_negatives, found.false_positives, found.false_negatives, found.true_positives] == matrix
    assert (found.precision is None) is not bool((scores >= threshold).any())
    assert (found.recall is None) is (1 not in labels)


@settings(deadline=None)
@given(examples(), st.sampled_from(["recall", "precision"]), st.integers(1, 16).map(lambda part: part / 16))
def test_the_other_rate_is_as_great_as_it_can_be(rows: tuple[Floats, Floats, Floats], rule: Any, least: float) -> None:
    labels, scores, weights = rows
    chosen = choose_threshold(ThresholdRule(rule=rule, at=least), labels, scores, weights)
    known = [rates_at(each, labels, scores, weights) for each in candidates(scores)]
    wanted, best = (1, 0) if rule == "recall" else (0, 1)
    allowed = [each[best] for each in known if each[wanted] >= least + CLOSE]
    if chosen.threshold is None:
        assert not allowed
        assert "none reaches it" in chosen.message
        return
    found = rates_at(chosen.threshold, labels, scores, weights)
    assert found[wanted] >= least - CLOSE
    assert found[best] >= max(allowed, default=0.0) - CLOSE


@settings(deadline=None)
@given(examples())
def test_the_greatest_f1_is_that_of_the_precision_recall_curve(rows: tuple[Floats, Floats, Floats]) -> None:
    labels, scores, weights = rows
    chosen = choose_threshold(ThresholdRule(rule="max_f1"), labels, scores, weights)
    if 1 not in labels:
        assert chosen.threshold is None
        return
    precision, recall, _ = metrics.precision_recall_curve(labels, scores, sample_weight=weights)
    greatest = max(2 * p * r / (p + r) for p, r in zip(precision, recall, strict=True) if p + r)
    assert chosen.threshold is not None
    assert rates_at(chosen.threshold, labels, scores, weights)[2] == pytest.approx(greatest, abs=CLOSE)


@settings(deadline=None)
@given(examples(), st.sampled_from([(1, 1), (5, 1), (1, 20)]))
def test_no_other_threshold_costs_less(rows: tuple[Floats, Floats, Floats], prices: tuple[int, int]) -> None:
    labels, scores, weights = rows

    def cost(threshold: float) -> float:
        matrix = metrics.confusion_matrix(labels, scores >= threshold, labels=[0, 1], sample_weight=weights)
        return float(matrix[0, 1] * prices[0] + matrix[1, 0] * prices[1])

    rule = ThresholdRule(rule="costs", false_positive=prices[0], false_negative=prices[1])
    chosen = choose_threshold(rule, labels, scores, weights).threshold
    assert chosen is not None
    assert cost(chosen) <= min(map(cost, candidates(scores))) + CLOSE


def test_of_equally_good_thresholds_the_highest_is_taken() -> None:
    labels, scores = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.1, 0.4, 0.4, 0.8])
    rules = {"recall": 0.5, "precision": 0.6, "max_f1": None}
    chosen = {
        name: choose_threshold(ThresholdRule(rule=name, at=at), labels, scores).threshold for name, at in rules.items()
    }
    assert chosen == {"recall": 0.8, "precision": 0.4, "max_f1": 0.4}


def test_a_rule_that_no_threshold_obeys_says_what_is_best() -> None:
    labels, scores = np.array([1.0, 1.0, 0.0]), np.array([0.2, 0.3, 0.9])
    chosen = choose_threshold(ThresholdRule(rule="precision", at=0.99), labels, scores)
    assert chosen.threshold is None
    assert chosen.message == (
        "precision>=0.99 on 3 validation examples: none reaches it, precision 0.6667, recall 1, F1 0.8 at 0.2"
    )


def test_what_lies_above_all_scores_of_32_bits_is_no_yes() -> None:
    """Every yes costs too much, and the next number of 64 bits is none of 32."""
    scores = np.array([0.25, 0.5], np.float32)
    rule = ThresholdRule(rule="costs", false_positive=1000.0, false_negative=1.0)
    chosen = choose_threshold(rule, np.array([1.0, 0.0]), scores).threshold
    assert chosen is not None
    assert measure_at(chosen, np.array([1.0, 0.0]), scores, RESAMPLING).precision is None
