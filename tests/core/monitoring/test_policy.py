"""What the policy makes of signals: what counts, what comes first, what is said."""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core import documents as d
from retraining.core.monitoring import orders, policy
from tests.support.scenes.ledger import AT_ONCE, CHAMPION, SECOND, decide, ledger_id, result, rules, signal, signals
from tests.support.small_model import AS_OF


def at(hours, *found, **values):
    """The signals of a monitor run, an hour after the other."""
    return signals(*(found or (signal(),)), hours=hours, **values)


def test_one_window_over_the_threshold_is_none():
    row = decide(at(0))
    assert (row.outcome, row.reason, row.cause, row.severity) == ("none", "hysteresis", "skew:carrier", "info")
    assert row.message == (
        "Waiting: carrier is at 0.4 (over 0.3). But this is 1 of the 2 windows of the last 3 that it takes."
    )
    assert row.retrain_as_of is None


def test_two_of_the_last_three_windows_order_a_retraining():
    rows = [decide(at(0))]
    rows.append(decide(at(1, signal(value=0.1, state="ok")), rows))
    row = decide(at(2), rows)
    assert (row.outcome, row.reason, row.severity) == ("retrain", "skew", "warning")
    assert row.retrain_as_of == AS_OF + timedelta(hours=2)
    assert row.message.startswith("Retraining: carrier is at 0.4")


def test_another_feature_is_another_cause():
    assert decide(at(1, signal("skew:dest")), [decide(at(0))]).reason == "hysteresis"


def test_windows_of_an_earlier_champion_do_not_count():
    assert decide(at(1, champion=SECOND), [decide(at(0))]).reason == "hysteresis"


def test_a_source_is_no_matter_of_the_champion():
    source = signal("source:p.d.t")
    assert decide(at(1, source, champion=SECOND), [decide(at(0, source))]).outcome == "warn"


def test_an_age_is_sure_in_one_window():
    assert decide(at(0, signal("age:", value=31))).outcome == "retrain"


def test_what_asks_for_most_comes_first_and_all_is_listed():
    found = (signal("drift:a", value=0.9), signal("skew:b", value=0.31), signal("skew:c", value=0.5))
    row = decide(at(0, *found), rule=rules(**AT_ONCE))
    assert (row.outcome, row.cause, row.causes) == ("retrain", "skew:c", ("skew:c", "skew:b", "drift:a"))
    assert row.message == "Retraining: c is at 0.5 (over 0.3); also skew:b, drift:a."


def test_many_causes_are_cut_in_the_words():
    found = [signal(f"skew:f{index}") for index in range(8)]
    assert decide(at(0, *found), rule=rules(**AT_ONCE)).message.endswith(" and 2 more.")


@pytest.mark.parametrize("action", ["warn", "retrain", "tune"])
def test_the_file_says_what_a_kind_asks_for(action):
    row = decide(at(0, signal("estimate:")), rule=rules(**AT_ONCE, actions={"estimate": action}))
    assert row.outcome == action
    assert (row.retrain_as_of is not None) == (action in ("retrain", "tune"))


def test_none_is_written_down_and_no_more():
    row = decide(at(0), rule=rules(**AT_ONCE, actions={"skew": "none"}))
    assert (row.outcome, row.reason, row.causes) == ("none", "no_signal", ("skew:carrier",))
    assert "monitoring.policy.actions" in row.message


@pytest.mark.parametrize("state", ["exceeded", "not_judged"])
@pytest.mark.parametrize("named", ["feature_gone", "garbage", "giant_batch", "clock_skew", "source_stopped"])
def test_a_bad_input_is_named_and_never_a_retraining(named, state):
    """Also where a value was measured, and the file asks for a retraining."""
    row = decide(at(0, signal(state=state, because=named)), rule=rules(**AT_ONCE))
    assert row.outcome == ("warn" if state == "exceeded" else "none")
    assert row.named_states == {"skew:carrier": named}
    assert row.reason == ("skew" if state == "exceeded" else "named_state")


def test_nothing_over_its_threshold_names_the_nearest():
    row = decide(at(0, signal(value=0.1, state="ok"), signal("skew:dest", value=0.29, state="ok")))
    assert (row.outcome, row.reason, row.cause) == ("none", "no_signal", None)
    assert "nearest: dest is at 0.29" in row.message


def test_a_metric_that_may_fall_is_as_near_as_it_has_fallen():
    """A good AUC is far from its threshold, although it is the larger number."""
    auc = {"measure": "auc", "threshold": 0.55, "state": "ok"}
    row = decide(at(0, signal("performance:", value=0.73, **auc), signal(value=0.28, state="ok")))
    assert "nearest: carrier is at 0.28" in row.message
    row = decide(at(0, signal("performance:", value=0.56, **auc), signal(value=0.28, state="ok")))
    assert "nearest: performance is at 0.56" in row.message


def test_what_was_not_judged_is_not_near_its_threshold():
    few = signal("latency:", value=3.4, state="not_judged", because="too_few")
    row = decide(at(0, few, signal(value=0.1, state="ok")))
    assert "nearest: carrier is at 0.1" in row.message


def test_without_a_champion_or_requests_there_is_nothing_to_judge():
    assert decide(at(0, signal(state="ok"), champion=None)).reason == "no_champion"
    few = decide(at(0, signal(state="not_judged", because="too_few"), requests=199))
    assert few.reason == "too_few_requests"
    assert "199 requests" in few.message
    assert "at least 200" in few.message


def test_a_retraining_may_compute_as_of_another_time():
    row, earlier = decide(at(0), rule=rules(**AT_ONCE)), AS_OF - timedelta(days=2)
    assert policy.retrain_as_of(row, earlier).retrain_as_of == earlier
    assert policy.retrain_as_of(row, None) == row
    waits = decide(at(0))
    assert policy.retrain_as_of(waits, earlier) == waits


def test_orders_matter_as_long_as_they_can():
    assert orders.reach(rules(cooldown_hours=24)) == timedelta(hours=16 * 24)
    assert orders.reach(rules(cooldown_hours=1)) == timedelta(days=7)


def test_the_row_is_of_the_champion_and_the_policy_that_it_was_decided_by():
    row = decide(at(0), rule=rules(**AT_ONCE))
    assert row.facts is not None
    assert row.facts.champion == CHAMPION
    assert row.policy == rules(**AT_ONCE)


def test_rows_of_an_earlier_release_count_as_orders():
    old = d.Ledger(
        model="late",
        as_of=AS_OF,
        outcome="retrain",
        reason="drift",
        message="x",
        retrain_as_of=AS_OF,
        last_retrain_as_of=None,
        decision="retrain",
    )
    assert decide(at(23), [old], rules(**AT_ONCE)).reason == "cooldown"
    assert decide(at(24), [old], rules(**AT_ONCE)).outcome == "retrain"


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
    assert (row.outcome, row.reason, row.retrain_as_of) == ("warn", "paused", None)
    assert row.message.endswith(f"But {paused}")
    assert held(row, hours=1).outcome == "retrain"


@pytest.mark.parametrize(("hours", "because"), [(23.99, "cooldown"), (24, "skew")])
def test_the_cool_down_holds(hours, because):
    row = held(ordered(hours))
    assert row.reason == because
    assert row.last_retrain_as_of == AS_OF - timedelta(hours=hours)


def test_what_lies_ahead_starts_no_cool_down():
    assert held(ordered(0), ordered(-5)).outcome == "retrain"


@pytest.mark.parametrize(("hours", "because"), [(47, "cooldown"), (48, "skew")])
def test_retrainings_that_made_no_champion_lengthen_the_wait(hours, because):
    assert held(ordered(hours), ordered(hours + 24)).reason == because


def test_a_new_champion_ends_the_lengthened_wait():
    assert held(ordered(25), ordered(49), champion=SECOND).outcome == "retrain"


def test_the_wait_is_lengthened_sixteenfold_at_most():
    many = [ordered(hours) for hours in range(16 * 24, 16 * 24 + 20)]
    remembered = tuple(str(row.ledger_id) for row in many)
    assert held(*many, remembered=remembered).outcome == "retrain"
    assert held(ordered(16 * 24 - 1), *many[:12], remembered=remembered).reason == "cooldown"


def test_a_row_of_long_ago_counts_only_if_it_was_remembered():
    """So that a row decided again among all rows of a model comes out as it did."""
    rows = [ordered(hours) for hours in (16 * 24 - 1, 17 * 24, 17 * 24 + 12, 18 * 24, 18 * 24 + 12)]
    assert held(*rows).outcome == "retrain"
    assert held(*rows, remembered=tuple(str(row.ledger_id) for row in rows)).reason == "cooldown"


@pytest.mark.parametrize(("hours", "because"), [(-23, "cooldown"), (23, "cooldown"), (24, "skew"), (-24, "skew")])
def test_two_monitors_at_once_see_each_others_order(hours, because):
    """Whichever time the other one was of."""
    other = d.LedgerOrder(ledger_id="other", as_of=AS_OF + timedelta(hours=hours), outcome="retrain")
    assert held(last_order=other).reason == because


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
    assert row.reason == because


def test_the_guard_says_what_it_waits_for():
    words = held(ordered(30), results=(result(-30, "rejected"),)).message
    assert "no new champion" in words
    new = held(ordered(30), champion=SECOND, results=(result(-30, "promoted", SECOND),)).message
    assert "made version 2" in new


@pytest.mark.parametrize(("windows", "because"), [(2, "loop_guard"), (3, "skew")])
def test_a_cause_that_was_gone_is_a_new_one(windows, because):
    rule = rules(windows={"exceeded": 1, "of": 3}, max_retrainings_per_week=None)
    gone = [quiet_row(hours) for hours in range(1, windows + 1)]
    assert held(ordered(30), *gone, rule=rule, results=(result(-30, "rejected"),)).reason == because


def test_a_window_that_was_not_judged_says_not_that_it_is_gone():
    unjudged = decide(signals(signal(state="not_judged", because="too_few"), hours=-2), (), NOW)
    assert held(ordered(30), unjudged, results=(result(-30, "rejected"),)).reason == "loop_guard"


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
    assert row.reason == because
    if because == "budget":
        assert "3 of at most 3" in row.message
        assert "until 2013-11-20 04:00" in row.message


def test_a_budget_of_none_orders_none():
    rule = rules(windows={"exceeded": 1, "of": 1}, max_retrainings_per_week=0)
    assert held(rule=rule).reason == "budget"


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
    assert row.reason == ("quiet_hours" if quiet else "skew")


def test_after_the_quiet_hours_it_is_decided_anew():
    rule = rules(quiet_hours={"start": "03:00", "end": "05:00"})
    rows = []
    for hours in range(3):
        rows.append(held(*rows, rule=rule, hours=hours))
    assert [row.reason for row in rows] == ["hysteresis", "quiet_hours", "skew"]


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
    assert (row.outcome, row.reason, row.severity, row.retrain_as_of) == ("rollback", "errors", "critical", None)


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
    assert (row.outcome, row.reason, row.severity) == ("warn", because, "critical")


def test_a_champion_is_left_once():
    assert errors(errors(), hours=1).reason == "rolled_back"


def test_neither_a_pause_nor_quiet_hours_hold_a_way_back():
    assert errors(paused="paused").outcome == "rollback"


def test_where_there_is_no_way_back_a_retraining_is_still_ordered():
    found = signals(signal("errors:version 1"), signal())
    assert decide(found, (), ROLLBACK).outcome == "retrain"


def test_ids_are_of_the_runs():
    assert ordered(30).ledger_id == ledger_id(-30)
