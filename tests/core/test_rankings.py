"""The trainer's metrics of order within groups are scikit-learn's, which is not in the trainer's environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from trainer.contract.documents import BinaryLabel, RegressionLabel
from trainer.objective.bootstrap import Pair, Resampling, bootstrap_metrics, bootstrap_slices, find_evidence
from trainer.objective.quality import measure_by
from trainer.objective.rankings import weigh_gains

Floats = np.ndarray[Any, np.dtype[np.float64]]
LEAST_GROUPS = 5


@st.composite
def ranked(draw: st.DrawFn) -> tuple[Floats, Floats, Any, Floats]:
    """Labels, answers with ties, groups of up to 15 rows in any order, and a weight of each group."""
    groups = draw(st.integers(1, 5))
    row = st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, groups - 1))
    labels, answers, of_row = zip(*draw(st.lists(row, min_size=1, max_size=40)), strict=True)
    weights = draw(st.lists(st.integers(0, 3), min_size=groups, max_size=groups))
    return np.array(labels, float), np.array(answers, float), np.array(of_row), np.array(weights, float)


@settings(deadline=None)
@given(ranked(), st.sampled_from([0, 1, 3, 10]))
def test_each_group_is_measured_as_by_scikit_learn(examples: tuple[Floats, Floats, Any, Floats], best: int) -> None:
    labels, answers, groups, weights = examples
    values, counted = [], []
    for group in np.unique(groups):
        own = groups == group
        if len(set(labels[own])) > 1 and weights[group]:  # any order of equal labels is right
            values.append(ndcg_score([labels[own]], [answers[own]], k=best or None))
            counted.append(weights[group])
    found = weigh_gains(labels, answers, groups, best)(weights[groups])
    assert found == (pytest.approx(np.average(values, weights=counted)) if values else None)


def test_labels_below_0_are_no_gains() -> None:
    assert weigh_gains(np.array([-1.0, 2.0]), np.array([1.0, 2.0]), np.array([0, 0]), 0)(np.ones(2)) is None


@pytest.mark.parametrize(
    "label",
    [BinaryLabel(name="clicked"), RegressionLabel(name="stars", loss="quantile", quantiles=(0.1, 0.5, 0.9))],
    ids=["binary", "quantiles"],
)
def test_it_is_one_of_the_metrics_where_there_are_groups(label: Any) -> None:
    """Of quantiles the median orders."""
    labels, answers, groups = np.array([1.0, 0.0, 0.0, 1.0]), np.array([0.9, 0.1, 0.8, 0.2]), np.array([0, 0, 1, 1])
    scores = answers if label.kind == "binary" else np.stack([answers * 0, answers, answers * 0 + 1], axis=1)
    measured = measure_by(label, labels, scores, None, groups)
    assert measured.ndcg == measured.ndcg10 == pytest.approx((1 + 1 / np.log2(3)) / 2)
    assert measure_by(label, labels, scores).ndcg is None


def test_the_better_order_surely_wins_and_groups_that_say_nothing_are_no_evidence() -> None:
    random = np.random.default_rng(3)
    groups = np.repeat(np.arange(60), 8)
    labels = np.where(groups < 30, np.arange(480) % 2, 1).astype(float)  # half of the groups: all the same
    answers = np.clip(labels * 0.5 + random.normal(0, 0.2, 480), 0, 1)
    pair = Pair.of(BinaryLabel(name="clicked"), labels, answers, random.random(480), groups)
    drawn = Resampling(samples=200, seed=1, confidence=0.95, groups=groups, min_groups=LEAST_GROUPS)
    evidence = find_evidence(pair, "ndcg10", drawn)
    assert (evidence.units, evidence.count) == ("groups with labels to order", 30)
    difference = bootstrap_metrics(pair, ["ndcg10"], drawn)["ndcg10"]
    assert 0 < difference.low < difference.mean < difference.high
    few = np.flatnonzero(groups > 26)
    ((nothing, short),) = bootstrap_slices(pair, "ndcg10", [few], drawn)
    assert nothing is None
    assert short.count < LEAST_GROUPS


def test_without_groups_no_order_is_compared() -> None:
    """As on the frozen set, which is read without the group's column."""
    labels = np.tile([0.0, 1.0], 50)
    pair = Pair(labels=labels, challenger=labels, champion=1 - labels)
    assert bootstrap_metrics(pair, ["ndcg"], Resampling(samples=20, seed=1, confidence=0.95)) == {}
