"""What holds an action back: pause, cool-down, loop guard, budget, quiet hours; and when there is no way back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core import documents as d
from tests.support.scenes.ledger import AT_ONCE, CHAMPION, SECOND, decide, ledger_id, result, rules, signal, signals
from tests.support.small_model import AS_OF

NOW = rules(**AT_ONCE)
ROLLBACK = rules(**AT_ONCE, actions={"errors": "rollback"})


def ordered(hours, champion=CHAMPION):
    """A row that ordered a retraining, some hours before."""
    row = decide(signals(signal(), hours=-hours, champion=champion), (), NOW)
    assert row.outcome == "retrain"
    return row


def quiet_row(hours):
    """A row of a monitor run that saw nothing."""
    return decide(signals(signal(value=0.1, state="ok"), hours=-hours), (), NOW)


def held(*rows, rule=NOW, hours=0, champion=CHAMPION, **known):
    """The row of now."""
    return decide(signals(signal(), hours=hours, champion=champion), rows, rule, **known)


def test_a_pause_holds_a_retraining_back_and_begins_no_cool_down():
    paused = "retraining of late is paused until 2013-11-25 00:00 UTC by ada."
    row = held(paused=paused)
    assert (row.outcome, row.because, row.retrain_as_of) == ("warn", "paused", None)
    assert row.words == f"Waiting: carrier is at 0.4 (over 0.3). But {paused}"
    assert held(row, hours=1).outcome == "retrain"


@pytest.mark.parametrize(("hours", "because"), [(23.99, "cooldown"), (24, "skew")])
def test_the_cool_down_holds(hours, because):
    row = held(ordered(hours))
    assert row.because == because
    assert row.last_retrain_as_of == AS_OF - timedelta(hours=hours)


def test_what_lies_ahead_starts_no_cool_down():
    assert held(ordered(0), ordered(-5)).outcome == "retrain"


@pytest.mark.parametrize(("hours", "because"), [(47, "cooldown"), (48, "skew")])
def test_retrainings_that_made_no_champion_lengthen_the_wait(hours, because):
    assert held(ordered(hours), ordered(hours + 24)).because == because


def test_a_new_champion_ends_the_lengthened_wait():
    assert held(ordered(25), ordered(49), champion=SECOND).outcome == "retrain"


def test_the_wait_is_lengthened_sixteenfold_at_most():
    many = [ordered(hours) for hours in range(16 * 24, 16 * 24 + 20)]
    assert held(*many).outcome == "retrain"
    assert held(ordered(16 * 24 - 1), *many[:12]).because == "cooldown"


@pytest.mark.parametrize(("hours", "because"), [(-23, "cooldown"), (23, "cooldown"), (24, "skew"), (-24, "skew")])
def test_two_monitors_at_once_see_each_others_order(hours, because):
    """Whichever time the other one was of."""
    other = d.LedgerOrder(ledger_id="other", as_of=AS_OF + timedelta(hours=hours), outcome="retrain")
    assert held(last_order=other).because == because


@pytest.mark.parametrize(
    ("before", "state", "made", "serves", "because"),
    [
        (CHAMPION, "rejected", None, CHAMPION, "loop_guard"),
        (CHAMPION, "promoted", SECOND, SECOND, "loop_guard"),
        (CHAMPION, "promoted", SECOND, CHAMPION, "skew"),  # somebody went back: another champion
        (CHAMPION, "rejected", None, SECOND, "skew"),
        (CHAMPION, "failed", None, CHAMPION, "skew"),  # it did not finish: it may help yet
        (CHAMPION, "running", None, CHAMPION, "skew"),
    ],
)
def test_a_retraining_that_did_not_help_is_not_ordered_again(before, state, made, serves, because):
    row = held(ordered(30, before), champion=serves, results=(result(-30, state, made),))
    assert row.because == because


def test_the_guard_says_what_it_waits_for():
    words = held(ordered(30), results=(result(-30, "rejected"),)).words
    assert "made no new champion: nothing is ordered for the same cause until the champion changes" in words
    new = held(ordered(30), champion=SECOND, results=(result(-30, "promoted", SECOND),)).words
    assert "made version 2, and it is as before" in new


@pytest.mark.parametrize(("windows", "because"), [(2, "loop_guard"), (3, "skew")])
def test_a_cause_that_was_gone_is_a_new_one(windows, because):
    rule = rules(windows={"exceeded": 1, "of": 3}, max_retrainings_per_week=None)
    gone = [quiet_row(hours) for hours in range(1, windows + 1)]
    assert held(ordered(30), *gone, rule=rule, results=(result(-30, "rejected"),)).because == because


def test_a_window_that_was_not_judged_says_not_that_it_is_gone():
    unjudged = decide(signals(signal(state="not_judged", because="too_few"), hours=-2), (), NOW)
    assert held(ordered(30), unjudged, results=(result(-30, "rejected"),)).because == "loop_guard"


def test_a_person_lifts_the_guard():
    known = {"results": (result(-30, "rejected"),), "last_by_hand": AS_OF - timedelta(hours=2)}
    assert held(ordered(30), **known).outcome == "retrain"


def test_another_cause_is_not_guarded():
    rejected = (result(-30, "rejected"),)
    row = decide(signals(signal("skew:dest")), [ordered(30)], NOW, results=rejected)
    assert row.outcome == "retrain"


@pytest.mark.parametrize(("hours", "because"), [(7 * 24 - 1, "budget"), (7 * 24, "skew")])
def test_the_weeks_budget_holds(hours, because):
    rule = rules(cooldown_hours=0, windows={"exceeded": 1, "of": 1}, max_retrainings_per_week=3)
    row = held(ordered(hours), ordered(30), ordered(20), rule=rule)
    assert row.because == because
    if because == "budget":
        assert "3 of at most 3 retrainings were ordered in the last 7 days: none until 2013-11-20 04:00" in row.words


def test_a_budget_of_none_orders_none():
    rule = rules(windows={"exceeded": 1, "of": 1}, max_retrainings_per_week=0)
    assert held(rule=rule).because == "budget"


@pytest.mark.parametrize(
    ("start", "end", "quiet"),
    [
        ("22:00", "05:00", True),
        ("03:00", "05:00", True),
        ("22:00", "03:00", False),
        ("03:01", "05:00", False),
        ("04:00", "03:00", False),
    ],
)
def test_quiet_hours_are_half_open_and_may_pass_midnight(start, end, quiet):
    """The tests' time is 03:00."""
    row = held(rule=rules(**AT_ONCE, quiet_hours={"start": start, "end": end}))
    assert row.because == ("quiet_hours" if quiet else "skew")


def test_after_the_quiet_hours_it_is_decided_anew():
    rule = rules(quiet_hours={"start": "03:00", "end": "05:00"})
    rows = []
    for hours in range(3):
        rows.append(held(*rows, rule=rule, hours=hours))
    assert [row.because for row in rows] == ["hysteresis", "quiet_hours", "skew"]


def test_what_is_held_back_leaves_room_for_another_cause():
    rejected = (result(-30, "rejected"),)
    row = decide(signals(signal(value=0.9), signal("skew:dest")), [ordered(30)], NOW, results=rejected)
    assert (row.outcome, row.cause, row.causes) == ("retrain", "skew:dest", ("skew:carrier", "skew:dest"))


def errors(*rows, hours=0.0, **known):
    """The row of a champion that errs."""
    told = {"previous_version": "0", "champion_since": AS_OF - timedelta(hours=2)} | known
    return decide(signals(signal("errors:version 1"), hours=hours), rows, ROLLBACK, **told)


def test_a_young_champion_that_errs_goes_back():
    row = errors()
    assert (row.outcome, row.because, row.severity, row.retrain_as_of) == ("rollback", "errors", "critical", None)


@pytest.mark.parametrize(
    ("known", "because"),
    [
        ({"previous_version": None}, "no_previous"),
        ({"by_rollback": True}, "rolled_back"),
        ({"champion_since": AS_OF - timedelta(hours=24)}, "settled"),
        ({"champion_since": None}, "settled"),
        (
            {"last_order": d.LedgerOrder(ledger_id="other", as_of=AS_OF, outcome="rollback")},
            "rolled_back",
        ),
    ],
)
def test_there_is_not_always_a_way_back(known, because):
    row = errors(**known)
    assert (row.outcome, row.because, row.severity) == ("warn", because, "critical")


def test_a_champion_is_left_once():
    assert errors(errors(), hours=1).because == "rolled_back"


def test_neither_a_pause_nor_quiet_hours_hold_a_way_back():
    assert errors(paused="paused").outcome == "rollback"


def test_where_there_is_no_way_back_a_retraining_is_still_ordered():
    found = signals(signal("errors:version 1"), signal())
    assert decide(found, (), ROLLBACK).outcome == "retrain"


def test_ids_are_of_the_runs():
    assert ordered(30).ledger_id == ledger_id(-30)
