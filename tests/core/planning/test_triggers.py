"""What started a run: one trigger, however many asset events there were."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core.errors import PlanError
from retraining.core.planning import triggers, windows
from retraining.core.planning.triggers import AssetEvent, mode_of, newest_event, trigger_of
from tests.support.refusals import refuses

OWN = "retrain/late"


def event(hour: int, asset: str = OWN, **extra: Any) -> AssetEvent:
    """An event of an hour of one day."""
    return AssetEvent(asset=asset, at=datetime(2013, 11, 20, hour, tzinfo=UTC), extra=extra)


def as_of(hour: int) -> str:
    """That hour as an event says it."""
    return f"2013-11-20T{hour:02}:00:00Z"


@pytest.mark.parametrize(
    ("run_type", "person", "kind", "reason"),
    [
        ("manual", "ada", "manual", "by ada"),
        ("manual", None, "manual", "by hand"),
        ("scheduled", None, "scheduled", "the model's schedule"),
        ("backfill", "ada", "backfill", "a backfill"),
        ("asset_triggered", None, "asset", "an asset event"),
    ],
)
def test_without_events_the_runs_type_says_it(run_type, person, kind, reason):
    found = trigger_of(run_type, person=person)
    assert (found.kind, found.reason, found.cause, found.events) == (kind, reason, None, ())
    assert mode_of(run_type) == ("backfill" if run_type == "backfill" else "live")


def test_ten_events_are_one_trigger_with_each_cause_once_the_newest_first():
    drift = [event(hour, as_of=as_of(hour), cause="drift:carrier", reason=f"at {hour}") for hour in range(1, 9)]
    new = event(9, as_of=as_of(9), cause="new_data:flights.flights", reason="a day", ledger_uri="gs://b/late/x.json")
    said = trigger_of("asset_triggered", events=[new, *drift, event(10, asset="shop", as_of=as_of(3))])
    assert (said.cause, said.reason) == ("new_data:flights.flights", "a day")
    assert [(each.cause, each.times, each.reason) for each in said.events] == [
        ("new_data:flights.flights", 1, "a day"),
        ("asset:shop", 1, "the asset shop was updated"),
        ("drift:carrier", 8, "at 8"),
    ]
    assert said.events[0].ledger_uri == "gs://b/late/x.json"


def test_the_newest_as_of_is_the_runs_whenever_it_came():
    """A monitor's run that was cleared later asks as of an older hour: the run knows what both knew."""
    older, newer = event(9, as_of=as_of(2)), event(5, as_of=as_of(4))
    assert newest_event([newer, older]) is newer
    assert newest_event([newer, older, event(6, asset="shop")]).asset == "shop"  # as of when it came
    assert newest_event([]) is None


def test_a_time_that_is_none_is_refused_by_the_plan_and_not_passed_over():
    events = [event(9, as_of=as_of(9)), event(5, asset="shop", as_of="yesterday")]
    chosen = newest_event(events)
    with refuses(PlanError, where="asset event, extra.as_of", found="'yesterday'"):
        windows.resolve_as_of(None, chosen.extra, None, None)
    assert trigger_of("asset_triggered", events=events).cause == "asset:shop"


def test_what_somebody_elses_event_says_is_bounded():
    """Other DAGs may write anything into an event: no text is endless, no line breaks, nothing but text is one."""
    said = trigger_of(
        "asset_triggered",
        events=[event(1, asset="shop", cause=["x"], reason="a\n" * 5000, ledger_uri="http://elsewhere", as_of=None)],
    )
    assert said.cause == "asset:shop"
    assert len(said.reason) == 1000
    assert "\n" not in said.reason
    assert said.events[0].ledger_uri is None
    many = [event(number % 24, cause=f"drift:f{number}") for number in range(100)]
    assert len(trigger_of("asset_triggered", events=many).events) == triggers.MAX_CAUSES
