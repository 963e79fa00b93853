"""Limits by the training days: what is usual is no alarm, what a thousand requests show is one, explicit ones stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from bench import monitor_baselines as baselines
from retraining.core.documents.checks import NumericStatistics, UsualDistance
from retraining.core.documents.monitoring import CalibratedLimit, Signal, Signals
from retraining.core.monitoring.distributions import bin_edges
from retraining.core.monitoring.drift import _distance_of_counts
from retraining.core.monitoring.limits import Distances, Limit, calibrate, limit_of
from retraining.core.monitoring.replay import _judge_again
from retraining.core.spec.model import ModelSpec
from tests.support.small_model import AS_OF, make_spec

DAYS, ROWS, WINDOWS = 60, 1000, 40
Random = np.random.Generator
Day = Callable[[Random, int], list[Any]]
CARRIERS = [f"carrier {place}" for place in range(16)]


def constant(random: Random, rows: int) -> list[Any]:
    return [5.0] * rows


def number(random: Random, rows: int) -> list[Any]:
    return random.normal(0, 1, rows).tolist()


def miles(random: Random, rows: int) -> list[Any]:
    return random.lognormal(6.5, 0.7, rows).tolist()


def weather(random: Random, rows: int) -> list[Any]:
    """A temperature of its own each day."""
    return random.normal(random.normal(0, 3), 1, rows).tolist()


def carrier(random: Random, rows: int) -> list[Any]:
    """Shares that differ from day to day."""
    shares = 0.8 ** np.arange(16) * random.uniform(0.8, 1.2, 16)
    return random.choice(CARRIERS, rows, p=shares / shares.sum()).tolist()


def trained(day: Day, seed: int = 0, days: int = DAYS) -> tuple[Any, int]:
    random = np.random.default_rng(seed)
    return baselines.calibrated([day(random, ROWS) for _ in range(days)], 200)


def limit_for(spec: ModelSpec, baseline: Any, chance: float = 0.0, *, of_windows: bool = False) -> Limit:
    return limit_of(spec, "distance", calibrate(spec, distances(baseline, of_windows), baseline.usual, chance))


def distances(baseline: Any, of_windows: bool = False) -> Distances:
    return Distances(measure="jensen_shannon" if baseline.kind == "numeric" else "l_infinity", of_windows=of_windows)


def is_exceeded(spec: ModelSpec, found: tuple[Any, int], values: Sequence[Any]) -> bool:
    baseline, rows = found
    distance = baselines.distance_of(baseline, rows, values)
    return limit_for(spec, baseline, distance.chance).is_exceeded(distance.value, distance.low)


@pytest.mark.parametrize("day", [constant, number, miles, weather, carrier])
@pytest.mark.parametrize("rows", [200, 1000, 5000])
def test_days_like_those_of_training_are_no_alarm(day: Day, rows: int) -> None:
    """One setting for a constant and for the weather; of 40 new days at most one is farther than all of training."""
    found, random = trained(day), np.random.default_rng(9)
    alarms = sum(is_exceeded(make_spec(), found, day(random, rows)) for _ in range(WINDOWS))
    assert alarms <= 1


def has_drifted(spec: ModelSpec, baseline: Any, now: Sequence[Any], before: Sequence[Any]) -> bool:
    if isinstance(baseline, NumericStatistics):
        edges = bin_edges(baseline)
        numbers = [baselines.count_numbers(values, edges) for values in (now, before)]
        distance = _distance_of_counts(numbers[0], numbers[1], len(edges))
    else:
        found = [baselines.count_categories(values, baseline) for values in (now, before)]
        distance = _distance_of_counts(found[0], found[1], 0, baseline.tail)
    limit = limit_for(spec, baseline, distance.chance, of_windows=True)
    return limit.is_exceeded(distance.value, distance.low)


@pytest.mark.parametrize("day", [constant, number, miles, weather, carrier])
@pytest.mark.parametrize("rows", [200, 1000, 5000])
def test_two_days_like_those_of_training_have_not_drifted(day: Day, rows: int) -> None:
    """From each other: twice as far as a day from all of training."""
    (baseline, _), random = trained(day), np.random.default_rng(11)
    alarms = sum(has_drifted(make_spec(), baseline, day(random, rows), day(random, rows)) for _ in range(WINDOWS))
    assert alarms <= 1


@pytest.mark.parametrize("day", [number, carrier])
def test_a_change_between_two_windows_is_seen(day: Day) -> None:
    """A quarter goes missing."""
    (baseline, _), random = trained(day), np.random.default_rng(12)
    now = [None if random.random() < 0.25 else value for value in day(random, 1000)]
    assert has_drifted(make_spec(), baseline, now, day(random, 1000))


def kilometres(random: Random) -> list[Any]:
    return [value * 1.609 for value in miles(random, 1000)]


def half_a_deviation(random: Random) -> list[Any]:
    return [value + 0.5 for value in number(random, 1000)]


def replaced(random: Random) -> list[Any]:
    return [f"other {value}" if random.random() < 0.2 else value for value in carrier(random, 1000)]


def missing(random: Random) -> list[Any]:
    return [None if random.random() < 0.25 else value for value in number(random, 1000)]


def another_constant(random: Random) -> list[Any]:
    return [500.0] * 1000


@pytest.mark.parametrize(
    ("day", "shifted"),
    [
        (miles, kilometres),
        (number, half_a_deviation),
        (carrier, replaced),
        (number, missing),
        (constant, another_constant),
    ],
)
def test_what_a_limit_of_three_tenths_never_saw_is_seen_at_a_thousand_requests(day: Day, shifted: Any) -> None:
    """All but the constant are nearer than 0.3."""
    found, random = trained(day), np.random.default_rng(10)
    windows = [shifted(random) for _ in range(10)]
    assert all(is_exceeded(make_spec(), found, values) for values in windows)
    gross = make_spec(monitoring={"drift": {"threshold": 0.3}})
    assert any(is_exceeded(gross, found, values) for values in windows) == (shifted is another_constant)


def blizzard(random: Random, rows: int) -> list[Any]:
    return random.normal(3, 0.5, rows).tolist()


def test_two_days_out_of_the_ordinary_do_not_hide_a_change() -> None:
    """The farthest of 60 days would be the limit otherwise: nothing nearer would be seen."""
    random = np.random.default_rng(4)
    days = [*(number(random, ROWS) for _ in range(DAYS - 2)), *(blizzard(random, ROWS) for _ in range(2))]
    found = baselines.calibrated(days, 200)
    assert found[0].usual.distance < 0.02
    assert is_exceeded(make_spec(), found, missing(random))
    assert not is_exceeded(make_spec(), found, number(random, ROWS))


def test_an_explicit_threshold_stays_what_it_is() -> None:
    """Of the distance alone; a feature's own one before that of all."""
    baseline, _ = trained(number)
    spec = make_spec(monitoring={"drift": {"threshold": 0.25, "features": {"distance": 0.5}}})
    calibrated = calibrate(spec, distances(baseline), baseline.usual, 0.01)
    assert limit_of(spec, "distance", calibrated) == Limit(value=0.5, source="of the file")
    assert limit_of(spec, "carrier", calibrated) == Limit(value=0.25, source="of the file")
    assert Limit(value=0.5, source="").is_exceeded(0.6, 0.4)
    assert not Limit(value=0.5, source="", usual=0.4).is_exceeded(0.6, 0.4)
    assert not Limit(value=0.5, source="", usual=0.4).is_exceeded(0.5, 0.45)


def test_two_windows_are_each_as_far_from_training() -> None:
    baseline, _ = trained(weather)
    skew, drift = (
        calibrate(make_spec(), distances(baseline, of_windows), baseline.usual, 0.03) for of_windows in (False, True)
    )
    assert skew is not None
    assert drift is not None
    assert skew.usual == pytest.approx(baseline.usual.distance, abs=1e-6)
    assert skew.value == pytest.approx(0.02 + 0.03 + baseline.usual.distance, abs=1e-6)
    assert drift.value == pytest.approx(min(1, 0.02 + 0.03 + 2 * baseline.usual.distance), abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "days", "words"),
    [
        ({}, 13, "13 days of the champion's run with 200 rows are fewer than the 14 that say what is usual"),
        ({}, 0, "0 days of the champion's run with 200 rows are fewer"),
        ({"monitoring": {"window_hours": 12}}, 60, "a window of 12 hours is shorter than a day"),
    ],
    ids=["few-days", "no-time-column", "windows-shorter-than-a-day"],
)
def test_where_days_do_not_tell_there_is_one_limit(changes: Any, days: int, words: str) -> None:
    """And the chance of so few requests; the signal's text says why."""
    baseline = trained(number)[0].model_copy(update={"usual": UsualDistance(days=days, distance=0.4)})
    found = limit_for(make_spec(**changes), baseline, 0.03)
    assert found.value == pytest.approx(0.13)
    assert found.source.startswith("the sum of 0.1 of interest and 0.030 of chance: ")
    assert words in found.source


def test_fourteen_days_tell() -> None:
    found = limit_for(make_spec(), trained(number, days=14)[0], 0.01)
    assert found.value < 0.05
    assert "usual by 14 training days" in found.source


def test_months_are_too_few_days() -> None:
    """Of data that comes once a month, a year has 12."""
    assert limit_for(make_spec(), trained(number, days=12)[0]).value == pytest.approx(0.1)


def test_statistics_of_an_earlier_release_keep_its_limit() -> None:
    """Until the next retraining has counted the days; the text says so."""
    earlier = baselines.numeric_statistics(number(np.random.default_rng(0), 1000), earlier=True)
    found = limit_for(make_spec(), earlier, 0.05)
    assert (found.value, found.usual) == (0.3, None)
    assert "the default until the next retraining" in found.source


# --- played again ----------------------------------------------------------------------------------------------------


def calibrated(usual: float, least: float, chance: float) -> CalibratedLimit:
    return CalibratedLimit(source="training_days", days=60, usual=usual, least=least, chance=chance)


def signals(**changes: Any) -> Signals:
    measured = {"value": 0.12, "low": 0.08, "high": 0.15, "threshold": 0.3, "state": "ok", "reason": None}
    named = {"kind": "skew", "subject": "distance", "measure": "jensen_shannon", "examples": 9, "message": "far"}
    one = Signal.model_validate(measured | named | changes)
    return Signals(
        model="late",
        as_of=AS_OF,
        window_hours=24,
        champion=None,
        endpoint_name=None,
        log_table=None,
        requests=9,
        bytes_read=0,
        signals=(one,),
    )


@pytest.mark.parametrize(
    ("recorded", "threshold", "state", "limit"),
    [
        ({}, 0.1, "exceeded", 0.1),
        ({}, None, "ok", 0.3),
        ({"value": 0.31}, None, "exceeded", 0.3),
        ({"calibrated": calibrated(0.03, 0.02, 0.02)}, None, "exceeded", 0.07),
        ({"calibrated": calibrated(0.09, 0.02, 0.0)}, None, "ok", 0.11),
        ({"calibrated": calibrated(0.03, 0.02, 0.08)}, None, "ok", 0.13),
        ({"calibrated": calibrated(0.07, 0.02, 0.04), "threshold": 0.13}, 0.1, "exceeded", 0.1),
    ],
    ids=["explicit", "earlier", "earlier-and-over", "calibrated", "usual-within", "chance", "explicit-and-calibrated"],
)
def test_distances_are_played_again_by_what_was_recorded(
    recorded: Any, threshold: float | None, state: str, limit: float
) -> None:
    """The file's threshold, else the limit that was calibrated then, else an earlier release's."""
    (found,) = _judge_again(signals(**recorded), make_spec(monitoring={"drift": {"threshold": threshold}})).signals
    assert found.state == state
    assert found.threshold == pytest.approx(limit)


def test_answers_from_earlier_ones_are_played_again_by_the_labels_threshold() -> None:
    spec = make_spec(monitoring={"drift": {"features": {"late": 0.1}}})
    (found,) = _judge_again(signals(kind="prediction_drift", subject="late earlier"), spec).signals
    assert (found.state, found.threshold) == ("exceeded", 0.1)


def test_a_signal_of_an_earlier_release_reads_as_it_was_written() -> None:
    written = signals().signals[0].model_dump(mode="json")
    assert "calibrated" not in written
    assert Signal.model_validate(written).calibrated is None
