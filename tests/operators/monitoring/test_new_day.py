"""The task `new_day`: one event for a day, whatever is killed, cleared or asked again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from airflow.sdk.execution_time.context import OutletEventAccessors

from retraining.core.documents import NewDay
from retraining.core.settings import include_path
from retraining.operators.monitoring import new_day
from retraining.operators.monitoring.new_day import FindNewDayOperator
from tests.support.fakes.cloud import FakeCloud

TABLE, ROWS = "local-project.flights.flights", "rows of flights.flights"
FORM = {"as_of": None, "retrain_as_of": None, "window_hours": 24}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> FakeCloud:
    """The flights model, whose new days start it; the table has a whole week and the day after."""
    from retraining.core.spec.model import ModelSpec

    values = yaml.safe_load((include_path() / "models" / "flight_delays.yaml").read_text())
    tables = [{"name": "flights.flights", "time": "scheduled_departure"}]
    spec = ModelSpec.model_validate(values | {"triggers": {"new_day": {"tables": tables}}})
    monkeypatch.setattr(new_day, "load_spec", lambda _: spec)
    fake = FakeCloud()
    fake.warehouse.schemas[TABLE] = [{"name": "scheduled_departure", "type": "TIMESTAMP"}]
    fake.warehouse.rows[ROWS] = [{"day": f"2013-11-{day}", "row_count": 900} for day in range(12, 20)]
    return fake


def look(cloud: FakeCloud, make_run: Any, hour: int, run_id: str | None = None, **form: Any) -> tuple[Any, Any]:
    """One look of the monitor; what it returns, and the events that it gave."""
    run = make_run(
        dag_id="monitor__flight_delays",
        run_id=run_id or f"scheduled__{hour}",
        logical_date=datetime(2013, 11, 21, hour, tzinfo=UTC),
        params=FORM | form,
        outlet_events=OutletEventAccessors(),
    )
    found = run.execute(FindNewDayOperator(task_id="new_day", model="flight_delays", cloud=cloud.connect))
    events = [event for accessor in run.outlet_events.values() for event in accessor.asset_alias_events]
    return found, [(event.dest_asset_key.name, event.extra) for event in events]


def test_a_complete_day_orders_one_retraining_with_its_cause(cloud, make_run) -> None:
    """The hours after ask the table nothing more and give no event."""
    found, events = look(cloud, make_run, 5)
    assert (found["outcome"], found["day"]) == ("announced", "2013-11-19")
    ((asset, extra),) = events
    assert asset == "retrain/flight_delays"
    assert extra == {
        "as_of": "2013-11-21T05:00:00Z",
        "reason": "Retraining: 2013-11-19 is complete: flights.flights has 900 rows of it, usually 900.",
        "ledger_uri": found["new_day_uri"],
        "cause": "new_data:flights.flights",
    }
    asked = list(cloud.warehouse.asked)
    for hour in (6, 7, 10):
        assert (look(cloud, make_run, hour)[0]["outcome"], look(cloud, make_run, hour)[1]) == ("known", [])
    assert cloud.warehouse.asked == asked


def test_a_task_that_died_after_it_had_decided_gives_its_event_when_it_is_tried_again(cloud, make_run) -> None:
    """Airflow takes the event with the task's success alone, so the first try's never went out."""
    first, _ = look(cloud, make_run, 5)
    asked = len(cloud.warehouse.asked)
    again, events = look(cloud, make_run, 5)
    assert again == first
    assert len(events) == 1
    assert len(cloud.warehouse.asked) == asked


def test_an_event_that_nobody_took_up_is_given_again_hours_later(cloud, make_run) -> None:
    """A DAG that is paused in Airflow, or a monitor's run that died for good after it had decided."""
    look(cloud, make_run, 5)
    found, events = look(cloud, make_run, 11)
    assert found["outcome"] == "again"
    assert events[0][1]["as_of"] == "2013-11-21T11:00:00Z"


def test_nothing_is_looked_for_before_its_hour(cloud, make_run) -> None:
    """At half past midnight the newest day is the one before: it is complete, and was announced by nobody."""
    found, _ = look(cloud, make_run, 0)
    assert found["day"] == "2013-11-18"


@pytest.mark.parametrize(
    ("change", "outcome", "words"),
    [
        (lambda fake: fake.warehouse.schemas.clear(), "no_table", f"there is no table {TABLE}"),
        (
            lambda fake: fake.warehouse.schemas.update({TABLE: [{"name": "scheduled_departure", "type": "STRING"}]}),
            "no_column",
            f"column scheduled_departure of {TABLE} is STRING",
        ),
        (
            lambda fake: fake.warehouse.schemas.update({TABLE: [{"name": "at", "type": "DATE"}]}),
            "no_column",
            "is not there",
        ),
        (lambda fake: fake.warehouse.rows.clear(), "incomplete", "2013-11-19 is not complete: flights.flights has 0"),
    ],
    ids=["no table", "another type", "no column", "a table that stopped"],
)
def test_a_source_that_is_not_as_the_spec_says_is_a_named_state_and_no_retraining(
    cloud, make_run, change, outcome, words
) -> None:
    """And no failure of the monitor."""
    change(cloud)
    found, events = look(cloud, make_run, 5)
    assert (found["outcome"], events) == (outcome, [])
    assert words in found["words"]


def test_a_count_that_would_read_too_much_is_not_made(cloud, make_run) -> None:
    """The dry run says so."""
    cloud.warehouse.bytes["rows of flights.flights"] = 2 * 10**9
    found, events = look(cloud, make_run, 5)
    assert (found["outcome"], events) == ("too_expensive", [])
    assert "would read 2.000 GB, at most 1 may be read (triggers.new_day.max_gb)" in found["words"]
    assert not [job for job in cloud.warehouse.asked if "__new_day__" in job]


def test_the_count_tells_bigquery_what_it_may_read(cloud, make_run) -> None:
    """A table that grows between the dry run and the count is refused by BigQuery."""
    look(cloud, make_run, 5)
    assert cloud.warehouse.limits == {"rows of flights.flights": 10**9}


def test_a_person_may_say_as_of_when_the_retraining_computes(cloud, make_run) -> None:
    """As of other events of the monitor."""
    found, events = look(cloud, make_run, 5, retrain_as_of="2013-11-23T03:00:00Z")
    assert events[0][1]["as_of"] == "2013-11-23T03:00:00Z"
    stored = NewDay.parse(cloud.artifacts.objects[found["new_day_uri"]])
    assert (stored.as_of.hour, stored.retrain_as_of.day) == (5, 23)
