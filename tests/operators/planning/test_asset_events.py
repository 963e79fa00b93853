"""The events that a retraining takes up: those that Airflow gives it, and those that came while it waited."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.execution_time.comms import ErrorResponse

from retraining.core.naming.vertex import version_labels
from retraining.operators.airflow.schedules import retraining_asset
from retraining.operators.planning.run_plan import PlanRunOperator
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.planned_run import FORM, stored_plan

ASSET = retraining_asset("flight_delays")
RUN_ID = "asset_triggered__1"
STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def event(hour: int, cause: str, *takers: str) -> Any:
    """An event as Airflow hands it out: of an hour, and given to some runs."""
    as_of = f"2013-11-20T{hour:02}:00:00Z"
    extra = {
        "as_of": as_of,
        "cause": cause,
        "reason": f"Retraining: {cause}.",
        "ledger_uri": f"gs://bucket/{hour}.json",
    }
    return SimpleNamespace(
        asset=SimpleNamespace(name=ASSET.name, uri=ASSET.uri),
        extra=extra,
        timestamp=STARTED - timedelta(hours=24 - hour),
        created_dagruns=[SimpleNamespace(dag_id="retrain__flight_delays", run_id=run_id) for run_id in takers],
    )


class Inlet(list[Any]):
    """What Airflow has of an asset's events, as 3.3 lets a task ask for a part of them."""

    def after(self, time: str) -> Inlet:
        """From a time on, as Airflow compares."""
        return Inlet(each for each in self if each.timestamp >= datetime.fromisoformat(time))


class Known:
    """What Airflow knows of the one asset; by asset, which Airflow 3.1 cannot hash."""

    def __init__(self, events: list[Any]) -> None:
        self.events = events

    def __getitem__(self, asset: Any) -> list[Any]:
        """All of its events."""
        assert asset == ASSET
        return self.events


def planned(make_run: Any, given: list[Any], known: Any) -> Any:
    """The plan of a run that was given some events, of all that Airflow knows."""
    cloud = FakeCloud()
    run = make_run(
        run_id=RUN_ID, run_type="asset_triggered", logical_date=None, params=FORM, events=given, inlet_events=known
    )
    task = PlanRunOperator(task_id="plan", model="flight_delays", inlets=[ASSET], cloud=cloud.connect)
    return stored_plan(cloud, run.execute(task))


@pytest.mark.parametrize("kind", [Inlet, list], ids=["Airflow 3.3", "Airflow 3.1"])
def test_ten_events_while_a_run_was_active_are_one_run_that_names_all_causes(make_run, kind) -> None:
    """Airflow gives the run the first of them alone; the newest one's time is the run's."""
    older = event(1, "skew:origin", "asset_triggered__0")
    first, *others = (event(hour, "skew:carrier" if hour < 8 else "performance:", RUN_ID) for hour in range(2, 12))
    made = planned(make_run, [first], Known(kind([older, first, *others])))
    assert made.as_of == datetime(2013, 11, 20, 11, tzinfo=UTC)
    assert made.as_of_source == "asset"
    assert (made.trigger.kind, made.trigger.cause) == ("asset", "performance:")
    assert [(each.cause, each.times) for each in made.trigger.events] == [("performance:", 4), ("skew:carrier", 6)]
    assert made.trigger.events[0].ledger_uri == "gs://bucket/11.json"
    assert version_labels(made)["retraining-cause"] == "performance"


def test_what_another_run_was_given_is_not_taken_again(make_run) -> None:
    """A run that waits longer than the one after it."""
    first, second = event(2, "skew:carrier", RUN_ID), event(3, "drift:origin", "asset_triggered__2")
    made = planned(make_run, [first], Known(Inlet([first, second])))
    assert [each.cause for each in made.trigger.events] == ["skew:carrier"]


def test_a_run_begins_though_airflow_cannot_list_its_events(make_run, caplog) -> None:
    """It answers 500 while a run that was given one of them is queued."""

    class Broken(Known):
        def __getitem__(self, asset: Any) -> list[Any]:
            raise AirflowRuntimeError(ErrorResponse(detail={"status_code": 500}))

    made = planned(make_run, [event(2, "skew:carrier", RUN_ID)], Broken([]))
    assert made.trigger.cause == "skew:carrier"
    assert "came since the run was made are not known" in caplog.text


def test_an_asset_event_of_an_earlier_release_says_no_cause(make_run) -> None:
    """Then its asset stands for it."""
    old = event(2, "", RUN_ID)
    del old.extra["cause"]
    made = planned(make_run, [old], Known(Inlet()))
    assert made.trigger.cause == "asset:retrain/flight_delays"
    assert made.trigger.reason == "Retraining: ."


def test_a_run_by_hand_asks_nobody(make_run) -> None:
    """Events that wait get a run of their own."""
    cloud = FakeCloud()
    run = make_run(params=FORM, inlet_events=Known(Inlet([event(2, "skew:carrier")])))
    task = PlanRunOperator(task_id="plan", model="flight_delays", inlets=[ASSET], cloud=cloud.connect)
    made = stored_plan(cloud, run.execute(task))
    assert (made.trigger.kind, made.trigger.cause, made.trigger.events) == ("manual", None, ())
    assert version_labels(made)["retraining-cause"] == "manual"
