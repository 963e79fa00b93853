"""Each way a retraining or a rollback is started, by one real scheduler: how many runs and paid jobs, what people read.

The flights of 2013 are read as if they were today's, so that a schedule, an asset of the source and the monitor work by
the clock. The tests build on each other's runs and stand in one class, in order.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from demo.bundle import change_spec
from demo.customers import read_instances
from demo.dag_run import DAG_ID, MODEL
from demo.system import LaptopSystem
from retraining.core.naming import dags
from retraining.core.naming.bigquery import ledger_table
from retraining_laptop.airflow_api import AirflowApi
from retraining_laptop.dag_run import predict, read_documents, wait_for_dag
from retraining_laptop.progress import FINISHED_RUN, follow_run
from tests.e2e.conftest import make_bundle, running_laptop
from tests.e2e.test_nights import MONITOR_ID, failure_lines, jobs_of, read_json, version_of, versions, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]

SHIFT = (datetime.now(UTC).date() - date(2013, 11, 20)).days
SOURCE_ID, ASSET, TABLE = "source__flights", "shop/flights", "flights.arrived"
SOURCE = f'''
"""The DAG of a source: it loads, and says so."""
from airflow.sdk import DAG, Asset, BaseOperator


class LoadOperator(BaseOperator):
    def execute(self, context):
        context["outlet_events"][self.outlets[0]].extra = {{"reason": "a load"}}


with DAG(dag_id="{SOURCE_ID}", schedule=None):
    LoadOperator(task_id="load", outlets=[Asset("{ASSET}", "x-shop://flights")])
'''

LABELS_TABLE = "flights.turned_out"
LABELS = f"SELECT flight_id, arrived_late FROM {LABELS_TABLE} WHERE known_at < @as_of"


def owners_model(spec: dict[str, Any]) -> None:
    """A model that everything but the clock starts, and that tells keys; its monitor runs only when asked."""
    spec["schedule"] = None
    spec["triggers"] = {
        "assets": [{"name": ASSET, "uri": "x-shop://flights"}],
        "new_day": {"tables": [{"name": TABLE, "time": "scheduled_departure"}], "after_hours": 0},
    }
    spec["data"]["checks"]["max_age_hours"] = 72
    spec["deployment"]["key_input"] = True
    spec["monitoring"] |= {
        "schedule": "0 0 1 1 *",
        "cooldown_hours": 0,
        "performance": {"max_drop": 0.03, "labels_query": f"{MODEL}/labels.sql"},
        "policy": {"windows": {"exceeded": 1, "of": 1}, "actions": {"errors": "rollback"}},
    }


@pytest.fixture(scope="module")
def dags_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle with that model and the source's DAG."""
    path = make_bundle(tmp_path_factory.mktemp("triggers") / "bundle")
    change_spec(path, MODEL, owners_model)
    (path / "source_flights.py").write_text(SOURCE)
    query = path / "include" / "sql" / MODEL / "examples.sql"
    query.with_name("labels.sql").write_text(LABELS)
    sql = query.read_text()
    for name in ("@window_start", "@window_end", "@as_of"):
        sql = sql.replace(f"= {name}\n", f"= TIMESTAMP_SUB({name}, INTERVAL {SHIFT} DAY)\n")
        sql = sql.replace(f"< {name}\n", f"< TIMESTAMP_SUB({name}, INTERVAL {SHIFT} DAY)\n")
    column = "  flights.scheduled_departure,\n"
    shifted = f"  TIMESTAMP_ADD(flights.scheduled_departure, INTERVAL {SHIFT} DAY) AS scheduled_departure,\n"
    assert sql.count("TIMESTAMP_SUB") == 3
    assert column in sql
    query.write_text(sql.replace(column, shifted))
    return path


@pytest.fixture(scope="module")
def clocked(dags_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaptopSystem]:
    """A system whose schedules tick by the clock, with the source's rows up to yesterday."""
    with running_laptop(tmp_path_factory.mktemp("clocked"), dags_path, variables={}) as system:
        from google.cloud import bigquery

        client = bigquery.Client(project=os.environ["RETRAINING_PROJECT"])
        client.query(
            f"CREATE TABLE {TABLE} AS SELECT TIMESTAMP_ADD(scheduled_departure, INTERVAL {SHIFT} DAY) AS "
            f"scheduled_departure FROM flights.flights WHERE scheduled_departure < TIMESTAMP '2013-11-19'"
        ).result()
        columns = "flight_id STRING, arrived_late INT64, known_at TIMESTAMP"
        client.query(f"CREATE TABLE {LABELS_TABLE} ({columns})").result()
        yield system


@pytest.fixture(scope="module")
def api(clocked: LaptopSystem) -> AirflowApi:
    """Its Airflow, with the model's DAGs and the source's turned on."""
    found = clocked.airflow.api()
    for dag_id in (DAG_ID, MONITOR_ID, SOURCE_ID, dags.ROLLBACK):
        wait_for_dag(found, dag_id)
        found.unpause(dag_id)
    return found


def fail(target: str, count: int, action: dict[str, Any]) -> None:
    """Let something go wrong in the local cloud, so many times."""
    url = f"https://{os.environ['RETRAINING_REGION']}-aiplatform.googleapis.com/faults"
    headers = {"Authorization": f"Bearer {os.environ['GOOGLE_AUTH_TOKEN_FOR_TESTING']}"}
    fault = {"target": target, "count": count, "action": action}
    requests.post(url, json=fault, headers=headers, timeout=60).raise_for_status()


@pytest.fixture
def slow_export(clocked: LaptopSystem) -> None:
    """A first export that waits, so that the run by hand is under way until all events are given."""
    del clocked  # its environment leads to the local cloud
    fail("BigQueryRead.CreateReadSession", 1, {"kind": "delay", "seconds": 60})


def runs_of(api: AirflowApi, kind: str) -> list[dict[str, Any]]:
    """The retrainings of one kind, oldest first."""
    return [run for run in api.runs(DAG_ID) if run["run_type"] == kind]


def finished(api: AirflowApi, dag_id: str, run_id: str, timeout_s: float = 400) -> None:
    """Follow a run to its good end."""
    state, _ = follow_run(api, dag_id, run_id, say=print, timeout_s=timeout_s)
    assert state == "success", "\n".join(failure_lines(api, dag_id, run_id))


def planned(api: AirflowApi, run_id: str, dag_id: str = DAG_ID) -> dict[str, Any]:
    """Return what `plan` returned, once it has."""

    def state() -> str | None:
        return next((ti["state"] for ti in api.task_instances(dag_id, run_id) if ti["task_id"] == "plan"), None)

    wait_for("its plan", lambda: state() in ("success", "failed"), 200)
    assert state() == "success", "\n".join(failure_lines(api, dag_id, run_id))
    return dict(api.xcom(dag_id, run_id, "plan"))


def told(api: AirflowApi, run_id: str) -> tuple[dict[str, Any], str]:
    """Return a finished run's plan and its page, once its jobs and its version's label are looked at."""
    from google.cloud import storage as cloud_storage

    found = planned(api, run_id)
    project, run_key = os.environ["RETRAINING_PROJECT"], found["run_key"]
    tasks = sorted(job.labels["retraining-task"] for job in jobs_of(run_key))
    assert [tasks.count(task) for task in ("export", "train", "evaluate")] in ([1, 1, 1], [0, 1, 1])
    client = cloud_storage.Client(project=project)
    page = cloud_storage.Blob.from_uri(f"{found['run_uri']}/report.html", client=client)
    return read_documents(project, found["run_uri"])["plan"], page.download_as_text()


def label_of(plan: dict[str, Any]) -> str:
    """What the version of a run says of its cause."""
    return str(version_of(plan["run_key"]).labels["retraining-cause"])


def look(api: AirflowApi, **form: Any) -> tuple[str, dict[str, Any]]:
    """Run the monitor over all that was asked until now; gives its run's id and its row of the ledger.

    A retraining's time is given, so that its order does not wait for days that it trains on.
    """
    asked = datetime.now(UTC)  # the window ends before the whole second of the monitor's run
    wait_for("the second after the requests", lambda: datetime.now(UTC) > asked + timedelta(seconds=2))
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    run_id = api.trigger(MONITOR_ID, conf={"retrain_as_of": now} | form)
    finished(api, MONITOR_ID, run_id)
    return run_id, read_json(api.xcom(MONITOR_ID, run_id, "decide")["ledger_uri"])


def signal_of(api: AirflowApi, run_id: str, kind: str) -> dict[str, Any]:
    """Return the judged signal of a kind, as a monitor run measured it."""
    signals = read_json(f"{api.xcom(MONITOR_ID, run_id, 'measure')['monitor_uri']}/signals.json")["signals"]
    return next(each for each in signals if each["kind"] == kind and each["subject"] == "")


def state_of(api: AirflowApi, run_id: str, task_id: str) -> str:
    """Return what became of a task of a monitor run."""
    return next(ti["state"] for ti in api.task_instances(MONITOR_ID, run_id) if ti["task_id"] == task_id)


def champion_of(api: AirflowApi) -> dict[str, dict[str, Any]]:
    """Return the documents of the newest run that an event started, which made the champion."""
    run_uri = planned(api, runs_of(api, "asset_triggered")[-1]["dag_run_id"])["run_uri"]
    return read_documents(os.environ["RETRAINING_PROJECT"], run_uri)


def next_run(api: AirflowApi, before: int) -> tuple[dict[str, Any], str]:
    """Follow the one run that an event starts now to its good end; gives its plan and its page."""
    *_, run = wait_for("its run", lambda: runs_of(api, "asset_triggered")[before:])
    finished(api, DAG_ID, run["dag_run_id"])
    assert len(runs_of(api, "asset_triggered")) == before + 1
    return told(api, run["dag_run_id"])


def ask_about(endpoint: str, flights: list[dict[str, Any]]) -> dict[str, float]:
    """Ask about flights, 50 at a time; gives the score that each key came back with."""
    batches = (flights[start : start + 50] for start in range(0, len(flights), 50))
    answers = [answer for batch in batches for answer in predict(endpoint, batch)["predictions"]]
    return {answer["flight_id"]: answer["score"] for answer in answers}


def turn_out_otherwise(scores: dict[str, float]) -> None:
    """Let the labels come: the likelier half to be late was in time, and the other was late."""
    from google.cloud import bigquery

    middle = statistics.median(scores.values())
    rows = [f"('{key}', {int(score < middle)}, CURRENT_TIMESTAMP())" for key, score in scores.items()]
    client = bigquery.Client(project=os.environ["RETRAINING_PROJECT"])
    client.query(f"INSERT INTO {LABELS_TABLE} (flight_id, arrived_late, known_at) VALUES {', '.join(rows)}").result()


def set_schedule(api: AirflowApi, dags_path: Path, model: str) -> datetime:
    """Give a model a daily schedule; return its next tick, which Airflow knew half a minute before it was due."""
    due = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=3)
    cron = f"{due.minute} {due.hour} * * *"
    change_spec(dags_path, model, lambda spec: spec.update(schedule=cron))
    wait_for(cron, lambda: cron in str(api.call("GET", f"/dags/retrain__{model}")["timetable_summary"]), 300)
    return due if due - datetime.now(UTC) > timedelta(seconds=30) else set_schedule(api, dags_path, model)


class TestTriggers:
    """By hand, by new data, by a loss of quality, by drift, by the clock; and the way back."""

    @pytest.mark.usefixtures("slow_export")
    def test_by_hand_and_new_data_meanwhile(self, api: AirflowApi) -> None:
        """Eleven events while the run of the form is active are one further run, which names both of their causes."""
        by_hand = api.trigger(DAG_ID, conf={"epochs": 1, "deploy": False})  # else it is what new data would start
        planned(api, by_hand)
        loaded, looked = api.trigger(SOURCE_ID), api.trigger(MONITOR_ID)
        finished(api, SOURCE_ID, loaded, 120)
        assets = api.call("GET", "/assets", params={"limit": 100})["assets"]
        (asset_id,) = (asset["id"] for asset in assets if asset["name"] == ASSET)
        loaded_at = datetime.now(UTC)  # the load's event says no time, and so counts by when it came
        wait_for("the second after the load", lambda: datetime.now(UTC) > loaded_at + timedelta(seconds=1))
        newest = datetime.now(UTC)  # told in whole seconds
        for minutes in range(9):  # the newest of their times came first
            as_of = (newest - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
            api.create_event(asset_id, {"as_of": as_of})
        finished(api, MONITOR_ID, looked, 200)
        assert api.xcom(MONITOR_ID, looked, "new_day")["outcome"] == "announced"
        assert api.read_run(DAG_ID, by_hand)["state"] not in FINISHED_RUN, "the events came too late for this test"
        assert runs_of(api, "asset_triggered") == []
        finished(api, DAG_ID, by_hand)
        plan, page = told(api, by_hand)
        assert (plan["trigger"]["kind"], plan["overrides"]) == ("manual", {"training.epochs": 1})
        assert "Started by hand, by admin." in page
        assert label_of(plan) == "manual"

    def test_one_run_for_all_of_them(self, api: AirflowApi) -> None:
        """As of the newest of their times; after it no other one comes (needs the first)."""
        (run,) = wait_for("the run of the events", lambda: runs_of(api, "asset_triggered"))
        finished(api, DAG_ID, run["dag_run_id"])
        plan, page = told(api, run["dag_run_id"])
        causes = {event["cause"]: event["times"] for event in plan["trigger"]["events"]}
        assert causes == {f"asset:{ASSET}": 10, f"new_data:{TABLE}": 1}
        assert plan["as_of"] == max(event["as_of"] for event in plan["trigger"]["events"] if event["as_of"])
        assert plan["trigger"]["cause"] == f"asset:{ASSET}"
        assert "One run for 2 causes." in page
        for words in (f"an update of the asset {ASSET}", f"new data in {TABLE}"):
            assert words in page
        assert label_of(plan) == "asset-shop-flights"
        assert len(runs_of(api, "asset_triggered")) == 1

    def test_a_loss_of_quality(self, api: AirflowApi) -> None:
        """Answers wait for their labels; these come, disagree, and start one run (needs the ones before)."""
        documents = champion_of(api)
        flights = read_instances(documents["plan"], 600)
        scores = ask_about(documents["deployment"]["endpoint_name"], flights)
        assert len(scores) == len(flights) > 300
        before = len(runs_of(api, "asset_triggered"))
        run_id, row = look(api)
        assert (row["retrain_as_of"], "performance:" in row["causes"]) == (None, False)
        assert row["named_states"]["performance:"] == signal_of(api, run_id, "performance")["because"] == "no_labels"
        assert len(runs_of(api, "asset_triggered")) == before

        turn_out_otherwise(scores)
        run_id, row = look(api)
        fallen = signal_of(api, run_id, "performance")
        evaluated = documents["evaluation"]["challenger"]["metrics"]["auc"]
        assert fallen["threshold"] == pytest.approx(evaluated - 0.03)
        assert fallen["high"] < fallen["threshold"]
        assert fallen["examples"] == len(scores)
        assert (row["outcome"], row["cause"]) == ("retrain", "performance:")
        plan, page = next_run(api, before)
        assert plan["trigger"]["cause"].startswith("performance")
        assert "Started by worse answers, now that their labels are known" in page
        assert label_of(plan).startswith("performance")

    def test_drift_of_the_requests(self, api: AirflowApi) -> None:
        """One run with its cause, which a classifier sees too; the known day starts none (needs those before)."""
        documents = champion_of(api)
        flights = [each["instance"] for each in documents["report"]["golden"]]
        odd = [{**flight, "carrier": "ZZ", "distance": 99999.0} for flight in flights] * (900 // len(flights))
        ask_about(documents["deployment"]["endpoint_name"], odd)
        before = len(runs_of(api, "asset_triggered"))
        run_id, row = look(api, multivariate=True)
        assert (row["outcome"], row["cause"].partition(":")[0]) == ("retrain", "skew")
        assert "multivariate:" in row["causes"]
        assert state_of(api, run_id, "multivariate") == "success"
        found = read_json(f"{row['signals_uri'].rpartition('/')[0]}/multivariate.json")
        assert found["low"] > 0.6
        assert found["requests"] >= len(odd)
        assert {each.labels["retraining-task"] for each in jobs_of(found["run_key"])} >= {"train", "multivariate"}
        assert api.xcom(MONITOR_ID, run_id, "new_day")["outcome"] == "trained"
        plan, page = next_run(api, before)
        assert plan["trigger"]["cause"].startswith("skew:")
        assert len(plan["trigger"]["events"]) == 1
        assert "Started by requests unlike the training data" in page
        assert label_of(plan).startswith("skew-")

    def test_a_version_that_fails_is_left(self, api: AirflowApi) -> None:
        """Its errors order one rollback; the version before it answers, and the ledger says so (needs those before)."""
        documents = champion_of(api)
        endpoint, flight = documents["deployment"]["endpoint_name"], documents["report"]["golden"][0]["instance"]
        broken = version_of(documents["plan"]["run_key"])
        (previous,) = (each for each in versions() if "previous" in each.version_aliases)
        assert predict(endpoint, [flight])["modelVersionId"] == broken.version_id
        fail("DeployedModel.Predict", 250, {"kind": "error", "code": "INTERNAL"})
        for _ in range(250):
            with pytest.raises(requests.HTTPError, match="500"):
                predict(endpoint, [flight])
        before = len(runs_of(api, "asset_triggered"))
        run_id, row = look(api)
        assert (row["outcome"], row["cause"]) == ("rollback", f"errors:version {broken.version_id}")
        assert row["severity"] == "critical"
        assert state_of(api, run_id, "roll_back") == "success"
        finished(api, dags.ROLLBACK, dags.rollback_run_id(MODEL, row["ledger_id"]))
        assert predict(endpoint, [flight])["modelVersionId"] == previous.version_id
        (champion_now,) = (each for each in versions() if "champion" in each.version_aliases)
        assert champion_now.version_id == previous.version_id

        run_id, later = look(api)
        assert later["outcome"] not in ("retrain", "tune", "rollback")
        assert state_of(api, run_id, "roll_back") == "skipped"
        (result,) = (each for each in later["facts"]["results"] if each["ledger_id"] == row["ledger_id"])
        assert (result["state"], result["version_id"]) == ("rolled_back", previous.version_id)
        assert self.stored_result(row["ledger_id"]) == ("rollback", "rolled_back", previous.version_id)
        assert len(api.runs(dags.ROLLBACK)) == 1
        assert len(runs_of(api, "asset_triggered")) == before

    @staticmethod
    def stored_result(ledger_id: str) -> tuple[str, str, str]:
        """What the ledger's table says that a row ordered and what came of it."""
        from google.cloud import bigquery

        table = ledger_table(os.environ["RETRAINING_PROJECT"], os.environ["RETRAINING_DATASET"])
        sql = f"SELECT outcome, result.state, result.version_id FROM `{table}` WHERE ledger_id = '{ledger_id}'"
        (row,) = bigquery.Client(project=os.environ["RETRAINING_PROJECT"]).query_and_wait(sql)
        return tuple(row.values())

    def test_a_due_schedule(self, api: AirflowApi, dags_path: Path) -> None:
        """A tick that falls due while the scheduler runs starts one run, as of it; of a model that nobody else asks."""
        dag_id = "retrain__departures"
        api.unpause(dag_id)
        due = set_schedule(api, dags_path, "departures")
        (run,) = wait_for("the run of the schedule", lambda: api.runs(dag_id), 300)
        found = planned(api, run["dag_run_id"], dag_id)  # the tasks after it are those of every run
        api.call("PATCH", f"/dags/{dag_id}/dagRuns/{run['dag_run_id']}", json={"state": "failed"})
        plan = read_documents(os.environ["RETRAINING_PROJECT"], found["run_uri"])["plan"]
        assert (run["run_type"], plan["trigger"]["kind"], plan["trigger"]["cause"]) == ("scheduled", "scheduled", None)
        assert plan["as_of"] == due.strftime("%Y-%m-%dT%H:%M:%SZ")
        assert len(api.runs(dag_id)) == 1
