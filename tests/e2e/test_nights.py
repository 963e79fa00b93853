"""Nights of `retrain__flight_delays` through a real scheduler, in the order in which they happen to an owner.

The tests of this file build on each other's runs (a second night needs a first one), so they stand in one class and
run in order; each says what it needs.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
import requests

from demo.dag_run import DAG_ID, MODEL
from demo.system import LaptopSystem
from retraining_laptop.airflow_api import AirflowApi
from retraining_laptop.dag_run import Outcome, predict, read_documents, run_dag, wait_for_dag
from retraining_laptop.progress import FINISHED_RUN, follow_run, read_failures

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

FIRST, SECOND, THIRD = "2013-11-20T03:00:00Z", "2013-11-21T03:00:00Z", "2013-11-23T03:00:00Z"
MONITOR_ID = f"monitor__{MODEL}"
JOBS = ("export", "train", "evaluate")


def failure_lines(api: AirflowApi, dag_id: str, run_id: str) -> list[str]:
    """What the failed tasks of the run said, each line headed by its task."""
    return [f"{failure.task_id}: {line}" for failure in read_failures(api, dag_id, run_id) for line in failure.message]


@pytest.fixture(scope="module")
def nights() -> dict[str, Outcome]:
    """What earlier tests of this module ran, by logical date."""
    return {}


def run(laptop: LaptopSystem, as_of: str) -> Outcome:
    project = os.environ["RETRAINING_PROJECT"]
    night = run_dag(laptop.airflow.api(), DAG_ID, as_of, project=project, say=print, timeout_s=400, verbose=False)
    assert night.state == "success", str(night.failures)
    return night


def jobs_of(run_key: str) -> list[Any]:
    """Return the custom jobs of one run, as the job service lists them."""
    from google.cloud import aiplatform_v1

    region, project = os.environ["RETRAINING_REGION"], os.environ["RETRAINING_PROJECT"]
    client = aiplatform_v1.JobServiceClient(client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"})
    request = {"parent": f"projects/{project}/locations/{region}", "filter": f"labels.retraining-run={run_key}"}
    return list(client.list_custom_jobs(request=request))


def started_jobs(run_key: str, task_id: str) -> list[Any]:
    """Return the custom jobs of one task of a run."""
    return [job for job in jobs_of(run_key) if job.labels["retraining-task"] == task_id]


def versions() -> list[Any]:
    """Return the model's versions, oldest first."""
    from google.cloud import aiplatform_v1

    region, project = os.environ["RETRAINING_REGION"], os.environ["RETRAINING_PROJECT"]
    client = aiplatform_v1.ModelServiceClient(client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"})
    name = f"projects/{project}/locations/{region}/models/{MODEL}"
    return sorted(client.list_model_versions(name=name), key=lambda version: int(version.version_id))


def version_of(run_key: str) -> Any:
    """Return the one version that a run registered."""
    found = [version for version in versions() if version.labels["retraining-run"] == run_key]
    assert len(found) == 1, f"{len(found)} versions of {run_key}"
    return found[0]


def read_json(uri: str) -> dict[str, Any]:
    """Return a JSON object of the bucket."""
    from google.cloud import storage

    bucket_name, _, path = uri.removeprefix("gs://").partition("/")
    bucket = storage.Client(project=os.environ["RETRAINING_PROJECT"]).bucket(bucket_name)
    return dict(json.loads(bucket.blob(path).download_as_bytes()))


def wait_for(what: str, found: Callable[[], Any], timeout_s: float = 120) -> Any:
    """Return the first true answer of `found`."""
    deadline = time.monotonic() + timeout_s
    while not (answer := found()):
        assert time.monotonic() < deadline, f"{what} did not happen within {timeout_s:.0f} s"
        time.sleep(0.2)
    return answer


def task_process(laptop: LaptopSystem, task_id: str) -> int | None:
    """Return the pid of the innermost process that runs a task now (the task itself, not its supervisor)."""
    instances = laptop.airflow.api().task_instances(DAG_ID, laptop.airflow.api().runs(DAG_ID)[-1]["dag_run_id"])
    running = [ti for ti in instances if ti["task_id"] == task_id and ti["state"] == "running" and ti["pid"]]
    return int(running[0]["pid"]) if running else None


class TestNights:
    """From the first night to the retraining that drift asked for."""

    def test_first_night_makes_a_champion_that_answers(self, laptop: LaptopSystem, nights: dict[str, Outcome]) -> None:
        """The first night exports every span, promotes, deploys, and the endpoint answers as the SavedModel does."""
        night = nights[FIRST] = run(laptop, FIRST)
        manifest, report = night.documents["manifest"], night.documents["report"]
        assert {span["action"] for span in manifest["spans"]} == {"export"}
        assert len(manifest["spans"]) == 28
        assert night.documents["decision"]["verdict"] == "promote"
        run_key = night.documents["plan"]["run_key"]
        assert "champion" in version_of(run_key).version_aliases
        assert len(jobs_of(run_key)) == len(JOBS)
        answer = predict(night.documents["deployment"]["endpoint_name"], [g["instance"] for g in report["golden"]])
        assert answer["predictions"] == pytest.approx([g["prediction"] for g in report["golden"]], abs=1e-5)

    @pytest.mark.usefixtures("laptop")
    def test_a_missing_number_of_a_request_is_filled_as_the_spec_says(self, nights: dict[str, Outcome]) -> None:
        """-1e38 over REST is `missing: mean`; JSON's null is refused, as TensorFlow Serving does (needs the first)."""
        night = nights[FIRST]
        endpoint, instance = night.documents["deployment"]["endpoint_name"], night.documents["report"]["golden"][0]
        train = read_json(f"{night.run_uri}/statistics.json")["splits"]["train"]["features"]["distance"]
        assert train["nulls"] == 0  # else the model has a second column that says what was missing
        asked = [{**instance["instance"], "distance": distance} for distance in (-1e38, train["mean"], 5000.0)]
        missing, mean, far = predict(endpoint, asked)["predictions"]
        assert missing == pytest.approx(mean, abs=1e-5)
        assert missing != pytest.approx(far, abs=1e-5)
        with pytest.raises(requests.HTTPError, match="400"):
            predict(endpoint, [{**instance["instance"], "distance": None}])

    @pytest.mark.usefixtures("laptop")
    def test_the_report_is_on_storage(self, nights: dict[str, Outcome]) -> None:
        """The run's HTML page says what was decided (needs the first night)."""
        from google.cloud import storage

        night = nights[FIRST]
        client = storage.Client(project=os.environ["RETRAINING_PROJECT"])
        page = storage.Blob.from_uri(f"{night.run_uri}/report.html", client=client).download_as_text()
        assert "<script" not in page
        assert night.documents["plan"]["run_key"] in page

    def test_second_night_exports_one_day_and_survives_a_killed_worker(
        self, laptop: LaptopSystem, nights: dict[str, Outcome]
    ) -> None:
        """The second night reuses the first one's spans; stopping and killing waiting tasks makes no second job."""
        api = laptop.airflow.api()
        wait_for_dag(api, DAG_ID)
        run_id = api.trigger(DAG_ID, logical_date=SECOND)
        for task_id, number in (("export", signal.SIGTERM), ("train", signal.SIGKILL)):
            pid = wait_for(f"a running {task_id} task", lambda task_id=task_id: task_process(laptop, task_id), 240)
            run_key = api.xcom(DAG_ID, run_id, "plan")["run_key"]
            wait_for(f"the {task_id} job", lambda key=run_key, task_id=task_id: started_jobs(key, task_id))
            os.kill(pid, number)
        state, _ = follow_run(api, DAG_ID, run_id, say=print, timeout_s=400)
        assert state == "success", "\n".join(failure_lines(api, DAG_ID, run_id))
        tries = {ti["task_id"]: ti["try_number"] for ti in api.task_instances(DAG_ID, run_id)}
        assert tries["train"] >= 2
        assert sorted(job.labels["retraining-task"] for job in jobs_of(run_key)) == sorted(JOBS)
        documents = read_documents(os.environ["RETRAINING_PROJECT"], api.xcom(DAG_ID, run_id, "plan")["run_uri"])
        actions = [span["action"] for span in documents["manifest"]["spans"]]
        assert actions.count("export") == 1
        assert actions.count("reuse") == 27
        assert documents["evaluation"]["champion"] is not None
        aliases = {v.labels["retraining-run"]: set(v.version_aliases) for v in versions()}
        assert "champion" in aliases[run_key]
        assert "previous" in aliases[nights[FIRST].documents["plan"]["run_key"]]

    def test_same_night_again_makes_nothing_new(self, laptop: LaptopSystem, nights: dict[str, Outcome]) -> None:
        """Clearing the first night's run reuses its documents: no job, no version, no moved alias."""
        run_key = nights[FIRST].documents["plan"]["run_key"]
        before = [(v.version_id, sorted(v.version_aliases)) for v in versions()]
        again = run(laptop, FIRST)
        assert again.documents == nights[FIRST].documents
        assert len(jobs_of(run_key)) == len(JOBS)
        assert [(v.version_id, sorted(v.version_aliases)) for v in versions()] == before

    def test_backfill_registers_as_of_its_date_and_deploys_nothing(self, laptop: LaptopSystem) -> None:
        """Airflow's own backfill leaves the champion and the endpoint alone."""
        api = laptop.airflow.api()
        champion = [v.version_id for v in versions() if "champion" in v.version_aliases]
        api.backfill(DAG_ID, "2013-11-18T00:00:00Z", "2013-11-18T23:00:00Z")

        def new_runs() -> list[dict[str, Any]]:
            # Not all new runs: once a backfill has run, Airflow also starts the schedule's newest past tick.
            runs = [run for run in api.runs(DAG_ID) if run["run_type"] == "backfill"]
            return runs if runs and all(run["state"] in FINISHED_RUN for run in runs) else []

        (finished,) = wait_for("the run of the backfill", new_runs, 300)
        run_id = finished["dag_run_id"]
        assert finished["state"] == "success", "\n".join(failure_lines(api, DAG_ID, run_id))
        plan = api.xcom(DAG_ID, run_id, "plan")
        documents = read_documents(os.environ["RETRAINING_PROJECT"], plan["run_uri"])
        assert documents["plan"]["mode"] == "backfill"
        assert documents["decision"]["verdict"] == "record"
        assert documents["deployment"]["deployed"] is False
        assert list(version_of(plan["run_key"]).version_aliases) == ["as-of-20131118"]
        assert [v.version_id for v in versions() if "champion" in v.version_aliases] == champion

    def test_the_cleaning_keeps_what_the_nights_refer_to(self, laptop: LaptopSystem) -> None:
        """`maintain` by hand, and not dry: every span is a kept run's, and the documents say whose."""
        api = laptop.airflow.api()
        wait_for_dag(api, "maintain")
        api.unpause("maintain")
        run_id = api.trigger("maintain", conf={"dry_run": False, "models": [MODEL]})
        state, _ = follow_run(api, "maintain", run_id, say=print, timeout_s=120)
        assert state == "success", "\n".join(failure_lines(api, "maintain", run_id))
        folder = api.xcom("maintain", run_id, "look")["cleaning_uri"]
        (found,) = read_json(f"{folder}/maintenance_plan.json")["models"]
        (cleaned,) = read_json(f"{folder}/maintenance.json")["models"]
        assert cleaned["looked_at"] >= 28
        assert sum(kept["spans"] for kept in cleaned["kept"].values()) == cleaned["looked_at"]
        assert cleaned["spans"] == []
        assert "alias" in {kept["because"] for kept in found["kept_runs"]}

    def test_drift_of_the_requests_starts_a_retraining(self, laptop: LaptopSystem, nights: dict[str, Outcome]) -> None:
        """Requests unlike the training data start one run, with the reason; the cool-down holds a second one back."""
        api = laptop.airflow.api()
        golden = nights[FIRST].documents["report"]["golden"]
        odd = [{**g["instance"], "carrier": "ZZ", "distance": 99999.0} for g in golden] * 60
        for start in range(0, len(odd), 50):
            predict(nights[FIRST].documents["deployment"]["endpoint_name"], odd[start : start + 50])
        time.sleep(2)  # the monitor's window ends before the whole second of its run
        wait_for_dag(api, MONITOR_ID)
        api.unpause(MONITOR_ID)
        for expected in ("skew", "cooldown"):  # by the model's own policy one window is enough
            run_id = api.trigger(MONITOR_ID, conf={"retrain_as_of": THIRD})
            state, _ = follow_run(api, MONITOR_ID, run_id, say=print, timeout_s=120)
            assert state == "success", "\n".join(failure_lines(api, MONITOR_ID, run_id))
            assert api.xcom(MONITOR_ID, run_id, "decide")["because"] == expected

        def started() -> list[dict[str, Any]]:
            return [run for run in api.runs(DAG_ID) if run["run_type"] == "asset_triggered"]

        (started_run,) = wait_for("the retraining", started)
        run_id = started_run["dag_run_id"]

        def planned() -> bool:
            states = {ti["task_id"]: ti["state"] for ti in api.task_instances(DAG_ID, run_id)}
            assert states.get("plan") not in ("failed", "up_for_retry"), "\n".join(failure_lines(api, DAG_ID, run_id))
            return states.get("plan") == "success"

        wait_for("its plan", planned)  # the tasks after it are those of every night
        plan = read_documents(os.environ["RETRAINING_PROJECT"], api.xcom(DAG_ID, run_id, "plan")["run_uri"])["plan"]
        assert plan["as_of"] == THIRD
        assert plan["trigger"]["kind"] == "asset"
        assert "carrier" in plan["trigger"]["reason"]

    def test_other_models_wait_until_they_are_asked(self, laptop: LaptopSystem) -> None:
        """After all these nights of one model the DAGs of the others are there, paused, and never ran."""
        api = laptop.airflow.api()
        dags = {dag["dag_id"]: dag for dag in api.call("GET", "/dags", params={"limit": 1000})["dags"]}
        assert not dags[DAG_ID]["is_paused"]
        for dag_id in ("retrain__digits", "monitor__digits", "retrain__departures", "monitor__departures"):
            assert dags[dag_id]["is_paused"]
            assert api.runs(dag_id) == []
