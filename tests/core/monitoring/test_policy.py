"""What the policy makes of signals: what counts, what comes first, what is said."""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core import documents as d
from retraining.core.monitoring import policy
from tests.support.scenes.ledger import AT_ONCE, CHAMPION, SECOND, decide, rules, signal, signals
from tests.support.small_model import AS_OF


def at(hours, *found, **values):
    """The signals of a monitor run, an hour after the other."""
    return signals(*(found or (signal(),)), hours=hours, **values)


def test_one_window_over_the_threshold_is_none():
    row = decide(at(0))
    assert (row.outcome, row.because, row.cause, row.severity) == ("none", "hysteresis", "skew:carrier", "info")
    assert row.words == (
        "Waiting: carrier is at 0.4 (over 0.3). But this is 1 of the 2 windows of the last 3 that it takes."
    )
    assert row.retrain_as_of is None


def test_two_of_the_last_three_windows_order_a_retraining():
    rows = [decide(at(0))]
    rows.append(decide(at(1, signal(value=0.1, state="ok")), rows))
    row = decide(at(2), rows)
    assert (row.outcome, row.because, row.severity) == ("retrain", "skew", "warning")
    assert row.retrain_as_of == AS_OF + timedelta(hours=2)
    assert row.words == "Retraining: carrier is at 0.4 (over 0.3)."


def test_another_feature_is_another_cause():
    assert decide(at(1, signal("skew:dest")), [decide(at(0))]).because == "hysteresis"


def test_windows_of_an_earlier_champion_do_not_count():
    assert decide(at(1, champion=SECOND), [decide(at(0))]).because == "hysteresis"


def test_a_source_is_no_matter_of_the_champion():
    source = signal("source:p.d.t")
    assert decide(at(1, source, champion=SECOND), [decide(at(0, source))]).outcome == "warn"


def test_an_age_is_sure_in_one_window():
    assert decide(at(0, signal("age:", value=31))).outcome == "retrain"


def test_what_asks_for_most_comes_first_and_all_is_listed():
    found = (signal("drift:a", value=0.9), signal("skew:b", value=0.31), signal("skew:c", value=0.5))
    row = decide(at(0, *found), rule=rules(**AT_ONCE))
    assert (row.outcome, row.cause, row.causes) == ("retrain", "skew:c", ("skew:c", "skew:b", "drift:a"))
    assert row.words == "Retraining: c is at 0.5 (over 0.3); also skew:b, drift:a."


def test_many_causes_are_cut_in_the_words():
    found = [signal(f"skew:f{index}") for index in range(8)]
    assert decide(at(0, *found), rule=rules(**AT_ONCE)).words.endswith(" and 2 more.")


@pytest.mark.parametrize("action", ["warn", "retrain", "tune"])
def test_the_file_says_what_a_kind_asks_for(action):
    row = decide(at(0, signal("estimate:")), rule=rules(**AT_ONCE, actions={"estimate": action}))
    assert row.outcome == action
    assert (row.retrain_as_of is not None) == (action in ("retrain", "tune"))


def test_none_is_written_down_and_no_more():
    row = decide(at(0), rule=rules(**AT_ONCE, actions={"skew": "none"}))
    assert (row.outcome, row.because, row.causes) == ("none", "no_signal", ("skew:carrier",))
    assert "monitoring.policy.actions asks for nothing then" in row.words


@pytest.mark.parametrize("state", ["exceeded", "not_judged"])
@pytest.mark.parametrize("named", ["feature_gone", "garbage", "giant_batch", "clock_skew", "source_stopped"])
def test_a_bad_input_is_named_and_never_a_retraining(named, state):
    """Also where a value was measured, and the file asks for a retraining."""
    row = decide(at(0, signal(state=state, because=named)), rule=rules(**AT_ONCE))
    assert row.outcome == ("warn" if state == "exceeded" else "none")
    assert row.named_states == {"skew:carrier": named}
    assert row.because == ("skew" if state == "exceeded" else "named_state")


def test_nothing_over_its_threshold_names_the_nearest():
    row = decide(at(0, signal(value=0.1, state="ok"), signal("skew:dest", value=0.29, state="ok")))
    assert (row.outcome, row.because, row.cause) == ("none", "no_signal", None)
    assert row.words == "Nothing: no signal is over its threshold. The nearest: dest is at 0.29 (over 0.3)."


def test_a_metric_that_may_fall_is_as_near_as_it_has_fallen():
    """A good AUC is far from its threshold, although it is the larger number."""
    auc = {"measure": "auc", "threshold": 0.55, "state": "ok"}
    row = decide(at(0, signal("performance:", value=0.73, **auc), signal(value=0.28, state="ok")))
    assert row.words.endswith("The nearest: carrier is at 0.28 (over 0.3).")
    row = decide(at(0, signal("performance:", value=0.56, **auc), signal(value=0.28, state="ok")))
    assert row.words.endswith("The nearest: performance is at 0.56 (over 0.3).")


def test_what_was_not_judged_is_not_near_its_threshold():
    few = signal("latency:", value=3.4, state="not_judged", because="too_few")
    row = decide(at(0, few, signal(value=0.1, state="ok")))
    assert row.words.endswith("The nearest: carrier is at 0.1 (over 0.3).")


def test_without_a_champion_or_requests_there_is_nothing_to_judge():
    assert decide(at(0, signal(state="ok"), champion=None)).because == "no_champion"
    few = decide(at(0, signal(state="not_judged", because="too_few"), requests=199))
    assert few.because == "too_few_requests"
    assert few.words == "Nothing: 199 requests in 24 hours are too few to judge (at least 200)."


def test_a_retraining_may_compute_as_of_another_time():
    row, earlier = decide(at(0), rule=rules(**AT_ONCE)), AS_OF - timedelta(days=2)
    assert policy.retrain_as_of(row, earlier).retrain_as_of == earlier
    assert policy.retrain_as_of(row, None) == row
    waits = decide(at(0))
    assert policy.retrain_as_of(waits, earlier) == waits


def test_orders_matter_as_long_as_they_can():
    assert policy.reach(rules(cooldown_hours=24)) == timedelta(hours=16 * 24)
    assert policy.reach(rules(cooldown_hours=1)) == timedelta(days=7)


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
        because="drift",
        words="x",
        retrain_as_of=AS_OF,
        last_retrain_as_of=None,
        decision="retrain",
    )
    assert decide(at(23), [old], rules(**AT_ONCE)).because == "cooldown"
    assert decide(at(24), [old], rules(**AT_ONCE)).outcome == "retrain"
