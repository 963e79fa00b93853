"""Differences of two models, whole and by slice, and how sure they are."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from trainer.objective.bootstrap import Pair, Resampling, bootstrap_metrics, bootstrap_slices

RESAMPLING = Resampling(samples=200, seed=1, confidence=0.9)


def make_pair(n: int = 2000, noise: float = 0.3) -> Pair:
    """A model, and the same one with noise."""
    random = np.random.default_rng(5)
    labels = (random.random(n) < 0.3).astype(np.float64)
    good = np.clip(labels * 0.2 + random.random(n) * 0.8, 0, 1)
    noisy = np.clip(good + random.normal(0, noise, n), 0, 1)
    return Pair(labels=labels, challenger=good, champion=noisy)


def test_every_metric_sees_the_same_samples() -> None:
    pair = make_pair()
    both = bootstrap_metrics(pair, ["auc", "brier"], RESAMPLING)
    assert both["auc"] == bootstrap_metrics(pair, ["auc"], RESAMPLING)["auc"]
    assert both["brier"] == bootstrap_metrics(pair, ["brier"], RESAMPLING)["brier"]


def test_the_standard_error_of_a_mean_is_the_one_of_the_formula() -> None:
    pair = make_pair()
    found = bootstrap_metrics(pair, ["brier"], Resampling(samples=1000, seed=1, confidence=0.9))["brier"]
    differences = (pair.challenger - pair.labels) ** 2 - (pair.champion - pair.labels) ** 2
    assert found.deviation == pytest.approx(differences.std() / np.sqrt(len(differences)), rel=0.1)


def test_a_metric_that_is_not_defined_is_left_out() -> None:
    ones = Pair(labels=np.ones(50), challenger=np.linspace(0, 1, 50), champion=np.linspace(1, 0, 50))
    assert list(bootstrap_metrics(ones, ["r2", "mae"], RESAMPLING)) == ["mae"]


def test_a_slice_is_resampled_as_a_part_of_the_whole() -> None:
    """Its difference is that of its rows alone, and its interval about that of a sample of its rows."""
    pair, rows = make_pair(), np.arange(0, 2000, 2)
    (whole, _), (part, _) = bootstrap_slices(pair, "auc", [np.arange(2000), rows], RESAMPLING)
    assert whole == bootstrap_metrics(pair, ["auc"], RESAMPLING)["auc"]
    alone = bootstrap_metrics(pair.part(rows), ["auc"], RESAMPLING)["auc"]
    assert part is not None
    assert part.mean == alone.mean
    assert part.deviation == pytest.approx(alone.deviation, rel=0.2)


def test_a_slice_of_one_class_has_no_difference_of_auc() -> None:
    pair = make_pair()
    ((found, evidence),) = bootstrap_slices(pair, "auc", [np.flatnonzero(pair.labels == 1)], RESAMPLING)
    assert found is None
    assert (evidence.units, evidence.count) == ("negatives", 0)


def test_samples_that_leave_a_slice_out_do_not_count() -> None:
    """A slice of two rows is in about seven samples of eight."""
    two = Pair(labels=np.arange(100.0), challenger=np.arange(100.0) + 1, champion=np.arange(100.0))
    few = Resampling(samples=200, seed=1, confidence=0.9, min_rows=2)
    found, _ = bootstrap_slices(two, "mae", [np.array([7, 8])], few)[0]
    assert found is not None
    assert found.low == pytest.approx(found.mean) == pytest.approx(found.high)


def test_rows_of_one_group_are_drawn_together() -> None:
    """Each example five times over says no more than once: grouped, the standard error stays; ungrouped it falls."""
    pair = make_pair()
    five = pair.part(np.repeat(np.arange(2000), 5))
    once = bootstrap_metrics(pair, ["auc"], RESAMPLING)["auc"].deviation
    grouped = Resampling(samples=200, seed=1, confidence=0.9, groups=np.repeat(np.arange(2000), 5))
    together, apart = (bootstrap_metrics(five, ["auc"], each)["auc"].deviation for each in (grouped, RESAMPLING))
    assert together == pytest.approx(once)
    assert apart == pytest.approx(once / 5**0.5, rel=0.2)


def test_a_group_of_each_row_is_no_group() -> None:
    pair = make_pair()
    alone = Resampling(samples=200, seed=1, confidence=0.9, groups=np.arange(2000))
    assert bootstrap_metrics(pair, ["auc"], alone) == bootstrap_metrics(pair, ["auc"], RESAMPLING)


def test_memory_does_not_grow_with_samples_and_slices() -> None:
    """200,000 rows, 50 slices, 100 samples: well below a matrix of rows and samples, which is 160 MB."""
    pair = make_pair(200_000)
    slices = np.array_split(np.arange(200_000), 50)
    few = Resampling(samples=100, seed=1, confidence=0.9)
    tracemalloc.start()
    try:
        bootstrap_slices(pair, "brier", slices, few)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6


def test_weights_multiply_how_often_an_example_is_drawn() -> None:
    """A weight of 0 is as if the row were not there; one for all changes nothing."""
    pair, half = make_pair(400), np.arange(400) % 2
    alike = bootstrap_metrics(pair, ["auc"], Resampling(samples=50, seed=1, confidence=0.9, weights=np.full(400, 0.5)))
    plain = bootstrap_metrics(pair, ["auc"], Resampling(samples=50, seed=1, confidence=0.9))
    assert (alike["auc"].mean, alike["auc"].low) == pytest.approx((plain["auc"].mean, plain["auc"].low))
    weighted = Resampling(samples=50, seed=1, confidence=0.9, weights=half.astype(np.float64))
    found = bootstrap_metrics(pair, ["auc"], weighted)["auc"]
    part = bootstrap_metrics(pair.part(np.flatnonzero(half)), ["auc"], RESAMPLING)["auc"]
    assert found.mean == pytest.approx(part.mean)
