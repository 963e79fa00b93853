"""Columns that are mostly one value, or have more values than are listed: earlier releases saw no drift in them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from bench import monitor_baselines as baselines
from retraining.core.documents import SplitStatistics, Statistics
from retraining.core.documents.checks import FeatureStatistics, NumberHistogram
from retraining.core.documents.monitoring import Signal
from retraining.core.monitoring import distributions
from retraining.core.monitoring.distributions import UNSEEN, bin_edges, room_of
from retraining.core.monitoring.drift import judge_shifts
from retraining.core.monitoring.request_log import read_requests
from tests.support.contracts import EXAMPLES
from tests.support.request_log import CHAMPION_ID, counted
from tests.support.small_model import make_plan, make_statistics

ROWS = 50_000
NAMES = [f"id {number}" for number in range(60_000)]


def judge(now: Any, trained: FeatureStatistics, before: Any = None, rows: int = ROWS) -> dict[str, Signal]:
    """Skew and drift of one feature, by kind."""
    train = make_statistics(make_plan()).splits["train"]
    name = "distance" if trained.kind == "numeric" else "carrier"
    split = SplitStatistics(rows=rows, features={name: trained}, label=train.label)
    log = counted({name: now})
    if before is not None:
        log += counted({name: before}, asked_in="earlier")
    found = judge_shifts(make_plan().spec, split, read_requests(log, []), (), CHAMPION_ID)
    return {signal.kind: signal for signal in found if signal.subject == name}


def numbers_of(trained: Any, asked: Any, *, earlier: bool) -> Signal:
    """The skew of numbers."""
    baseline = baselines.numeric_statistics(list(trained), earlier=earlier)
    return judge(baselines.count_numbers(list(asked), bin_edges(baseline)), baseline)["skew"]


def zero_inflated(share: float, rows: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.where(random.random(rows) < share, random.exponential(3, rows), 0.0)


@pytest.mark.parametrize("earlier", [False, True], ids=["now", "earlier release's statistics"])
def test_zeros_that_are_zeros_no_more_are_far(earlier: bool) -> None:
    """4 % of the numbers were not 0, now all are: it was 0.0000."""
    trained = zero_inflated(0.04, ROWS, 0)
    found = numbers_of(trained, zero_inflated(1, 1000, 1), earlier=earlier)
    assert found.value > 0.8
    assert numbers_of(trained, zero_inflated(0.04, 1000, 2), earlier=earlier).value < 0.01


@pytest.mark.parametrize("earlier", [False, True], ids=["now", "earlier release's statistics"])
@pytest.mark.parametrize("asked", [500.0, -500.0, 5.001])
def test_a_constant_that_is_another_one_is_as_far_as_can_be(asked: float, earlier: bool) -> None:
    """5 became 500: it was 0."""
    assert numbers_of([5.0] * ROWS, [asked] * 1000, earlier=earlier).value == pytest.approx(1)
    assert numbers_of([5.0] * ROWS, [5.0] * 1000, earlier=earlier).value == 0


@pytest.mark.parametrize("constant", [0.1, 0.7, 1 / 3, 1e-30, -123456.789, 0.0])
def test_a_constant_that_a_client_sends_as_float32_is_itself(constant: float) -> None:
    sent = float(np.float32(constant))
    assert numbers_of([constant] * ROWS, [sent] * 1000, earlier=False).value == 0


def test_numbers_beyond_all_of_training_are_apart_from_the_largest_ones() -> None:
    random = np.random.default_rng(0)
    trained = random.random(ROWS)
    beyond = np.where(random.random(1000) < 0.3, 7.0, random.random(1000))
    assert 0.1 < numbers_of(trained, beyond, earlier=False).value < 0.3
    edges = bin_edges(baselines.numeric_statistics(trained.tolist()))
    assert max(trained) < edges[-1] < max(trained) * 1.000001


def test_twenty_thousand_categories_that_are_all_replaced_are_far() -> None:
    """It was 0.125: those beyond the first thousand were one value, whichever they are."""
    random = np.random.default_rng(3)
    trained = [NAMES[place] for place in random.integers(0, 20_000, ROWS)]
    baseline = baselines.categorical_statistics(trained)
    same = [NAMES[place] for place in random.integers(0, 20_000, 1000)]
    other = [NAMES[place] for place in random.integers(20_000, 40_000, 1000)]

    def asked(values: list[str]) -> Any:
        return baselines.count_categories(values, baseline)

    found = judge(asked(other), baseline, before=asked(same))
    # Of 20,000 values 8 % came by chance in none of the 50,000 rows, and are expected to be new.
    assert found["skew"].value == pytest.approx(0.92, abs=0.05)
    assert found["drift"].value == pytest.approx(0.92, abs=0.1)
    assert "values that are new" in found["skew"].message
    near = judge(asked(same), baseline, before=asked(same))
    assert near["skew"].value < 0.05
    assert near["drift"].value == 0
    half = judge(asked([*other[:500], *same[:500]]), baseline)["skew"]
    assert half.low < 0.92 / 2 < half.high


@pytest.mark.parametrize("rows", [1500, 4000, 20_000])
def test_values_that_a_few_rows_of_training_could_not_have_are_no_drift(rows: int) -> None:
    """Of 20,000 equally frequent values 4,000 rows have 18 %: the others are expected to come."""
    random = np.random.default_rng(rows)
    baseline = baselines.categorical_statistics([NAMES[place] for place in random.integers(0, 20_000, rows)])
    same = [NAMES[place] for place in random.integers(0, 20_000, 1000)]
    other = [NAMES[place] for place in random.integers(20_000, 40_000, 1000)]
    found = judge(baselines.count_categories(same, baseline), baseline, rows=rows)["skew"]
    assert found.value < 0.1
    moved = judge(baselines.count_categories(other, baseline), baseline, rows=rows)["skew"]
    assert moved.value == pytest.approx(1 - np.exp(-rows / 20_000), abs=0.1)


def test_one_rare_category_that_becomes_frequent_is_seen() -> None:
    """It is beyond the first thousand, and known."""
    random = np.random.default_rng(4)
    trained = [NAMES[place] for place in np.minimum(random.geometric(0.001, ROWS), 20_000)]
    baseline = baselines.categorical_statistics(trained)
    listed = {item.value for item in baseline.top}
    rare = next(value for value in trained if value not in listed)
    asked = [rare] * 400 + trained[:600]
    found = judge(baselines.count_categories(asked, baseline), baseline)["skew"]
    assert found.value == pytest.approx(0.4, abs=0.05)


def test_more_values_than_there_is_room_for_tell_of_no_new_one() -> None:
    """Ids of their own in each row: what lies beyond the first thousand is one value, and by hash."""
    baseline = baselines.categorical_statistics([f"row {place}" for place in range(ROWS * 2)])
    assert room_of(baseline.tail) == 1
    other = baselines.count_categories([f"request {place}" for place in range(1000)], baseline)
    shares = distributions.value_shares(other, baseline.tail)
    assert UNSEEN not in shares
    assert judge(other, baseline, rows=2 * ROWS)["skew"].value < 0.05


def test_statistics_of_an_earlier_release_are_compared_as_they_were() -> None:
    """Without counts by hash, values beyond the first thousand are one value together."""
    random = np.random.default_rng(3)
    trained = [NAMES[place] for place in random.integers(0, 20_000, ROWS)]
    baseline = baselines.categorical_statistics(trained, earlier=True)
    other = [NAMES[place] for place in random.integers(20_000, 40_000, 1000)]
    found = judge(baselines.count_categories(other, baseline), baseline)["skew"]
    assert found.value == pytest.approx(sum(item.count for item in baseline.top) / ROWS, abs=1e-9)
    stored = (EXAMPLES / "statistics__two_features.json").read_bytes()
    features = Statistics.parse(stored).to_json()["splits"]["train"]["features"]
    assert features == json.loads(stored)["splits"]["train"]["features"]


@pytest.mark.parametrize(
    ("edges", "counts", "message"),
    [((1.0, 2.0), (1, 2), "2 edges have 3 bins, and 2 counts"), ((2.0, 2.0), (1, 2, 3), "edges rise")],
    ids=["too-few", "equal-edges"],
)
def test_a_histogram_that_does_not_fit_is_refused(edges: Any, counts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NumberHistogram(edges=edges, counts=counts)
