"""How often a model answers what, for the monitor."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.contract.documents import BinaryLabel, MulticlassLabel, RegressionLabel
from trainer.objective.quality import count_answers

LATE = BinaryLabel(name="late", kind="binary")


def test_scores_of_a_rare_event_are_told_apart() -> None:
    """Nine hundred and ninety of a thousand are below a fifteenth: equal bins would have them all in one."""
    scores = np.concatenate([np.linspace(0.0001, 0.02, 990), np.linspace(0.5, 0.9, 10)])
    counted = count_answers(LATE, np.random.default_rng(1).permutation(scores))
    assert counted.counts == (0, *[50] * 20, 0)
    assert sum(edge < 1 / 15 for edge in counted.edges) == 20
    assert counted.edges[0] < scores.min()
    assert counted.edges[-1] > scores.max()


def test_many_equal_answers_stay_together_however_they_are_rounded() -> None:
    scores = np.repeat([0.1, 1 / 3, 0.7], [600, 300, 100])
    counted = count_answers(LATE, scores)
    assert counted.counts == (0, 600, 300, 100, 0)
    for served in (scores.astype(np.float32).astype(np.float64), scores.round(6)):
        bins = np.searchsorted(counted.edges, served, side="right")
        assert np.bincount(bins, minlength=5).tolist() == list(counted.counts)


@pytest.mark.parametrize("constant", [0.0, 0.25, -7e6])
def test_one_answer_has_a_bin_of_its_own(constant: float) -> None:
    label = RegressionLabel(name="delay", kind="regression")
    counted = count_answers(label, np.full(30, constant))
    assert counted.counts == (0, 30, 0)
    assert counted.edges[0] < constant < counted.edges[1]


def test_quantiles_are_counted_by_their_median_and_classes_by_the_likeliest() -> None:
    label = RegressionLabel(name="delay", kind="regression", quantiles=(0.1, 0.5, 0.9))
    counted = count_answers(label, np.array([[0.0, 5.0, 9.0], [1.0, 6.0, 90.0]]))
    assert counted.counts == (0, 1, 1, 0)
    assert 5 < counted.edges[1] < 6
    gates = count_answers(MulticlassLabel(name="gate", kind="multiclass", classes=3), np.eye(3)[[0, 2, 2]])
    assert (gates.edges, gates.counts) == ((), (1, 0, 2))


def test_days_are_counted_by_the_bins_of_all() -> None:
    """In their order; of a label with more than 100 classes none is, and 90 days at most."""
    scores = np.random.default_rng(2).random(300)
    days = [np.arange(0, 100), np.arange(100, 300)]
    counted = count_answers(LATE, scores, days)
    assert counted.by_day is not None
    assert np.sum(counted.by_day, axis=0).tolist() == list(counted.counts)
    assert [sum(day) for day in counted.by_day] == [100, 200]
    assert counted.by_day[0] == tuple(np.histogram(scores[:100], [-1, *counted.edges, 2])[0].tolist())
    assert count_answers(LATE, scores).by_day is None
    assert count_answers(LATE, scores, []).by_day == ()
    many = count_answers(LATE, scores, np.split(np.arange(300), 100)).by_day
    assert many is not None
    assert len(many) == 90
    gates = MulticlassLabel(name="gate", kind="multiclass", classes=101)
    assert count_answers(gates, np.eye(101), days[:1]).by_day == ()
