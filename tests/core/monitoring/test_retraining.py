"""When drift orders a retraining, and when it waits."""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core import documents as d
from retraining.core.monitoring import retraining
from retraining.core.monitoring.retraining import decide_retraining
from tests.support.small_model import AS_OF, make_spec

URI = "gs://b/late/monitor/x/drift.json"


def drift(*values, rows=500, champion="20131101t030000z-0123456789ab"):
    features = tuple(
        d.FeatureDrift(name=f"f{i}", distance="l_infinity", value=value, threshold=0.3, drifted=value > 0.3)
        for i, value in enumerate(values)
    )
    return d.Drift(
        model="late",
        as_of=AS_OF,
        window_hours=24,
        endpoint_name="e",
        log_table="t",
        rows=rows,
        champion=d.DriftChampion(version_id="1", run_key=champion),
        baseline_uri="gs://b/x",
        threshold=0.3,
        features=features,
    )


def row(hours_before, decision="retrain"):
    as_of = AS_OF - timedelta(hours=hours_before)
    return d.Ledger(
        model="late",
        as_of=as_of,
        outcome=decision,
        because="drift" if decision == "retrain" else "no_drift",
        words="x",
        drift_uri=URI,
        retrain_as_of=as_of if decision == "retrain" else None,
        last_retrain_as_of=None,
    )


def decide(found, *ledger):
    return decide_retraining(make_spec(), found, ledger, AS_OF, URI)


def test_drift_orders_a_retraining_and_names_the_features():
    found = decide(drift(0.4, 0.1, 0.9))
    assert (found.outcome, found.because, found.retrain_as_of) == ("retrain", "drift", AS_OF)
    assert found.words == "Retraining: f2 0.900 (over 0.3), f0 0.400 (over 0.3) drifted in 500 requests."
    assert d.Ledger.parse(found.to_bytes()) == found


def test_many_drifted_features_are_cut_in_the_words():
    assert " and 3 more drifted" in decide(drift(*[0.9] * 8)).words


def test_no_drift_waits_and_names_the_nearest():
    found = decide(drift(0.3, 0.1))
    assert (found.outcome, found.because, found.retrain_as_of) == ("none", "no_drift", None)
    assert found.words == "Waiting: no feature is over its threshold. The largest is f0 with 0.300."


def test_no_champion_waits():
    found = decide(None)
    assert (found.because, found.drift_uri) == ("no_champion", None)


def test_a_pause_holds_a_retraining_back_and_counts_as_none():
    paused = "retraining of late is paused until 2013-11-25 00:00 UTC by ada."
    found = decide_retraining(make_spec(), drift(0.9), [], AS_OF, URI, paused)
    assert (found.outcome, found.because, found.retrain_as_of) == ("none", "paused", None)
    assert found.words == f"Waiting: f0 0.900 (over 0.3) drifted in 500 requests. But {paused}"
    assert decide(drift(0.9), found).because == "drift"  # no cool-down begins with it


def test_without_drift_a_pause_is_no_reason():
    assert decide_retraining(make_spec(), drift(0.1), [], AS_OF, URI, "paused").because == "no_drift"


@pytest.mark.parametrize(("rows", "because"), [(199, "too_few_requests"), (200, "drift")])
def test_few_requests_decide_nothing(rows, because):
    assert decide(drift(0.9, rows=rows)).because == because


@pytest.mark.parametrize(("hours", "because"), [(23.99, "cooldown"), (24, "drift")])
def test_the_cool_down_holds(hours, because):
    found = decide(drift(0.9), row(hours))
    assert found.because == because
    assert found.last_retrain_as_of == AS_OF - timedelta(hours=hours)
    if because == "cooldown":
        assert "the cool-down of 24 hours lasts until" in found.words


def test_rows_that_waited_or_lie_ahead_start_no_cool_down():
    assert decide(drift(0.9), row(1, "none"), row(0), row(-5)).because == "drift"


@pytest.mark.parametrize(("hours", "because"), [(47, "cooldown"), (48, "drift")])
def test_retrainings_that_made_no_champion_lengthen_the_wait(hours, because):
    assert decide(drift(0.9), row(hours), row(hours + 24)).because == because


def test_a_new_champion_ends_the_lengthened_wait():
    after_both = drift(0.9, champion="20131119t030000z-0123456789ab")
    assert decide(after_both, row(25), row(49)).because == "drift"


def test_the_wait_is_lengthened_sixteenfold_at_most():
    many = [row(hours) for hours in range(16 * 24, 16 * 24 + 20)]
    assert decide(drift(0.9), *many).because == "drift"
    assert decide(drift(0.9), row(16 * 24 - 1), *many[:12]).because == "cooldown"


def test_a_retraining_may_compute_as_of_another_time():
    row = decide_retraining(make_spec(), None, [], AS_OF)
    ordered = row.model_copy(update={"outcome": "retrain", "retrain_as_of": AS_OF})
    earlier = AS_OF - timedelta(days=2)
    assert retraining.retrain_as_of(ordered, earlier).retrain_as_of == earlier
    assert retraining.retrain_as_of(ordered, None) == ordered
    assert retraining.retrain_as_of(row, earlier) == row
    assert retraining.reach(make_spec()) == timedelta(hours=make_spec().monitoring.cooldown_hours * 16)
