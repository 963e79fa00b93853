"""Quality from counts: against values worked by hand, against all pairs, and whether intervals hold what they say."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retraining.core.monitoring import intervals
from retraining.core.monitoring.intervals import ScoreBucket, Sums

SCORES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=2, max_size=60)


def buckets(pairs: Sequence[tuple[float, int]], count: int) -> list[ScoreBucket]:
    """A histogram of scores."""
    found: dict[int, list[int]] = {}
    for score, label in pairs:
        cell = found.setdefault(min(int(score * count), count - 1), [0, 0])
        cell[label] += 1
    return [ScoreBucket(positives=cell[1], negatives=cell[0]) for _, cell in sorted(found.items())]


def sums(values: Sequence[float]) -> Sums:
    """Count, sum, sum of squares."""
    return Sums(examples=len(values), total=sum(values), squares=sum(value * value for value in values))


def exact_auc(pairs: Sequence[tuple[float, int]]) -> float:
    """By all pairs."""
    ones, zeros = ([score for score, label in pairs if label == kind] for kind in (1, 0))
    won = sum((one > zero) + (one == zero) / 2 for one in ones for zero in zeros)
    return won / len(ones) / len(zeros)


@settings(deadline=None)
@given(SCORES, st.sampled_from([1, 7, 2000]))
def test_the_auc_of_buckets_is_as_near_as_it_says(pairs, count) -> None:
    """Whatever the scores are; with one class there is none."""
    found = intervals.auc(buckets(pairs, count), 0.95)
    if len({label for _, label in pairs}) < 2:
        assert found is None
        return
    exact = exact_auc(pairs)
    assert abs(found.value - exact) <= found.error + 1e-9
    assert found.low <= found.value <= found.high
    assert found.low - 1e-9 <= exact <= found.high + 1e-9


def test_an_auc_worked_by_hand() -> None:
    """The example of scikit-learn's page: 0.75; DeLong's variance by its placements (1, 0.5; 0.5, 1)."""
    found = intervals.auc(buckets([(0.1, 0), (0.4, 0), (0.35, 1), (0.8, 1)], 2000), 0.95)
    assert (found.value, found.error, found.examples) == (0.75, 0, 4)
    reach = 1.959964 * math.sqrt(2 * 0.25**2 / 1 / 2 + 2 * 0.25**2 / 1 / 2)
    assert found.low == pytest.approx(0.75 - reach, abs=1e-6)
    assert found.high == 1


def test_an_average_precision_worked_by_hand() -> None:
    """The same four: precision 1 at recall 0.5, 2/3 at recall 1."""
    found = intervals.average_precision(buckets([(0.1, 0), (0.4, 0), (0.35, 1), (0.8, 1)], 2000), 0.95)
    assert found.value == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)  # average_precision_score gives 0.8333
    assert 0 < found.low < found.value < found.high < 1
    assert intervals.average_precision([ScoreBucket(positives=0, negatives=3)], 0.95) is None


def test_means_and_what_is_made_of_them() -> None:
    """Standard errors by the textbook."""
    found = intervals.mean(sums([1.0, 2.0, 3.0, 4.0]), 0.95)
    assert found.value == 2.5
    assert found.high - found.value == pytest.approx(1.959964 * math.sqrt(5 / 3 / 4), abs=1e-5)
    squares = intervals.root_mean(sums([1.0, 4.0, 9.0]), 0.95)
    assert squares.value == pytest.approx(math.sqrt(14 / 3))
    assert intervals.root_mean(sums([0.0, 0.0]), 0.95).high == 0


def test_r2_is_that_of_its_definition() -> None:
    """scikit-learn's example: 0.9486."""
    labels, answers = [3, -0.5, 2, 7], [2.5, 0.0, 2, 8]
    middle = sum(labels) / 4
    errors = [(label - answer) ** 2 for label, answer in zip(labels, answers, strict=True)]
    deviations = [(label - middle) ** 2 for label in labels]
    product = sum(a * b for a, b in zip(errors, deviations, strict=True))
    found = intervals.explained(sums(errors), sums(deviations), product, 0.95)
    assert found.value == pytest.approx(0.9486081)
    assert found.low < found.value < found.high <= 1
    assert intervals.explained(sums([1.0]), sums([0.0]), 0, 0.95) is None


def test_classes_by_their_confusion() -> None:
    """scikit-learn: balanced_accuracy_score and f1_score(average="macro") of six answers to three classes."""
    confusion = {(0, 0): 2, (1, 2): 1, (1, 0): 1, (2, 1): 2}
    assert intervals.balanced_accuracy(confusion, 0.95).value == pytest.approx(1 / 3)
    assert intervals.macro_f1(confusion, 0.95).value == pytest.approx(0.8 / 3)  # 0.26666
    assert intervals.macro_f1({}, 0.95) is None
    assert intervals.balanced_accuracy({}, 0.95) is None


def test_a_median_has_the_quantiles_around_it() -> None:
    """Of 100 examples the interval reaches from about the 40th to the 60th."""
    found = intervals.median([number / 1000 for number in range(1001)], 100, 0.95)
    assert (found.value, found.low, found.high) == (0.5, 0.402, 0.598)
    assert intervals.median([], 0, 0.95) is None


@pytest.mark.parametrize("name", ["auc", "pr_auc", "mean", "rmse", "r2", "macro_f1", "balanced_accuracy"])
def test_intervals_hold_the_truth_about_as_often_as_they_say(name: str) -> None:
    """Two hundred samples of 400, at 95 %: between 90 % and 99 %, the seed is fixed."""
    chance = random.Random(7)
    held = sum(_holds(name, chance) for _ in range(200))
    assert 180 <= held <= 199, held


TRUTH = {
    "auc": 0.7602,
    "pr_auc": 0.7523,
    "mean": 1.0,
    "rmse": 1.0,
    "r2": 0.5,
    "macro_f1": 0.7,
    "balanced_accuracy": 0.7,
}
"""Of normal scores one deviation apart: Phi(1 / sqrt 2); the average precision by a million draws."""


def _holds(name: str, chance: random.Random) -> bool:
    labels = [chance.random() < 0.5 for _ in range(400)]
    if name in ("auc", "pr_auc"):
        pairs = [(1 / (1 + math.exp(-chance.gauss(label, 1))), int(label)) for label in labels]
        measure = intervals.auc if name == "auc" else intervals.average_precision
        found = measure(buckets(pairs, 2000), 0.95)
    elif name == "mean":
        found = intervals.mean(sums([chance.expovariate(1) for _ in labels]), 0.95)
    elif name == "rmse":
        found = intervals.root_mean(sums([chance.gauss(0, 1) ** 2 for _ in labels]), 0.95)
    elif name == "r2":
        answers = [chance.gauss(0, 1) for _ in labels]
        truth = [answer + chance.gauss(0, 1) for answer in answers]
        middle = sum(truth) / len(truth)
        errors = [(a - b) ** 2 for a, b in zip(truth, answers, strict=True)]
        spread = [(a - middle) ** 2 for a in truth]
        product = sum(a * b for a, b in zip(errors, spread, strict=True))
        found = intervals.explained(sums(errors), sums(spread), product, 0.95)
    else:
        cells: dict[tuple[int, int], float] = {}
        for label in labels:
            cell = (int(label), int(label) if chance.random() < 0.7 else 1 - int(label))
            cells[cell] = cells.get(cell, 0) + 1
        found = (intervals.macro_f1 if name == "macro_f1" else intervals.balanced_accuracy)(cells, 0.95)
    return found.low <= TRUTH[name] <= found.high
