"""Each way a retraining is started, through one real scheduler: how many runs, how many paid jobs, what people read.

The flights of 2013 are read as if they were today's, so that a schedule, an asset of the source and the monitor work by
the clock. The tests build on each other's runs and stand in one class, in order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from demo import airflow as demo_airflow
from demo.airflow_api import AirflowApi
from demo.bundle import change_spec
from demo.dag_run import DAG_ID, MODEL, predict, read_documents, wait_for_dag
from demo.progress import FINISHED_RUN, follow_run
from demo.system import LaptopSystem
from retraining.core.naming import storage
from tests.e2e.conftest import make_bundle, running_laptop
from tests.e2e.test_nights import MONITOR_ID, failure_lines, jobs_of, read_json, version_of, wait_for

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

FALLEN = {
    "kind": "performance",
    "subject": "",
    "state": "exceeded",
    "because": None,
    "measure": "auc",
    "value": 0.08,
    "low": 0.06,
    "high": 0.1,
    "threshold": 0.03,
    "examples": 5000,
    "words": "auc fell by 0.08 on 5,000 labelled requests, more than 0.03.",
}
"""A signal as the monitor writes it once labels have come."""


def owners_model(spec: dict[str, Any]) -> None:
    """A model that everything but the clock starts; its monitor runs only when asked."""
    spec["schedule"] = None
    spec["triggers"] = {
        "assets": [{"name": ASSET, "uri": "x-shop://flights"}],
        "new_day": {"tables": [{"name": TABLE, "time": "scheduled_departure"}], "after_hours": 0},
    }
    spec["data"]["checks"]["max_age_hours"] = 72
    spec["monitoring"] |= {
        "schedule": "0 0 1 1 *",
        "cooldown_hours": 0,
        "policy": {"windows": {"exceeded": 1, "of": 1}},
    }


@pytest.fixture(scope="module")
def dags_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle with that model and the source's DAG."""
    path = make_bundle(tmp_path_factory.mktemp("triggers") / "bundle")
    change_spec(path, MODEL, owners_model)
    (path / "source_flights.py").write_text(SOURCE)
    query = path / "include" / "sql" / MODEL / "examples.sql"
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_airflow, "DATA_DAYS", "")
        with running_laptop(tmp_path_factory.mktemp("clocked"), dags_path) as system:
            from google.cloud import bigquery

            client = bigquery.Client(project=os.environ["RETRAINING_PROJECT"])
            client.query(
                f"CREATE TABLE {TABLE} AS SELECT TIMESTAMP_ADD(scheduled_departure, INTERVAL {SHIFT} DAY) AS "
                f"scheduled_departure FROM flights.flights WHERE scheduled_departure < TIMESTAMP '2013-11-19'"
            ).result()
            yield system


@pytest.fixture(scope="module")
def api(clocked: LaptopSystem) -> AirflowApi:
    """Its Airflow, with the model's DAGs and the source's turned on."""
    found = clocked.airflow.api()
    for dag_id in (DAG_ID, MONITOR_ID, SOURCE_ID):
        wait_for_dag(found, dag_id)
        found.unpause(dag_id)
    return found


@pytest.fixture
def slow_export(clocked: LaptopSystem) -> None:
    """A first export that waits, so that the run by hand is under way until all events are given."""
    del clocked  # its environment leads to the local cloud
    url = f"https://{os.environ['RETRAINING_REGION']}-aiplatform.googleapis.com/faults"
    headers = {"Authorization": f"Bearer {os.environ['GOOGLE_AUTH_TOKEN_FOR_TESTING']}"}
    slow = {"target": "BigQueryRead.CreateReadSession", "count": 1, "action": {"kind": "delay", "seconds": 60}}
    requests.post(url, json=slow, headers=headers, timeout=60).raise_for_status()


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


class TestTriggers:
    """By hand, by new data, by drift, by a loss of quality, by the clock."""

    @pytest.mark.usefixtures("slow_export")
    def test_by_hand_and_new_data_meanwhile(self, api: AirflowApi) -> None:
        """Eleven events while the run of the form is active are one further run, which names both of their causes."""
        by_hand = api.trigger(DAG_ID, conf={"epochs": 1, "deploy": False})  # else it is what new data would start
        planned(api, by_hand)
        loaded, looked = api.trigger(SOURCE_ID), api.trigger(MONITOR_ID)
        finished(api, SOURCE_ID, loaded, 120)
        assets = api.call("GET", "/assets", params={"limit": 100})["assets"]
        (asset_id,) = (asset["id"] for asset in assets if asset["name"] == ASSET)
        newest = datetime.now(UTC)
        for minutes in range(9):  # the newest of their times came first
            as_of = (newest - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
            api.call("POST", "/assets/events", json={"asset_id": asset_id, "extra": {"as_of": as_of}})
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

    def test_drift_of_the_requests(self, api: AirflowApi) -> None:
        """One run with its cause; the source's day is known, so that it starts no other (needs the first two)."""
        champion = planned(api, runs_of(api, "asset_triggered")[0]["dag_run_id"])
        documents = read_documents(os.environ["RETRAINING_PROJECT"], champion["run_uri"])
        golden, endpoint = documents["report"]["golden"], documents["deployment"]["endpoint_name"]
        odd = [{**each["instance"], "carrier": "ZZ", "distance": 99999.0} for each in golden] * 60
        for start in range(0, len(odd), 50):
            predict(endpoint, odd[start : start + 50])
        before = len(runs_of(api, "asset_triggered"))
        sent = datetime.now(UTC)  # the window ends before the whole second of the monitor's run
        wait_for("the second after the requests", lambda: datetime.now(UTC) > sent + timedelta(seconds=2))
        looked = api.trigger(MONITOR_ID)
        finished(api, MONITOR_ID, looked, 200)
        assert api.xcom(MONITOR_ID, looked, "decide")["outcome"] == "retrain"
        assert api.xcom(MONITOR_ID, looked, "new_day")["outcome"] == "trained"
        *_, run = wait_for("its run", lambda: runs_of(api, "asset_triggered")[before:])
        finished(api, DAG_ID, run["dag_run_id"])
        plan, page = told(api, run["dag_run_id"])
        assert plan["trigger"]["cause"].startswith("skew:")
        assert len(plan["trigger"]["events"]) == 1
        assert "Started by requests unlike the training data" in page
        assert label_of(plan).startswith("skew-")
        assert len(runs_of(api, "asset_triggered")) == before + 1

    def test_a_loss_of_quality(self, api: AirflowApi) -> None:
        """The policy decides by what was measured: labels say that the champion fell (needs the ones before)."""
        from google.cloud import storage as cloud_storage

        before, as_of = len(runs_of(api, "asset_triggered")), datetime.now(UTC).replace(microsecond=0)
        measured = api.xcom(MONITOR_ID, api.runs(MONITOR_ID)[-1]["dag_run_id"], "measure")
        signals = read_json(f"{measured['monitor_uri']}/signals.json")
        signals |= {"as_of": as_of.strftime("%Y-%m-%dT%H:%M:%SZ"), "signals": [FALLEN]}
        run_id = "manual__labels"
        folder = storage.monitor_uri(os.environ["RETRAINING_BUCKET"], MODEL, as_of, run_id)
        client = cloud_storage.Client(project=os.environ["RETRAINING_PROJECT"])
        cloud_storage.Blob.from_uri(f"{folder}/signals.json", client=client).upload_from_string(json.dumps(signals))
        asked = {"dag_run_id": run_id, "logical_date": None, "conf": {"as_of": signals["as_of"]}}
        api.call("POST", f"/dags/{MONITOR_ID}/dagRuns", json=asked)
        finished(api, MONITOR_ID, run_id, 200)
        assert api.xcom(MONITOR_ID, run_id, "decide")["outcome"] == "retrain"
        *_, run = wait_for("its run", lambda: runs_of(api, "asset_triggered")[before:])
        finished(api, DAG_ID, run["dag_run_id"])
        plan, page = told(api, run["dag_run_id"])
        assert plan["trigger"]["cause"].startswith("performance")
        assert "Started by worse answers, now that their labels are known" in page
        assert label_of(plan).startswith("performance")
        assert len(runs_of(api, "asset_triggered")) == before + 1

    def test_a_due_schedule(self, api: AirflowApi, dags_path: Path) -> None:
        """A tick that falls due while the scheduler runs starts one run, as of it; of a model that nobody else asks."""
        dag_id = "retrain__departures"
        due = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=3)
        api.unpause(dag_id)
        change_spec(dags_path, "departures", lambda spec: spec.update(schedule=f"{due.minute} {due.hour} * * *"))
        (run,) = wait_for("the run of the schedule", lambda: api.runs(dag_id), 300)
        found = planned(api, run["dag_run_id"], dag_id)  # the tasks after it are those of every run
        api.call("PATCH", f"/dags/{dag_id}/dagRuns/{run['dag_run_id']}", json={"state": "failed"})
        plan = read_documents(os.environ["RETRAINING_PROJECT"], found["run_uri"])["plan"]
        assert (run["run_type"], plan["trigger"]["kind"], plan["trigger"]["cause"]) == ("scheduled", "scheduled", None)
        assert plan["as_of"] == due.strftime("%Y-%m-%dT%H:%M:%SZ")
        assert len(api.runs(dag_id)) == 1
