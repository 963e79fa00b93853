"""Pauses of retraining: how long one holds, which of two counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from retraining.core.documents import Pause, Trigger
from retraining.core.errors import PlanError
from retraining.core.planning import pauses
from tests.support.refusals import refuses

ASKED = datetime(2013, 11, 20, 3, 30, tzinfo=UTC)
UNTIL = datetime(2013, 11, 25, tzinfo=UTC)


def pause(until=UNTIL, asked=ASKED, dag_run_id="manual__1", reason="complaints since noon."):
    trigger = Trigger(kind="manual", reason="by ada")
    return Pause(model="late", until=until, reason=reason, trigger=trigger, asked=asked, dag_run_id=dag_run_id)


@pytest.mark.parametrize(("seconds", "held"), [(-1, True), (0, False), (1, False)])
def test_a_pause_ends_by_itself_with_the_first_second_of_its_day(seconds, held):
    assert pauses.holds(pause(), UNTIL + timedelta(seconds=seconds)) is held


def test_no_pause_holds_nothing():
    assert not pauses.holds(None, ASKED)
    assert not pauses.holds(pause(until=None), ASKED)


def test_the_day_is_utc_and_must_come():
    assert pauses.end_of_pause("2013-11-21", ASKED) == datetime(2013, 11, 21, tzinfo=UTC)
    with refuses(PlanError, found="2013-11-20, which has begun", expected="after 2013-11-20"):
        pauses.end_of_pause("2013-11-20", ASKED)
    with pytest.raises(PlanError, match="Param pause_until: 'tomorrow'"):
        pauses.end_of_pause("tomorrow", ASKED)


def test_some_days_from_asking_on():
    assert pauses.end_of_pause("5 days", ASKED) == UNTIL
    assert pauses.end_of_pause("1 day", ASKED) == datetime(2013, 11, 21, tzinfo=UTC)
    with pytest.raises(PlanError, match="Param pause_until: '0 days'"):
        pauses.end_of_pause("0 days", ASKED)


def test_what_was_asked_last_counts_whoever_writes_last():
    first, second = pause(), pause(until=None, asked=ASKED + timedelta(seconds=1))
    assert pauses.replaces(first, None)
    assert pauses.replaces(second, first)
    assert not pauses.replaces(first, second)
    assert not pauses.replaces(first, first)
    same_second = pause(dag_run_id="manual__2")
    assert pauses.replaces(same_second, first) is not pauses.replaces(first, same_second)


def test_a_pause_is_told_with_its_end_its_person_and_the_reason():
    assert pauses.explain_pause(pause()) == (
        "retraining of late is paused until 2013-11-25 00:00 UTC by ada because: complaints since noon."
    )
    assert pauses.explain_pause(pause(reason="")).endswith("UTC by ada.")
    assert "not paused" in pauses.explain_pause(pause(until=None))
