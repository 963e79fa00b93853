"""What a measurement rests on, and that an interval of little evidence is not given rather than wrong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from trainer.contract.documents import Difference, Metric
from trainer.objective.bootstrap import Pair, Resampling, bootstrap_metrics, bootstrap_slices, find_evidence

Array = npt.NDArray[np.float64]


def equal_models(labels: Array, random: np.random.Generator, effects: Array | float = 0.0) -> Pair:
    """Two models that are equally good: each the truth with noise of its own, and what a group does to one of them."""
    signal = random.normal(size=len(labels)) + labels
    first, second = (signal + 0.5 * random.normal(size=len(labels)) for _ in range(2))
    return Pair(labels=labels, challenger=first + effects * labels, champion=second)


def with_positives(positives: int, n: int = 120) -> Array:
    return (np.arange(n) < positives).astype(np.float64)


def resampling(seed: int, **changes: object) -> Resampling:
    return Resampling(**{"samples": 100, "seed": seed, "confidence": 0.95, **changes})


def promoted(found: dict[Metric, Difference]) -> bool:
    return "auc" in found and found["auc"].low > 0


@pytest.mark.parametrize("positives", [1, 2, 3, 20])
def test_equal_models_are_not_promoted_by_few_positives(positives: int) -> None:
    """At most 1 - confidence of them, 5 %, and three standard errors: it was 46 % of one positive."""
    random = np.random.default_rng(7)
    wins = sum(
        promoted(bootstrap_metrics(equal_models(with_positives(positives), random), ["auc"], resampling(seed)))
        for seed in range(200)
    )
    assert wins / 200 <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_equal_models_are_not_promoted_by_few_groups(count: int) -> None:
    """By groups that are to one model's advantage or the other's: it was 52 % of one group."""
    random, groups = np.random.default_rng(7), np.arange(400) % count
    wins = 0
    for seed in range(200):
        labels = (random.random(400) < 0.4).astype(np.float64)
        pair = equal_models(labels, random, random.normal(size=count)[groups])
        wins += promoted(bootstrap_metrics(pair, ["auc"], resampling(seed, groups=groups)))
    assert wins / 200 <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


@pytest.mark.parametrize(
    ("positives", "weights", "groups", "expected"),
    [
        (3, None, None, ("positives", 3, 3, 20)),
        (117, None, None, ("negatives", 3, 3, 20)),
        (60, None, None, ("positives", 60, 60, 20)),
        (0, None, None, ("positives", 0, 0, 20)),
        (60, np.where(np.arange(120) == 0, 1000, 1.0), None, ("positives", 60, 1.12, 20)),
        (60, np.where(np.arange(120) < 50, 0, 1.0), None, ("positives", 10, 10, 20)),
        (60, None, np.arange(120) % 6, ("groups with positives", 6, 6, 5)),
        (60, None, np.arange(120) // 15, ("groups with positives", 4, 4, 5)),
        (60, None, np.where(np.arange(120) % 10, 0, np.arange(120)), ("groups with positives", 6, 1.19, 5)),
    ],
    ids=["few", "few negatives", "enough", "none", "one counts most", "some do not", "groups", "four", "one of 90 %"],
)
def test_what_a_comparison_rests_on(positives, weights, groups, expected) -> None:
    pair = equal_models(with_positives(positives), np.random.default_rng(1))
    found = find_evidence(pair, "auc", resampling(1, weights=weights, groups=groups))
    assert (found.units, found.count, found.needed) == (expected[0], expected[1], expected[3])
    assert found.effective == pytest.approx(expected[2], rel=0.01)
    judged = bool(bootstrap_metrics(pair, ["auc", "log_loss"], resampling(1, weights=weights, groups=groups)))
    assert judged is (found.effective >= found.needed)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("auc", ("rows of class 2", 5)),
        ("macro_f1", ("rows of class 2", 5)),
        ("accuracy", ("rows outside the most frequent class", 35)),
    ],
)
def test_a_metric_that_gives_each_class_the_same_say_needs_rows_of_each(metric: Metric, expected) -> None:
    labels = np.repeat([0.0, 1.0, 2.0], [60, 30, 5])
    scores = np.random.default_rng(2).dirichlet(np.ones(3), 95)
    found = find_evidence(Pair(labels=labels, challenger=scores, champion=scores[::-1]), metric, resampling(1))
    assert (found.units, found.count) == expected


def test_a_number_needs_rows() -> None:
    labels = np.arange(12.0)
    found = find_evidence(Pair(labels=labels, challenger=labels, champion=labels + 1), "mae", resampling(1))
    assert (found.units, found.count, found.needed) == ("rows", 12, 20)


def test_a_slice_of_many_rows_and_few_positives_is_not_judged() -> None:
    labels = with_positives(63, 1000)
    slices = [np.arange(3, 500), np.concatenate([[0, 1, 2], np.arange(500, 1000)])]
    pair = equal_models(labels, np.random.default_rng(3))
    (judged, enough), (none, short) = bootstrap_slices(pair, "auc", slices, resampling(1))
    assert (enough.units, enough.count) == ("positives", 60)
    assert judged is not None
    assert judged.low < judged.mean < judged.high
    assert (none, short.units, short.count) == (None, "positives", 3)


@pytest.mark.parametrize(("units", "wider"), [(6, 2.5706 / 1.96), (20, 2.093 / 1.96), (300, 1.968 / 1.96)])
def test_few_units_make_an_interval_wider_than_its_samples(units: int, wider: float) -> None:
    """By Student's quantile against the normal one, and by the root of m / (m - 1) as the standard error."""
    labels, groups = with_positives(300, 600), np.arange(600) % units
    pair, drawn = equal_models(labels, np.random.default_rng(4)), resampling(1, groups=groups)
    found = bootstrap_metrics(pair, ["auc"], drawn)["auc"]
    compare = pair.weigh("auc")
    samples = np.array([compare(weights) for weights in drawn.draws(600)])
    narrow = (units / (units - 1)) ** 0.5
    low, high = np.quantile(samples, [0.025, 0.975]) - found.mean
    assert found.deviation == pytest.approx(narrow * samples.std())
    assert (found.low - found.mean, found.high - found.mean) == pytest.approx(
        (low * narrow * wider, high * narrow * wider), rel=0.005
    )
