"""The monitor: measures once, decides once, orders by an event that carries the reason."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors

from retraining.core.documents import KINDS, Ledger
from retraining.core.naming import storage
from retraining.operators.airflow.notification import settle
from retraining.operators.monitoring.decision import DecideRetrainingOperator
from retraining.operators.monitoring.measurement import MeasureSignalsOperator
from tests.support.airflow_release import AirflowFailException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.request_log import CHAMPION_KEY, UNSEEN, counted
from tests.support.scenes.monitor_run import require_replayed

TABLE = "local-project.retraining.requests_flight_delays"
FORM = {"as_of": None, "retrain_as_of": None, "window_hours": 24}


@pytest.fixture
def cloud() -> FakeCloud:
    """A champion whose carrier was always UA; every request says ZZ."""
    fake = FakeCloud()
    fake.registry.add(CHAMPION_KEY, "champion")
    statistics = json.loads((EXAMPLES / "statistics__two_features.json").read_text())
    carrier = {"kind": "categorical", "nulls": 0, "distinct": 1, "top": [{"value": "UA", "count": 100}]}
    for split in statistics["splits"].values():
        split["features"] = {"carrier": carrier}
    statistics["splits"]["train"]["rows"] = 100
    folder = f"gs://bucket/flight_delays/runs/{CHAMPION_KEY}"
    fake.artifacts.objects[f"{folder}/statistics.json"] = (
        KINDS["statistics"].parse(json.dumps(statistics | {"run_key": CHAMPION_KEY})).to_bytes()
    )
    fake.warehouse.schemas[TABLE] = []
    fake.warehouse.rows["requests"] = counted({"carrier": {UNSEEN: 300}})
    fake.endpoints.ensure("flight_delays", TABLE, {})
    return fake


def monitor(
    cloud: FakeCloud, make_run: Any, hour: int, params: dict[str, Any] | None = None, **kwargs: Any
) -> tuple[Any, dict[str, Any]]:
    """Both tasks of one monitor run; a retraining's time is given, so that its order waits for no new days."""
    time = datetime(2013, 11, 21, hour, tzinfo=UTC)
    run = make_run(
        dag_id="monitor__flight_delays",
        run_id=f"scheduled__{hour}",
        logical_date=time,
        params=FORM | {"retrain_as_of": f"{time:%Y-%m-%dT%H:%M:%SZ}"} | (params or {}),
        outlet_events=OutletEventAccessors(),
    )
    run.execute(MeasureSignalsOperator(task_id="measure", model="flight_delays", cloud=cloud.connect))
    told = run.execute(DecideRetrainingOperator(task_id="decide", model="flight_delays", cloud=cloud.connect))
    require_replayed(cloud.artifacts, told["ledger_uri"])
    return run, told


def measured(cloud: FakeCloud) -> list[str]:
    """What BigQuery was asked for signals, and not for the ledger."""
    return [asked for asked in cloud.warehouse.asked if "__ledger__" not in asked]


def added(run: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Events of a run: the asset's key, and what the event says."""
    events = [event for accessor in run.outlet_events.values() for event in accessor.asset_alias_events]
    return [(event.dest_asset_key, event.extra) for event in events]


def test_drift_orders_a_retraining_with_its_reason(cloud, make_run) -> None:
    """The event is the asset's, and says as of when and why."""
    run, result = monitor(cloud, make_run, 5)
    assert result["because"] == "skew"
    ((asset, extra),) = added(run)
    assert asset.name == "retrain/flight_delays"
    assert extra["as_of"] == "2013-11-21T05:00:00Z"
    assert "carrier" in extra["reason"]
    assert cloud.artifacts.objects[extra["ledger_uri"]]


def test_people_are_told_of_a_drift_once(cloud, make_run) -> None:
    """Not when it is held back, not by a cleared run, and not by one that was over meanwhile; with the ledger's row."""
    cloud.settings = dataclasses.replace(cloud.settings, notify_owners=("ml@example.com",))
    monitor(cloud, make_run, 5)
    monitor(cloud, make_run, 5)
    monitor(cloud, make_run, 6)
    (mail,) = cloud.notifiers.sent
    assert mail.subject.startswith("flight_delays: ")
    assert "A retraining was ordered." in mail.text
    assert "It is at 1 (l infinity, limit 0.3)." in mail.text
    assert "ledger.json" in mail.text
    settle(cloud.connect, "flight_delays", "monitor__flight_delays", "drift")
    monitor(cloud, make_run, 5)
    assert len(cloud.notifiers.sent) == 1


def test_the_event_is_out_before_anybody_is_told(cloud, make_run, monkeypatch) -> None:
    """A mail server that holds its caller up, or a process that dies at it, takes no retraining away."""
    cloud.settings = dataclasses.replace(cloud.settings, notify_owners=("ml@example.com",))
    execute = DecideRetrainingOperator.execute
    ended: list[Any] = []
    monkeypatch.setattr(DecideRetrainingOperator, "execute", lambda *given: ended.append(execute(*given)) or ended[-1])

    def send(*message: Any) -> None:
        assert ended, "told while the task was at work, before its event was out"
        raise KeyboardInterrupt("killed")

    monkeypatch.setattr(cloud.notifiers, "send_mail", send)
    with pytest.raises(KeyboardInterrupt):
        monitor(cloud, make_run, 5)
    assert ended[0]["outcome"] == "retrain"


def test_an_order_waits_for_days_that_it_trains_on(cloud, make_run) -> None:
    """No event; the log, the ledger and the message to people say until when: a day for labels, seven test days."""
    cloud.settings = dataclasses.replace(cloud.settings, notify_owners=("ml@example.com",))
    run, result = monitor(cloud, make_run, 5, {"retrain_as_of": None})
    assert (result["because"], added(run)) == ("new_days", [])
    assert "the order waits until 2013-11-30 00:00 UTC" in result["words"]
    (mail,) = cloud.notifiers.sent
    assert "A retraining waits for days of this that it can train on" in mail.text
    monitor(cloud, make_run, 6, {"retrain_as_of": None})
    assert len(cloud.notifiers.sent) == 1


def test_the_cooldown_holds_a_second_one_back(cloud, make_run) -> None:
    """An hour later: no event, and the ledger says why."""
    monitor(cloud, make_run, 5)
    run, result = monitor(cloud, make_run, 6)
    assert result["because"] == "cooldown"
    assert added(run) == []


def test_retrain_as_of_is_the_retrainings_time(cloud, make_run) -> None:
    """For a demonstration over old data."""
    run, result = monitor(cloud, make_run, 5, {"retrain_as_of": "2013-11-23T03:00:00Z"})
    assert added(run)[0][1]["as_of"] == "2013-11-23T03:00:00Z"
    row = Ledger.parse(cloud.artifacts.objects[result["ledger_uri"]])
    assert (row.as_of.hour, row.retrain_as_of.day) == (5, 23)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"window_hour": 3}, r"no Param 'window_hour'\. .*Did you mean 'window_hours'\?"),
        ({"as_of": "2999-01-01"}, "Param as_of: 2999-01-01 00:00:00 UTC, after the run's own time"),
        ({"retrain_as_of": "2999-01-01"}, "Param retrain_as_of: 2999-01-01 00:00:00 UTC, after the run's own time"),
    ],
)
def test_a_param_that_cannot_be_is_refused(cloud, make_run, wrong, words) -> None:
    """By name, for good, and no event goes out."""
    with pytest.raises(AirflowFailException, match=words):
        monitor(cloud, make_run, 5, wrong)
    assert not any(uri.endswith("ledger.json") for uri in cloud.artifacts.objects)


def test_a_cleared_monitor_reads_what_it_wrote(cloud, make_run) -> None:
    """The same row, the same event; nothing is measured again."""
    _, first = monitor(cloud, make_run, 5)
    asked = measured(cloud)
    run, second = monitor(cloud, make_run, 5)
    assert second == first
    assert measured(cloud) == asked
    assert len(added(run)) == 1


def test_a_paused_model_gets_no_queue_of_retrainings(cloud, make_run) -> None:
    """No event, so no run; the first monitor after the pause orders one at once, with no cool-down."""
    uri = storage.pause_uri(cloud.settings.bucket, "flight_delays")
    stored = json.loads((EXAMPLES / "pause__set.json").read_text())
    for until, because, events in (("2026-01-02", "paused", 0), ("2026-01-01", "skew", 1)):
        pause = stored | {"model": "flight_delays", "until": f"{until}T00:00:00Z"}
        cloud.artifacts.objects[uri] = KINDS["pause"].parse(json.dumps(pause)).to_bytes()
        run, result = monitor(cloud, make_run, 5 + events)
        assert (result["because"], len(added(run))) == (because, events)


def test_without_a_champion_there_is_nothing_to_compare(cloud, make_run) -> None:
    """It waits."""
    cloud.registry.versions.clear()
    run, result = monitor(cloud, make_run, 5)
    assert result["because"] == "no_champion"
    assert run.xcoms["measure", "return_value"]["rows"] is None


def test_before_the_first_request_there_is_no_table(cloud, make_run) -> None:
    """It waits, and asks BigQuery nothing."""
    cloud.warehouse.schemas.clear()
    _, result = monitor(cloud, make_run, 5)
    assert result["because"] == "too_few_requests"
    assert measured(cloud) == ["dry flight_delays/examples.sql"]
