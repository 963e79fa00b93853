"""Plan, snapshot, checks, decision, report: each document once, errors that say what to do."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from retraining.core.documents import Snapshot, Span
from retraining.core.naming import bigquery
from retraining.core.planning.params import overrides
from retraining.hooks.warehouse import Answer
from retraining.operators.data.checks import CheckDataOperator
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.report.page import timings
from tests.support.airflow_release import AirflowFailException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.planned_run import FORM, SPEC, fill, plan, stored_plan

SPAN = Span.parse((EXAMPLES / "span__one_day.json").read_bytes(), "span__one_day.json")


@pytest.fixture
def cloud() -> FakeCloud:
    """The cloud that the operators meet, with a source of three days."""
    return FakeCloud()


def test_an_untouched_form_changes_nothing() -> None:
    """Defaults are the spec's own values."""
    assert overrides(SPEC, FORM) == {}


def test_what_the_form_changed_is_in_the_plan(cloud, make_run) -> None:
    """Window, epochs and a hyperparameter; another key than the untouched run's."""
    changed = FORM | {"window_days": 30, "epochs": 1, "dropout": 0.5, "tune": "always"}
    plain = plan(cloud, make_run(params=FORM))
    result = plan(cloud, make_run(params=changed))
    planned = stored_plan(cloud, result)
    assert planned.overrides == {
        "data.window_days": 30,
        "training.epochs": 1,
        "training.hyperparameters.dropout": 0.5,
        "tuning.search": "always",
    }
    assert planned.spec.training.hyperparameters["dropout"] == 0.5
    assert result["run_key"] != plain["run_key"]


def test_equal_runs_share_a_plan_and_force_makes_another(cloud, make_run) -> None:
    """The first writer's plan stands."""
    first = plan(cloud, make_run(params=FORM, run_id="manual__1"))
    second = plan(cloud, make_run(params=FORM, run_id="manual__2"))
    forced = plan(cloud, make_run(params=FORM | {"force": True}, run_id="manual__3"))
    assert first == second
    assert stored_plan(cloud, second).dag_run_id == "manual__1"
    assert forced["run_key"] != first["run_key"]


REFUSED: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "misspelt": ({"epoch": 1}, r"Params: no Param 'epoch'\. Expected one of: .*Did you mean 'epochs'\?", {"epochs": 1}),
    "unknown": ({"zzz": 1}, r"no Param 'zzz'\. .*Trigger again with that, or without it", {}),
    "over the limit": ({"dropout": 1.5}, r"this run's Params, .*dropout: 1\.5\. Expected", {"dropout": 0.5}),
    "not a number": ({"learning_rate": float("nan")}, r"learning_rate is nan\. Expected", {"learning_rate": 0.01}),
    "of a list": ({"hidden_units": [16, -1]}, r"hidden_units: \[16, -1\]\. Expected", {"hidden_units": [16, 1]}),
    "no time": ({"as_of": "soon"}, r"Param as_of: 'soon'\. Expected a time such as", {"as_of": "2013-11-20T03:00:00Z"}),
    "too early": ({"as_of": "0001-01-05"}, r"as_of: .*Expected a later time", {"as_of": "2013-11-20"}),
    "to come": ({"as_of": "2999-01-01"}, r"Param as_of: .*up to 2026-01-01 00:00:00 UTC", {"as_of": "2026-01-01"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_param_that_a_paid_job_would_refuse_or_nobody_read(cloud, make_run, name: str) -> None:
    """Refused before anything is stored; what the message names instead makes a plan."""
    wrong, words, right = REFUSED[name]
    with pytest.raises(AirflowFailException, match=words):
        plan(cloud, make_run(params=FORM | wrong))
    assert not any(uri.endswith("plan.json") for uri in cloud.artifacts.objects)
    assert plan(cloud, make_run(params=FORM | right))["run_key"]


def event(hour: int, extra: dict[str, str]) -> SimpleNamespace:
    """An event of the model's asset as Airflow hands it out."""
    asset = SimpleNamespace(name="retrain/flight_delays")
    return SimpleNamespace(asset=asset, timestamp=datetime(2025, 12, 31, hour, tzinfo=UTC), extra=extra)


@pytest.mark.parametrize(
    ("run", "kind", "mode", "as_of", "reason"),
    [
        ({"run_type": "scheduled"}, "scheduled", "live", "2013-11-20T03:00:00Z", "schedule"),
        ({"run_type": "manual"}, "manual", "live", "2013-11-20T03:00:00Z", "ada"),
        ({"run_type": "backfill"}, "backfill", "backfill", "2013-11-20T03:00:00Z", "backfill"),
        (
            {
                "run_type": "asset_triggered",
                "logical_date": None,
                "events": [
                    event(2, {"as_of": "2013-11-23T03:00:00Z", "reason": "carrier drifted"}),
                    event(1, {"as_of": "2012-01-01T00:00:00Z", "reason": "old"}),
                ],
            },
            "asset",
            "live",
            "2013-11-23T03:00:00Z",
            "carrier drifted",
        ),
        (
            {"run_type": "manual", "params": FORM | {"as_of": "2013-10-01T00:00:00Z"}},
            "manual",
            "live",
            "2013-10-01T00:00:00Z",
            "ada",
        ),
        ({"run_type": "manual", "logical_date": None}, "manual", "live", "2026-01-01T00:00:00Z", "ada"),
    ],
    ids=["scheduled", "manual", "backfill", "asset", "param", "no logical date"],
)
def test_the_plan_knows_when_and_why(cloud, make_run, run, kind, mode, as_of, reason) -> None:
    """Time: Param, then event, then logical date, then run_after."""
    result = plan(cloud, make_run(**({"params": FORM} | run)))
    planned = stored_plan(cloud, result)
    assert (planned.trigger.kind, planned.mode, result["as_of"]) == (kind, mode, as_of)
    assert reason in planned.trigger.reason


def test_an_impossible_param_fails_for_good(cloud, make_run) -> None:
    """One message, before anything is stored."""
    with pytest.raises(AirflowFailException, match="Param as_of"):
        plan(cloud, make_run(params=FORM | {"as_of": "soon"}))
    assert not any(uri.endswith("plan.json") for uri in cloud.artifacts.objects)


def test_stored_spans_are_reused_and_the_rest_exported(cloud, make_run) -> None:
    """By fingerprint: one day is stored whole, one was changed, one is new."""
    run = make_run(params=FORM)
    planned = stored_plan(cloud, plan(cloud, run))
    fill(cloud, planned)
    first = SnapshotOperator(task_id="snapshot", cloud=cloud.connect)
    assert run.execute(first)["exported_spans"] == 3
    uri = f"{planned.run_uri}/snapshot.json"
    taken = Snapshot.parse(cloud.artifacts.objects.pop(uri))
    spans = {str(span.span): span.fingerprint for span in taken.spans}
    cloud.artifacts.objects[f"{taken.spans_uri}/2013-11-16/{spans['2013-11-16']}/span.json"] = b"{}"
    cloud.artifacts.objects[f"{taken.spans_uri}/2013-11-17/{'0' * 32}/span.json"] = SPAN.to_bytes()
    cloud.artifacts.objects[f"{taken.spans_uri}/2013-11-18/{spans['2013-11-18']}/half.tfrecord.gz"] = b""
    assert run.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect))["exported_spans"] == 2
    again = Snapshot.parse(cloud.artifacts.objects[uri])
    assert [span.action for span in again.spans] == ["reuse", "export", "export"]
    assert again.spans[1].reason == "changed: other content than stored: 00000000 (902 rows)"


def test_a_recorded_snapshot_asks_nothing(cloud, make_run) -> None:
    """A retry after success of the queries goes on from the document."""
    run = make_run(params=FORM)
    planned = stored_plan(cloud, plan(cloud, run))
    fill(cloud, planned)
    run.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect))
    asked = list(cloud.warehouse.asked)
    run.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect))
    assert cloud.warehouse.asked == asked
    assert asked[0] == "dry flight_delays/examples.sql"


def test_an_expired_table_must_come_back_the_same(cloud, make_run) -> None:
    """Else the recorded fingerprints would lie about the export."""
    run = make_run(params=FORM)
    planned = stored_plan(cloud, plan(cloud, run))
    fill(cloud, planned)
    run.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect))
    schema = cloud.warehouse.schemas.pop(bigquery.run_table(planned))

    def recreate(query: Any, where: str) -> Any:
        cloud.warehouse.schemas[bigquery.run_table(planned)] = schema
        return Answer()

    cloud.warehouse.dry_run = recreate
    run.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect))
    del cloud.warehouse.schemas[bigquery.run_table(planned)]
    cloud.warehouse.rows["fingerprint"][0]["row_count"] = 6
    with pytest.raises(AirflowFailException, match=r"Force|force"):
        run.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect))


def test_a_cleared_task_asks_bigquery_anew(cloud, make_run) -> None:
    """Another generation, other job ids; a retry keeps them."""
    run = make_run(params=FORM)
    planned = stored_plan(cloud, plan(cloud, run))
    fill(cloud, planned)
    ids = []
    for kwargs in ({"try_number": 1}, {"try_number": 2}, {"try_number": 3, "max_tries": 5}):
        cloud.warehouse.asked.clear()
        cloud.artifacts.objects.pop(f"{planned.run_uri}/snapshot.json", None)
        run.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect), **kwargs)
        ids.append(cloud.warehouse.asked[1:])
    assert ids[0] == ids[1]
    assert set(ids[0]).isdisjoint(ids[2])


def test_an_empty_window_fails_for_good(cloud, make_run) -> None:
    """Before anything is exported."""
    run = make_run(params=FORM)
    planned = stored_plan(cloud, plan(cloud, run))
    fill(cloud, planned)
    cloud.warehouse.rows["fingerprint"] = []
    with pytest.raises(AirflowFailException, match="no example between"):
        run.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect))


def test_data_that_does_not_pass_ends_the_run_with_all_findings(cloud, make_run) -> None:
    """The documents are stored, and the message says how to go on."""
    run = make_run(params=FORM)
    planned = stored_plan(cloud, plan(cloud, run))
    fill(cloud, planned)
    run.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect))
    keys = {"section": "keys", "split": "", "day": "", "feature": "", "distinct_count": 0, "nulls": 0}
    keys |= {"outside": 0, "also_tested": 0}
    cloud.warehouse.rows["statistics"] = [keys]
    with pytest.raises(AirflowFailException, match=r"no example between.*Param force"):
        run.execute(CheckDataOperator(task_id="check_data", cloud=cloud.connect))
    assert json.loads(cloud.artifacts.objects[f"{planned.run_uri}/checks.json"])["passed"] is False


def test_timings_come_from_what_the_tasks_left(cloud, make_run) -> None:
    """A job's own seconds and price; a reused result costs nothing; what is not known is null."""
    from retraining.operators.record.run_record import Record

    run = make_run(params=FORM, logical_date=datetime(2013, 11, 20, 3, tzinfo=UTC))
    result = plan(cloud, run)
    left = {
        ("plan", "seconds"): run.xcoms["plan", "seconds"],
        ("export", "return_value"): {"job": None, "seconds": None},
        ("train", "return_value"): {"job": "j", "seconds": 3600.0, "spot_seconds": 0.0},
        ("evaluate", "return_value"): {"job": "j", "seconds": 3600.0, "spot_seconds": 1800.0},
    }
    took = timings(Record(cloud.artifacts, result["run_uri"]), lambda task, key: left.get((task, key)))
    by_task = {item.task: item for item in took.tasks}
    assert by_task["plan"].seconds >= 0
    assert by_task["export"].reused
    assert by_task["train"].estimated_usd > 0.1
    assert by_task["evaluate"].estimated_usd < by_task["train"].estimated_usd
    assert by_task["deploy"].seconds is None


@pytest.mark.parametrize("link", [None, "", "https://console.cloud.google.com/x"], ids=["none", "empty", "a-job"])
@pytest.mark.parametrize("task", ["tune", "train"])
def test_a_task_without_a_result_may_have_had_jobs(cloud, make_run, task, link) -> None:
    """Its machine is named when it had one: what that cost is not known. A task that never began costs nothing."""
    from retraining.operators.record.run_record import Record

    result = plan(cloud, make_run(params=FORM, logical_date=datetime(2013, 11, 20, 3, tzinfo=UTC)))
    left = {(task, "link_job"): link}
    took = timings(Record(cloud.artifacts, result["run_uri"]), lambda task, key: left.get((task, key)))
    machines = {item.task for item in took.tasks if item.machine}
    assert machines == ({task} if link else set())
