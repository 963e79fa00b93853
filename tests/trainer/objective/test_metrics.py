"""Metrics against values worked out by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.differences import bootstrap_difference
from trainer.objective.class_metrics import measure_scores
from trainer.objective.metrics import (
    Ranking,
    auc,
    confusion,
    count_labels,
    macro_auc,
    measure_baseline,
)


def array(*values: float) -> np.ndarray:
    return np.array(values, np.float64)


def pairs_auc(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float | None:
    """The definition: over all pairs of a positive and a negative."""
    won = total = 0.0
    for (y1, s1, w1), (y0, s0, w0) in itertools.product(zip(labels, scores, weights, strict=True), repeat=2):
        if y1 == 1 and y0 == 0:
            total += w1 * w0
            won += w1 * w0 * (1 if s1 > s0 else 0.5 if s1 == s0 else 0)
    return won / total if total else None


def test_metrics_of_four_examples() -> None:
    found = measure_scores(array(0, 0, 1, 1), array(0.1, 0.4, 0.35, 0.8))
    assert found.auc == pytest.approx(3 / 4)
    assert found.accuracy == pytest.approx(3 / 4)
    assert found.brier == pytest.approx((0.01 + 0.16 + 0.65**2 + 0.04) / 4)
    assert found.log_loss == pytest.approx(-(math.log(0.9) + math.log(0.6) + math.log(0.35) + math.log(0.8)) / 4)


def test_ties_count_half() -> None:
    assert measure_scores(array(0, 1, 0, 1), array(0.5, 0.5, 0.5, 0.5)).auc == 0.5
    assert measure_scores(array(0, 1, 1), array(0.2, 0.2, 0.9)).auc == pytest.approx(0.75)


def test_auc_is_not_defined_for_one_class() -> None:
    assert measure_scores(array(1, 1), array(0.2, 0.9)).auc is None
    assert measure_scores(array(0), array(0.2)).auc is None


def test_a_certain_mistake_costs_a_finite_loss() -> None:
    assert measure_scores(array(1, 0), array(0, 0)).log_loss == pytest.approx(-math.log(1e-7) / 2, rel=1e-6)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=20))
def test_auc_is_the_share_of_pairs_also_with_weights(examples: list[tuple[int, int, int]]) -> None:
    labels, scores, weights = (np.array(column, np.float64) for column in zip(*examples, strict=True))
    found, wanted = auc(labels, Ranking.of(scores), weights), pairs_auc(labels, scores, weights)
    assert (found is None) == (wanted is None)
    if wanted is not None:
        assert found == pytest.approx(wanted)


def test_the_baseline_predicts_the_rate() -> None:
    found = measure_baseline(array(1, 0, 0, 0))
    assert found.accuracy == 0.75
    assert found.log_loss == pytest.approx(-(math.log(0.25) + 3 * math.log(0.75)) / 4)


def compare(metric: str = "auc", **changes: object):
    random = np.random.default_rng(5)
    labels = (random.random(2000) < 0.3).astype(np.float64)
    good = np.clip(labels * 0.2 + random.random(2000) * 0.8, 0, 1)
    noise = np.clip(good + random.normal(0, 0.3, 2000), 0, 1)
    settings = {"metric": metric, "samples": 200, "seed": 1, "confidence": 0.9, **changes}
    return labels, good, noise, bootstrap_difference(labels, good, noise, **settings)


@pytest.mark.parametrize("metric", ["auc", "log_loss", "accuracy", "brier"])
def test_the_difference_lies_inside_its_interval_and_has_the_metrics_own_sign(metric: str) -> None:
    labels, good, noise, found = compare(metric)
    exact = getattr(measure_scores(labels, good), metric) - getattr(measure_scores(labels, noise), metric)
    assert found.mean == pytest.approx(exact)
    assert found.low < found.mean < found.high
    assert (found.mean > 0) == (metric in ("auc", "accuracy"))


def test_a_bootstrap_is_decided_by_its_seed() -> None:
    assert compare()[3] == compare()[3]
    assert compare()[3].low != compare(seed=2)[3].low


def test_more_confidence_makes_a_wider_interval() -> None:
    narrow, wide = compare(confidence=0.5)[3], compare(confidence=0.99)[3]
    assert wide.low < narrow.low < narrow.high < wide.high


def test_a_model_against_itself_differs_by_nothing() -> None:
    labels, good, _, _ = compare()
    found = bootstrap_difference(labels, good, good, metric="auc", samples=100, seed=1, confidence=0.9)
    assert (found.mean, found.low, found.high) == (0, 0, 0)


def test_without_both_classes_there_is_no_difference_of_auc() -> None:
    assert (
        bootstrap_difference(
            array(1, 1), array(0.1, 0.2), array(0.3, 0.4), metric="auc", samples=100, seed=1, confidence=0.9
        )
        is None
    )


# --- several classes ------------------------------------------------------------------------------------------------

LABELS = array(0, 1, 2, 1)
SCORES = np.array([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.2, 0.6, 0.2]])


def test_metrics_of_three_classes() -> None:
    found = measure_scores(LABELS, SCORES)
    assert found.accuracy == 0.75
    assert found.log_loss == pytest.approx(-(math.log(0.7) + math.log(0.3) + math.log(0.8) + math.log(0.6)) / 4)
    wrong = [0.09 + 0.04 + 0.01, 0.25 + 0.49 + 0.04, 0.01 + 0.01 + 0.04, 0.04 + 0.16 + 0.04]
    assert found.brier == pytest.approx(sum(wrong) / 4)
    # Class 0: 3 of 3 pairs; 1: 4 of 4; 2: 3 of 3.
    assert found.auc == 1.0


def test_two_classes_side_by_side_are_the_binary_metrics() -> None:
    """But for the Brier score, which counts both columns."""
    random = np.random.default_rng(2)
    labels, scores = (random.random(50) < 0.4).astype(np.float64), random.random(50)
    binary, both = measure_scores(labels, scores), measure_scores(labels, np.stack([1 - scores, scores], axis=1))
    assert both.auc == pytest.approx(binary.auc)
    assert both.log_loss == pytest.approx(binary.log_loss)
    assert both.accuracy == binary.accuracy
    assert both.brier == pytest.approx(2 * binary.brier)
    assert measure_baseline(labels, 2).log_loss == pytest.approx(measure_baseline(labels).log_loss)


def test_a_class_that_nobody_has_is_left_out_of_auc() -> None:
    assert measure_scores(array(0, 1), np.array([[0.6, 0.3, 0.1], [0.4, 0.5, 0.1]])).auc == 1.0
    assert measure_scores(array(2, 2), np.array([[0.6, 0.3, 0.1], [0.4, 0.5, 0.1]])).auc is None
    rankings = [Ranking.of(SCORES[:, index]) for index in range(3)]
    assert macro_auc(LABELS, rankings, array(1, 0, 0, 0)) is None


def test_the_baseline_predicts_the_shares() -> None:
    found = measure_baseline(LABELS, 4)
    assert found.accuracy == 0.5
    assert found.log_loss == pytest.approx(-(math.log(0.25) / 2 + math.log(0.5) / 2))
    assert count_labels(LABELS, 4).tolist() == [1, 2, 1, 0]


def test_answers_are_counted_by_class() -> None:
    assert confusion(LABELS, SCORES).tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("metric", ["auc", "log_loss", "accuracy", "brier"])
def test_the_difference_of_classes_lies_inside_its_interval(metric: str) -> None:
    random = np.random.default_rng(4)
    labels = random.integers(0, 3, 600).astype(np.float64)
    good = random.random((600, 3)) + 1.5 * np.eye(3)[labels.astype(int)]
    noise = good + random.normal(0, 0.7, (600, 3)) ** 2
    good, noise = (scores / scores.sum(axis=1, keepdims=True) for scores in (good, noise))
    found = bootstrap_difference(labels, good, noise, metric=metric, samples=100, seed=1, confidence=0.9)
    exact = getattr(measure_scores(labels, good), metric) - getattr(measure_scores(labels, noise), metric)
    assert found.mean == pytest.approx(exact)
    assert found.low < found.mean < found.high
    assert (found.mean > 0) == (metric in ("auc", "accuracy"))
