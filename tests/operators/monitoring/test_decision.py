"""The task `decide`: what it orders, once whatever dies and whoever decides beside it, and what came of it."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from retraining.core import documents as d
from retraining.core.errors import ConflictError
from retraining.core.naming import dags, storage
from retraining.core.settings import include_path
from retraining.operators.monitoring import decision
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.dying import Death, DyingCloud
from tests.support.refusals import refuses
from tests.support.scenes.ledger import signal
from tests.support.scenes.monitor_run import CHAMPION, MODEL, START, Monitor, added, example

SECOND = d.DriftChampion(version_id="2", run_key="20131121t050000z-0123456789ab")


@pytest.fixture
def monitor(make_run: Any) -> Monitor:
    """A model whose file says that one window is enough."""
    return Monitor(make_run=make_run)


def with_policy(monkeypatch: pytest.MonkeyPatch, **values: Any) -> None:
    """Let the model's file have another policy."""
    from retraining.core.spec.files import load_spec

    spec = load_spec(include_path() / "models" / f"{MODEL}.yaml")
    changed = {f"monitoring.policy.{key}": value for key, value in values.items()}
    monkeypatch.setattr(decision, "load_spec", lambda _: spec.with_overrides(changed))


def run_plan(row: d.Ledger, kind: str = "asset", **values: Any) -> d.Plan:
    """The plan of the run that a row started, or of another kind."""
    uri = storage.ledger_uri("bucket", MODEL, str(row.ledger_id))
    event = {"cause": row.cause, "reason": row.message, "at": "2013-11-21T05:00:10Z", "ledger_uri": uri}
    key = f"{row.as_of:%Y%m%dt%H%M%Sz}-0123456789ab"
    told = {
        "run_key": key,
        "as_of": f"{row.as_of:%Y-%m-%dT%H:%M:%SZ}",
        "run_uri": f"gs://bucket/{MODEL}/runs/{key}",
        "trigger": {"kind": kind, "reason": row.message, "events": [event] if kind == "asset" else []},
        "dag_run_id": "asset_triggered__1",
    }
    plan: d.Plan = example("plan", "scheduled", **(told | values))
    return plan


def test_nothing_is_decided_without_signals(make_run: Any) -> None:
    """It is asked after a failed `measure` too, and says what to do then."""
    task = decision.DecideRetrainingOperator(task_id="decide", model=MODEL, cloud=FakeCloud().connect)
    with refuses(AirflowFailException, where="measure", found="without signals", way_out="clear it"):
        make_run(run_id="manual__1", logical_date=START, dag_id=f"monitor__{MODEL}").execute(task)


def test_a_retraining_is_ordered_with_its_cause(monitor: Monitor) -> None:
    """The event says what the run's plan and page then say."""
    run = monitor.measured(0)
    row = monitor.decide(run)
    (extra,) = added(run)
    assert extra["cause"] == row.cause == "skew:carrier"
    assert extra["as_of"] == "2013-11-21T05:00:00Z"
    assert extra["tune"] is False
    assert row.ledger_id == extra["ledger_uri"].split("/")[-2]


def test_a_study_is_asked_for(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the same event."""
    with_policy(monkeypatch, actions={"skew": "tune"})
    run = monitor.measured(0)
    assert monitor.decide(run).outcome == "tune"
    assert added(run)[0]["tune"] is True


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_anywhere_orders_no_second_retraining(make_run: Any, after: bool) -> None:
    """The next try gives the same row and the same event; the hour after it is held back."""
    for at in range(1, 100):
        monitor = Monitor(make_run=make_run)
        run = monitor.measured(0)
        cloud = DyingCloud(monitor.cloud, at, after=after)
        try:
            monitor.decide(run, cloud)
        except Death:
            if ("decide", "return_value") not in run.xcoms:  # else people are told: Airflow has the task's success
                assert added(run) == []
                row = monitor.decide(run)
                assert row.outcome == "retrain", f"call {at}: {cloud.calls[-1]}"
            assert len(added(run)) == 1
            assert monitor.decide(monitor.measured(1)).reason == "cooldown"
            assert [each.outcome for each in monitor.rows()] == ["retrain", "warn"]
            assert set(monitor.table) == {each.ledger_id for each in monitor.rows()}
            assert monitor.inserts == 2
        else:
            assert at > 8
            return
    raise AssertionError("a decision has more calls than that")


class Trouble(ConnectionError):
    """A service that does not answer."""


def fails(cloud: FakeCloud, name: str) -> Any:
    """A cloud of which one method never answers; what was asked is in its `calls`."""
    dying: Any = DyingCloud(cloud)
    around = dying.around

    def called(method: Any, asked: str) -> Any:
        if asked != name:
            return around(method, asked)

        def never(*_: Any, **__: Any) -> Any:
            dying.calls.append(asked)
            raise Trouble(asked)

        return never

    dying.around = called
    return dying


def tried(monitor: Monitor, run: Any, *clouds: Any) -> bool:
    """Three tries of the task, as Airflow makes them, each with its cloud; whether one of them succeeded."""
    for cloud in clouds * (3 // len(clouds)):
        try:
            monitor.decide(run, cloud)
        except (Death, Trouble, ConflictError):
            if ("decide", "return_value") not in run.xcoms:  # else people are told: Airflow has the task's success
                continue
        monitor.task_states[run.dag_id, run.run_id] = {"decide": "success"}
        return True
    monitor.give_up(run)
    return False


def asked_methods(make_run: Any) -> list[str]:
    """What a decision asks, by name."""
    monitor = Monitor(make_run=make_run)
    cloud = DyingCloud(monitor.cloud)
    monitor.decide(monitor.measured(0), cloud)
    return sorted(set(cloud.calls))


def require_one_order(monitor: Monitor, *runs: Any) -> None:
    """Exactly one event went out, of the order that counts; the table has each row."""
    events = [event for run in runs for event in added(run)]
    assert len(events) == 1, events
    assert events[0]["ledger_uri"].split("/")[-2] == monitor.last_order().ledger_id
    assert set(monitor.table) == {row.ledger_id for row in monitor.rows()}
    assert monitor.inserts == len(monitor.table)


def test_what_a_service_refuses_three_times_loses_no_order(make_run: Any) -> None:
    """Whichever it is: the event goes out from this task, or from the next monitor run's, and from one alone."""
    outcomes = {}
    for name in asked_methods(make_run):
        monitor = Monitor(make_run=make_run)
        runs = [monitor.measured(hour) for hour in (0, 1, 2)]
        outcomes[name] = tried(monitor, runs[0], fails(monitor.cloud, name))
        for run in runs[1:]:
            assert tried(monitor, run, monitor.cloud)
        require_one_order(monitor, *runs)
        assert [row.reason for row in monitor.rows()][-1] == "cooldown"
    assert outcomes["run_query"]
    assert not all(outcomes.values())


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_task_that_is_killed_three_times_loses_no_order(make_run: Any, after: bool) -> None:
    """At every call; its order holds nothing back, and is not sent once another one was given."""
    for at in range(1, 100):
        monitor = Monitor(make_run=make_run)
        runs = [monitor.measured(hour) for hour in (0, 1, 2)]
        lost = runs[0]
        dying = [DyingCloud(monitor.cloud, at, after=after) for _ in range(3)]
        sent = tried(monitor, lost, *dying)
        assert tried(monitor, runs[1], monitor.cloud)
        assert bool(added(runs[1])) is not sent, f"call {at}: the next monitor run orders what was lost"
        if not sent:
            clear(monitor, lost)
        assert tried(monitor, runs[2], monitor.cloud)
        require_one_order(monitor, *runs)
        if len(dying[0].calls) < at:
            assert at > 8
            return
    raise AssertionError("a decision has more calls than that")


def test_a_lost_order_that_is_cleared_before_another_is_given_is_sent(monitor: Monitor) -> None:
    """Then it counts as any other."""
    lost = monitor.measured(0)
    row = monitor.decide(lost)
    monitor.give_up(lost)
    monitor.decide(lost)
    assert len(added(lost)) == 1
    monitor.task_states[lost.dag_id, lost.run_id] = {"decide": "success"}
    later = monitor.measured(1)
    assert monitor.decide(later).reason == "cooldown"
    assert monitor.last_order() == row


@pytest.mark.parametrize("hour", [-1, 0.5, 1])
def test_a_lost_order_is_cleared_while_another_is_given(make_run: Any, hour: float) -> None:
    """At every call of the one the other's whole task: one event goes out of both."""
    for at in range(1, 100):
        monitor = Monitor(make_run=make_run)
        lost, other = monitor.measured(0), monitor.measured(hour)
        monitor.decide(lost)
        monitor.give_up(lost)
        cloud = DyingCloud(monitor.cloud, at, instead=lambda monitor=monitor, lost=lost: clear(monitor, lost))
        try:
            monitor.decide(other, cloud)
        except ConflictError:
            assert added(other) == []
            monitor.decide(other)
        assert len(added(lost)) + len(added(other)) == 1, f"call {at}: {cloud.calls}"
        if len(cloud.calls) < at:
            return
    raise AssertionError("a decision has more calls than that")


def clear(monitor: Monitor, run: Any) -> None:
    """Somebody clears a run's task, and it succeeds."""
    monitor.task_states[run.dag_id, run.run_id] = {"decide": "running"}
    monitor.decide(run)
    monitor.task_states[run.dag_id, run.run_id] = {"decide": "success"}


def test_lost_orders_use_up_no_budget(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a rollback that never began keep the next from beginning."""
    with_policy(monkeypatch, max_retrainings_per_week=1)
    for hour in range(3):
        run = monitor.measured(hour)
        assert monitor.decide(run).outcome == "retrain"
        monitor.give_up(run)
    run = monitor.measured(3)
    row = monitor.decide(run)
    assert row.outcome == "retrain"
    assert row.facts is not None
    assert len(row.facts.lost_orders) == 3
    assert row.last_retrain_as_of is None
    monitor.task_states[run.dag_id, run.run_id] = {"decide": "success"}
    assert monitor.decide(monitor.measured(40)).reason == "budget"


def test_a_rollback_that_never_began_is_ordered_again(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the next monitor run; the first one's is not started any more."""
    with_policy(monkeypatch, actions={"errors": "rollback"})
    rollout = example("rollout", "first_version", model=MODEL, run_key=CHAMPION.run_key, version_id="1", steps=[])
    rollout = rollout.model_copy(update={"asked": START - timedelta(hours=3), "rollback": None})
    monitor.cloud.artifacts.objects[storage.rollout_uri("bucket", MODEL)] = rollout.to_bytes()
    monitor.cloud.registry.add("20131119t030000z-0123456789ab", "previous")
    first, second = (monitor.measured(hour, signal("errors:version 1")) for hour in (0, 1))
    assert monitor.decide(first).outcome == "rollback"
    monitor.give_up(first)
    assert monitor.decide(second).outcome == "rollback"
    monitor.decide(first)
    assert first.xcoms["decide", "return_value"]["outcome"] == "none"
    assert second.xcoms["decide", "return_value"]["outcome"] == "rollback"


@pytest.mark.parametrize("hour", [-1, 0.5, 1])
def test_two_monitors_at_once_order_one_retraining(make_run: Any, hour: float) -> None:
    """Another monitor run decides in the middle of this one, at every call; each is tried again until it ends."""
    for at in range(1, 100):
        monitor = Monitor(make_run=make_run)
        run, other = monitor.measured(0), monitor.measured(hour)
        cloud = DyingCloud(monitor.cloud, at, instead=lambda monitor=monitor, other=other: monitor.decide(other))
        with contextlib.suppress(ConflictError):
            monitor.decide(run, cloud)
        rows = [monitor.decide(each) for each in (run, other)]
        assert sorted(row.outcome for row in rows) == ["retrain", "warn"], f"call {at}: {cloud.calls}"
        if len(cloud.calls) < at:
            return
    raise AssertionError("a decision has more calls than that")


def test_a_retraining_that_was_rejected_is_not_ordered_again(monitor: Monitor) -> None:
    """Two days later the same is seen: the ledger says what came of the first one, and why nothing follows."""
    first = monitor.decide(monitor.measured(0))
    plan = run_plan(first)
    monitor.store_plan(plan, decision=example("decision", "reject"))
    row = monitor.decide(monitor.measured(48))
    assert (row.outcome, row.reason) == ("warn", "loop_guard")
    assert row.facts is not None
    (result,) = row.facts.results
    assert (result.state, result.run_key, result.dag_run_id) == ("rejected", plan.run_key, "asset_triggered__1")
    assert monitor.table == {first.ledger_id: "rejected", row.ledger_id: None}
    for uri in [uri for uri in monitor.cloud.artifacts.objects if "/runs/" in uri]:
        del monitor.cloud.artifacts.objects[uri]
    assert monitor.decide(monitor.measured(49)).reason == "loop_guard"


def test_an_order_is_not_forgotten(monitor: Monitor) -> None:
    """Its cause never stops, and the monitor looks once in ten days: no row of it is among those that are looked at."""
    first = monitor.decide(monitor.measured(0))
    monitor.store_plan(run_plan(first), decision=example("decision", "reject"))
    for days in range(10, 60, 10):
        row = monitor.decide(monitor.measured(days * 24))
        assert row.reason == "loop_guard", days
    assert row.facts is not None
    assert row.facts.remembered == (first.ledger_id,)
    later = run_plan(first.model_copy(update={"as_of": row.as_of + timedelta(hours=1)}), "manual")
    monitor.store_plan(later)
    second = monitor.decide(monitor.measured(60 * 24))
    assert second.outcome == "retrain"
    assert [order.ledger_id for order in second.earlier_orders] == [first.ledger_id]
    monitor.store_plan(run_plan(second), decision=example("decision", "reject"))
    assert monitor.decide(monitor.measured(100 * 24)).reason == "loop_guard"


def test_a_person_who_retrains_lifts_the_guard(monitor: Monitor) -> None:
    """Whatever came of it."""
    first = monitor.decide(monitor.measured(0))
    monitor.store_plan(run_plan(first), decision=example("decision", "reject"))
    later = first.model_copy(update={"as_of": first.as_of + timedelta(hours=20)})
    monitor.store_plan(run_plan(later, "manual"))
    assert monitor.decide(monitor.measured(48)).outcome == "retrain"


@pytest.mark.parametrize(("state", "known"), [("running", "running"), ("failed", "failed"), (None, "failed")])
def test_a_run_without_a_decision_is_what_airflow_says(monitor: Monitor, state: str | None, known: str) -> None:
    """One that is gone came to nothing; it may be cleared, so the next row looks again."""
    first = monitor.decide(monitor.measured(0))
    plan = run_plan(first)
    monitor.store_plan(plan)
    if state:
        monitor.dag_runs[plan.dag_id, plan.dag_run_id] = state
    row = monitor.decide(monitor.measured(48))
    assert row.facts is not None
    assert row.facts.results[0].state == known
    assert row.outcome == "retrain"


def test_a_new_champion_that_drifts_alike_is_not_replaced_again(monitor: Monitor) -> None:
    """Its version is named."""
    first = monitor.decide(monitor.measured(0))
    found = {
        "decision": example("decision", "promote"),
        "registration": example("registration", "challenger", version_id="2"),
        "deployment": example("deployment", "champion", version_name="m@2"),
    }
    monitor.store_plan(run_plan(first), **found)
    row = monitor.decide(monitor.measured(48, champion=SECOND))
    assert row.reason == "loop_guard"
    assert "made version 2" in row.message


def test_a_champion_that_errs_after_its_deployment_goes_back(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known since when it serves, by the model's rollout, and what was before it, by the registry."""
    with_policy(monkeypatch, actions={"errors": "rollback"})
    rollout = example("rollout", "first_version", model=MODEL, run_key=CHAMPION.run_key, version_id="1", steps=[])
    rollout = rollout.model_copy(update={"asked": START - timedelta(hours=3), "rollback": None})
    monitor.cloud.artifacts.objects[storage.rollout_uri("bucket", MODEL)] = rollout.to_bytes()
    errors = signal("errors:version 1")
    assert monitor.decide(monitor.measured(0, errors)).reason == "no_previous"
    monitor.cloud.registry.add("20131119t030000z-0123456789ab", "previous")
    run = monitor.measured(1, errors)
    row = monitor.decide(run)
    assert (row.outcome, row.severity) == ("rollback", "critical")
    assert added(run) == []
    assert row.facts is not None
    assert row.facts.champion_since == START - timedelta(hours=3)
    later = monitor.decide(monitor.measured(2, errors))
    assert later.reason == "rolled_back"
    assert later.facts is not None
    assert later.facts.results[0].state == "unknown"
    name = storage.rollback_name(datetime(2013, 11, 21, 6, tzinfo=UTC), dags.rollback_run_id(MODEL, str(row.ledger_id)))
    done = example("rollback", "previous", dag_run_id=dags.rollback_run_id(MODEL, str(row.ledger_id)), name=name)
    monitor.cloud.artifacts.objects[f"{storage.rollback_uri('bucket', MODEL, name)}/rollback.json"] = done.to_bytes()
    after = monitor.decide(monitor.measured(3, errors))
    assert after.facts is not None
    assert after.facts.results[0].state == "rolled_back"


def test_the_order_that_counts_is_a_readable_object(monitor: Monitor) -> None:
    """Whoever wonders why a monitor run waits finds the row it waits for."""
    row = monitor.decide(monitor.measured(0))
    data = monitor.cloud.artifacts.objects[storage.last_order_uri("bucket", MODEL)]
    assert d.Ledger.parse(data) == row


def test_seldom_windows_are_windows_too(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A monitor that runs every month sees its run before."""
    with_policy(monkeypatch, windows={"exceeded": 2, "of": 3})
    monitor.decide(monitor.measured(-60 * 24))
    assert monitor.decide(monitor.measured(0)).outcome == "retrain"


def test_rows_of_an_earlier_release_are_read(monitor: Monitor) -> None:
    """Their order counts for the cool-down."""
    stored = json.loads((Path(__file__).resolve().parents[2] / "stored" / "ledger.json").read_text())
    stored |= {"decision": "retrain", "because": "drift", "model": MODEL, "as_of": "2013-11-21T04:00:00Z"}
    uri = f"gs://bucket/{MODEL}/monitor/20131121t040000z-00000000/ledger.json"
    monitor.cloud.artifacts.objects[uri] = json.dumps(stored).encode()
    assert monitor.decide(monitor.measured(0)).reason == "cooldown"
