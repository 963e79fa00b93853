"""The run's time and its days."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retraining.core.errors import PlanError
from retraining.core.planning import windows
from tests.support.refusals import refuses
from tests.support.small_model import make_spec

LOGICAL = datetime(2013, 11, 20, 3, tzinfo=UTC)
AFTER = datetime(2013, 11, 21, 3, 0, 1, 999, tzinfo=UTC)
EXTRA = {"as_of": "2013-11-19T10:00:00Z"}


@pytest.mark.parametrize(
    ("arguments", "expected", "source"),
    [
        (("2013-11-18T01:02:03Z", EXTRA, LOGICAL, AFTER), datetime(2013, 11, 18, 1, 2, 3, tzinfo=UTC), "param"),
        (("2013-11-18", None, LOGICAL, AFTER), datetime(2013, 11, 18, tzinfo=UTC), "param"),
        (("2013-11-18T01:00:00+02:00", None, None, None), datetime(2013, 11, 17, 23, tzinfo=UTC), "param"),
        (("", EXTRA, LOGICAL, AFTER), datetime(2013, 11, 19, 10, tzinfo=UTC), "asset"),
        ((None, {"reason": "no time in it"}, LOGICAL, AFTER), LOGICAL, "logical_date"),
        ((None, None, None, AFTER), datetime(2013, 11, 21, 3, 0, 1, tzinfo=UTC), "run_after"),
    ],
    ids=["param", "date", "zone", "asset", "logical date", "run_after"],
)
def test_the_first_time_that_is_there_counts(arguments, expected, source):
    assert windows.resolve_as_of(*arguments) == windows.AsOf(value=expected, source=source)


@pytest.mark.parametrize("param", ["yesterday", "2013-13-01"])
def test_a_text_that_is_no_time_is_refused_with_an_example(param):
    with refuses(PlanError, where="Param as_of", expected="2013-11-20T03:00:00Z"):
        windows.resolve_as_of(param, None, LOGICAL, AFTER)


def test_no_time_at_all_is_refused():
    with refuses(PlanError, way_out="Param as_of"):
        windows.resolve_as_of(None, None, None, None)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("2013-11-21T03:05:01Z", None, LOGICAL, AFTER), "Param as_of"),
        ((None, {"as_of": "2999-01-01"}, LOGICAL, AFTER), "asset event, extra.as_of"),
        ((None, None, datetime(2999, 1, 1, tzinfo=UTC), AFTER), "logical date"),
    ],
    ids=["param", "asset", "logical date"],
)
def test_a_time_to_come_is_refused_and_an_earlier_one_is_taken(arguments: Any, where: str) -> None:
    """Its champion would be newer than every later run's."""
    started = datetime(2013, 11, 21, 3, tzinfo=UTC)
    with pytest.raises(PlanError, match=f"{where}: .*a time up to 2013-11-21 03:00:00 UTC") as refused:
        windows.resolve_as_of(*arguments, started=started)
    assert "an earlier time" in refused.value.way_out
    assert windows.resolve_as_of("2013-11-21T03:00:00Z", None, LOGICAL, AFTER, started).value == started


def test_clocks_that_differ_lose_no_night():
    """The scheduler that made the run is four minutes ahead of the one that started it."""
    ahead = LOGICAL + timedelta(minutes=4)
    assert windows.resolve_as_of(None, None, ahead, ahead, LOGICAL).value == ahead


def test_the_window_ends_when_labels_were_known():
    found = windows.window(make_spec().data, LOGICAL)
    assert (found.start, found.test_start, found.end) == (date(2013, 11, 9), date(2013, 11, 17), date(2013, 11, 19))


def test_another_zone_does_not_move_the_window():
    there = LOGICAL.astimezone(timezone(timedelta(hours=-11)))
    assert windows.window(make_spec().data, there) == windows.window(make_spec().data, LOGICAL)


def test_a_window_before_the_first_day_is_refused():
    with pytest.raises(PlanError, match="a later time"):
        windows.window(make_spec().data, datetime(1, 1, 2, tzinfo=UTC))


@given(
    as_of=st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)),
    window_days=st.integers(2, 400),
    test_days=st.integers(1, 365),
    lag=st.integers(0, 30),
)
def test_every_window_is_whole_days_whose_labels_were_known(as_of, window_days, test_days, lag):
    if test_days >= window_days:
        return
    data = make_spec().data.model_copy(
        update={"window_days": window_days, "test_days": test_days, "label_lag_days": lag}
    )
    found = windows.window(data, as_of)
    assert (found.end - found.start).days == window_days
    assert (found.end - found.test_start).days == test_days
    newest_event = datetime.combine(found.end, datetime.min.time(), UTC)
    assert newest_event + timedelta(days=lag) <= as_of
    assert as_of - newest_event < timedelta(days=lag + 1)


def test_time_travel_reaches_seven_days_back_from_the_runs_start():
    data = make_spec().data.model_copy(update={"time_travel": True})
    windows.require_within_time_travel(data, LOGICAL, LOGICAL + timedelta(days=7), "late")
    windows.require_within_time_travel(data, LOGICAL, None, "late")
    late = LOGICAL + timedelta(days=7, seconds=1)
    windows.require_within_time_travel(make_spec().data, LOGICAL, late, "late")
    with refuses(PlanError, where="late, data.time_travel", found=("2013-11-20 03:00:00 UTC", "7 days")):
        windows.require_within_time_travel(data, LOGICAL, late, "late")
