"""The streams of `make bench-monitor`: what is drawn is what was asked for, and the page has what was measured."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from bench import flights, monitor, monitor_limits, monitor_streams, monitor_verdicts
from bench.checkout import REPOSITORY_PATH
from bench.monitor_streams import Baseline, Shift


@pytest.fixture(scope="module")
def baseline() -> Baseline:
    """A thousand rows with as many numbers in each column, and three carriers."""
    numbers = np.arange(1000).astype(float)
    columns: dict[str, Any] = {name: numbers.astype(object) for name in flights.NUMBERS}
    carriers = np.array(["AA"] * 600 + ["B6"] * 300 + ["UA"] * 100, dtype=object)
    return Baseline(columns | dict.fromkeys(flights.CATEGORIES, carriers))


def distances(baseline: Baseline, feature: str, shift: Shift | None = None) -> list[float]:
    return monitor_streams.draw(baseline, [feature], 24_000, 30, seed=0, shift=shift, at=0)[feature]


def test_requests_of_the_baseline_are_near_it(baseline) -> None:
    assert max(distances(baseline, "carrier")) < 0.02
    assert max(distances(baseline, "distance")) < 0.02


def test_a_share_grows_by_what_was_asked_for(baseline) -> None:
    found = distances(baseline, "carrier", Shift(kind="share", feature="carrier", size=0.4))
    assert found[0] == pytest.approx(0.4 / 24, abs=0.02)
    assert found[-1] == pytest.approx(0.4, abs=0.02)


def test_a_column_that_fails_is_as_far_as_can_be_when_the_window_is_full_of_it(baseline) -> None:
    found = distances(baseline, "distance", Shift(kind="outage", feature="distance", size=1.0))
    assert found[:24] == sorted(found[:24])
    assert found[-1] == pytest.approx(1)
    assert found[0] < 0.1


def test_a_moved_number_leaves_its_bins(baseline) -> None:
    near, far = (
        distances(baseline, "distance", Shift(kind="moved", feature="distance", size=size))[-1] for size in (0.5, 3.0)
    )
    assert 0.05 < near < far


@pytest.mark.parametrize(
    ("k", "n", "seen"), [(1, 1, [0, 1, 0, 1, 1]), (2, 3, [0, 0, 0, 1, 1]), (3, 5, [0, 0, 0, 0, 1])]
)
def test_an_alarm_needs_enough_of_the_last_windows(k, n, seen) -> None:
    assert monitor.alarms([0.1, 0.4, 0.3, 0.4, 0.4], 0.3, k, n) == [bool(each) for each in seen]


def test_alarms_of_several_features_at_once_are_one() -> None:
    found = {"a": [0.0, 0.4, 0.4, 0.0, 0.4], "b": [0.4, 0.4, 0.0, 0.0, 0.0]}
    assert monitor.beginnings(found, 0.3, 1, 1) == 2


def test_a_shift_that_half_of_the_months_do_not_see_has_no_delay() -> None:
    assert monitor._median([3, None, 5]) == 5
    assert monitor._median([3, None, None]) is None


def test_the_picture_is_that_of_the_stored_document(tmp_path) -> None:
    known = json.loads(monitor.RESULT_PATH.read_text(encoding="utf-8"))
    monitor.write_plots(known, tmp_path)
    assert (tmp_path / "shift.svg").read_text() == (monitor.IMAGES_PATH / "shift.svg").read_text()


def test_the_page_has_the_documents_figures() -> None:
    known = json.loads(monitor.RESULT_PATH.read_text(encoding="utf-8"))
    page = (REPOSITORY_PATH / "docs" / "monitoring.md").read_text(encoding="utf-8")
    for row in monitor.table_rows(known):
        assert row in page


# --- limits ----------------------------------------------------------------------------------------------------------

FALSE_BEFORE = ("miles in kilometres", "half a deviation", "20 % of the carriers replaced", "25 % missing")
UNCHANGED = tuple(f"unchanged, {size:,} requests" for size in monitor_limits.SIZES)


def test_a_month_of_flights_sees_by_its_days_what_three_tenths_never_saw() -> None:
    """September after July and August: every shift in each of 8 windows of 1,000 requests, and no false alarm."""
    found = monitor_limits.measure_month(9)
    for what in FALSE_BEFORE:
        assert (found[what]["of"], found[what]["0.3"], found[what]["by the days"]) == (8, 0, 8), what
    assert found["a constant, 5 to 500"]["by the days"] == 8
    for size in monitor_limits.SIZES:
        unchanged = found[f"unchanged, {size:,} requests"]
        assert (unchanged["of"], unchanged["by the days"]) == (8 * 14, 0)
    real = found["real days"]
    assert real["by the days"] < real["0.3"] / 4


def test_all_months_saw_every_shift_without_a_false_alarm_and_are_on_the_page() -> None:
    known = json.loads(monitor_limits.RESULT_PATH.read_text(encoding="utf-8"))["windows"]
    page = (REPOSITORY_PATH / "docs" / "monitoring.md").read_text(encoding="utf-8")
    assert {what: known[what]["of"] for what in FALSE_BEFORE} == dict.fromkeys(FALSE_BEFORE, 80)
    assert {what: known[what]["by the days"] for what in FALSE_BEFORE} == dict.fromkeys(FALSE_BEFORE, 80)
    assert not any(known[f"unchanged, {size:,} requests"]["by the days"] for size in monitor_limits.SIZES)
    for row in monitor_limits.table_rows(known):
        assert row in page


# --- others' verdicts ------------------------------------------------------------------------------------------------


def test_of_each_kind_some_windows_are_judged_the_real_days_over_the_whole_month() -> None:
    days: list[list[float | None]] = [[float(day)] for day in range(30)]
    real = {"distance": [*days, [None, None]]}
    (found,) = monitor_verdicts.sampled_windows(9, {"distance": days}, real).values()
    assert [window.values for window in found if window.what == "real days"] == [[0.0], [9.0], [19.0], [29.0]]
    kinds = Counter(window.what for window in found)
    assert kinds == dict.fromkeys((*UNCHANGED, "miles in kilometres", "real days"), monitor_verdicts.PER_FEATURE)


def test_real_days_of_the_weather_are_apart() -> None:
    kinds = [
        monitor_verdicts.kind_of(monitor_limits.Window(what=what, feature=feature, values=[]))
        for what, feature in [("real days", "temp"), ("real days", "carrier"), (UNCHANGED[0], "temp")]
    ]
    assert kinds == ["real days, weekday and weather", "real days", UNCHANGED[0]]


def test_all_tools_judged_the_same_windows_and_are_on_the_page() -> None:
    """Ours saw every shift and raised no false alarm, which none of the others did."""
    document = json.loads(monitor_verdicts.RESULT_PATH.read_text(encoding="utf-8"))
    known, page = document["windows"], (REPOSITORY_PATH / "docs" / "monitoring.md").read_text(encoding="utf-8")
    assert set(document["versions"]) == {"nannyml", "evidently", "tfdv"}
    assert set(known) == {*UNCHANGED, *monitor_limits.SHIFTS, "real days", "real days, weekday and weather"}
    for rule in monitor_verdicts.RULES:
        missed = sum(known[what]["of"] - known[what][rule] for what in monitor_limits.SHIFTS)
        false = sum(known[what][rule] for what in UNCHANGED)
        assert (missed + false == 0) == (rule == "by the days"), rule
    for row in monitor_verdicts.table_rows(known):
        assert row in page
