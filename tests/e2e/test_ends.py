"""How runs end for a real scheduler: the state of the *run*, as its owner's alerts, metrics and backfills see it.

A good run's state is asserted by every night of test_nights.py. Both runs here are of a year's end that no night uses.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from demo.dag_run import DAG_ID, MODEL
from demo.system import LaptopSystem
from retraining.core.naming.dags import MACHINE_POOL, ROLLBACK
from retraining_laptop.dag_run import wait_for_dag
from retraining_laptop.progress import follow_run

from .conftest import POOL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ENDED, PAUSED = "2013-12-27T03:00:00Z", "2013-12-28T03:00:00Z"


def states_of_jobs(run_key: str) -> list[str]:
    """States of the custom jobs of a run, as the job service lists them."""
    from google.cloud import aiplatform_v1

    region, project = os.environ["RETRAINING_REGION"], os.environ["RETRAINING_PROJECT"]
    client = aiplatform_v1.JobServiceClient(client_options={"api_endpoint": f"{region}-aiplatform.googleapis.com"})
    request = {"parent": f"projects/{project}/locations/{region}", "filter": f"labels.retraining-run={run_key}"}
    return [job.state.name for job in client.list_custom_jobs(request=request)]


def tasks_of(api: Any, run_id: str) -> dict[str, str]:
    """The run's tasks and their states."""
    return {ti["task_id"]: ti["state"] for ti in api.task_instances(DAG_ID, run_id)}


def conclusion(api: Any, run_id: str) -> str:
    """What the last task said."""
    return "\n".join(api.log_lines(DAG_ID, run_id, "conclude", 1))


def test_a_run_whose_task_fails_is_a_failed_run(laptop: LaptopSystem) -> None:
    """Refused by its plan: nothing is retried, page and jobs are seen to, and the last task names the first."""
    api = laptop.airflow.api()
    wait_for_dag(api, DAG_ID)
    api.unpause(DAG_ID)
    run_id = api.trigger(DAG_ID, conf={"as_of": "2999-01-01T00:00:00Z"})
    state, times = follow_run(api, DAG_ID, run_id, say=print, timeout_s=120)
    assert state == "failed"
    tasks = tasks_of(api, run_id)
    assert (tasks["plan"], tasks["deploy"], tasks["conclude"]) == ("failed", "upstream_failed", "failed")
    assert (tasks["report"], tasks["cancel_jobs"]) == ("success", "success")
    assert all(task.tries == 1 for task in times)
    assert "plan failed" in conclusion(api, run_id)
    assert "after the run's own time" in "\n".join(api.log_lines(DAG_ID, run_id, "plan", 1))


@contextlib.contextmanager
def fault(target: str, seconds: float) -> Iterator[None]:
    """Slow calls of the local cloud."""
    url = f"https://{os.environ['RETRAINING_REGION']}-aiplatform.googleapis.com/faults"
    headers = {"Authorization": f"Bearer {os.environ['GOOGLE_AUTH_TOKEN_FOR_TESTING']}"}
    slow = {"target": target, "count": 0, "action": {"kind": "delay", "seconds": seconds}}
    requests.post(url, json=slow, headers=headers, timeout=60).raise_for_status()
    try:
        yield
    finally:
        requests.delete(url, headers=headers, timeout=60).raise_for_status()


@pytest.fixture
def slow_exports(laptop: LaptopSystem) -> Iterator[None]:
    """Jobs that wait for their first row, so that they are there to be ended however busy this machine is."""
    del laptop  # its environment leads to the local cloud
    with fault("BigQueryRead.CreateReadSession", 200):
        yield


@pytest.mark.usefixtures("slow_exports")
def test_a_run_that_a_person_ends_is_a_failed_run(laptop: LaptopSystem) -> None:
    """Marked as failed while its job runs: the job is cancelled, and the run does not turn green afterwards."""
    api = laptop.airflow.api()
    wait_for_dag(api, DAG_ID)
    api.unpause(DAG_ID)
    run_id = api.trigger(DAG_ID, logical_date=ENDED)
    run_key, deadline = "", time.monotonic() + 120
    while not (run_key and states_of_jobs(run_key)):
        assert time.monotonic() < deadline, tasks_of(api, run_id)
        if tasks_of(api, run_id).get("plan") == "success":
            run_key = api.xcom(DAG_ID, run_id, "plan")["run_key"]
        time.sleep(0.3)
    api.call("PATCH", f"/dags/{DAG_ID}/dagRuns/{run_id}", json={"state": "failed"})
    state, _ = follow_run(api, DAG_ID, run_id, say=print, timeout_s=120)
    assert state == "failed"
    tasks = tasks_of(api, run_id)
    assert (tasks["report"], tasks["cancel_jobs"], tasks["conclude"]) == ("success", "success", "failed")
    assert tasks["train"] == "skipped"
    assert set(states_of_jobs(run_key)) <= {"JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED"}


def pools() -> list[str]:
    """States of the persistent resources, as their service lists them."""
    from google.cloud import aiplatform_v1

    region, project = os.environ["RETRAINING_REGION"], os.environ["RETRAINING_PROJECT"]
    options = {"api_endpoint": f"{region}-aiplatform.googleapis.com"}
    client = aiplatform_v1.PersistentResourceServiceClient(client_options=options)
    found = client.list_persistent_resources(parent=f"projects/{project}/locations/{region}")
    return [each.state.name for each in found]


def test_a_pool_of_machines_is_open_for_its_hours_and_then_gone(laptop: LaptopSystem) -> None:
    """By a real scheduler, with a teardown that comes again until nothing is paid any more."""
    api, dag_id = laptop.airflow.api(), f"{MACHINE_POOL}__{POOL}"
    wait_for_dag(api, dag_id)
    api.unpause(dag_id)
    run_id = api.trigger(dag_id)
    state, _ = follow_run(api, dag_id, run_id, say=print, timeout_s=180)
    assert state == "success"
    assert api.xcom(dag_id, run_id, "open")["pool_id"]
    assert pools() == []


def test_a_pool_that_never_came_is_a_failed_run_and_leaves_nothing(laptop: LaptopSystem) -> None:
    """Its machines are still being made when `open` fails: whoever is on call sees red, and nobody pays."""
    api, dag_id = laptop.airflow.api(), f"{MACHINE_POOL}__{POOL}"
    wait_for_dag(api, dag_id)
    api.unpause(dag_id)
    with fault("PersistentResourceService.CreatePersistentResource/operation", 200):
        run_id = api.trigger(dag_id)
        deadline = time.monotonic() + 120
        while pools() != ["PROVISIONING"]:
            assert time.monotonic() < deadline
            time.sleep(0.3)
        api.call("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/open", json={"new_state": "failed"})
        state, _ = follow_run(api, dag_id, run_id, say=print, timeout_s=180)
    tasks = {ti["task_id"]: ti["state"] for ti in api.task_instances(dag_id, run_id)}
    assert (tasks["open"], tasks["keep"], tasks["close"]) == ("failed", "upstream_failed", "success")
    assert state == "failed"
    assert pools() == []


@pytest.mark.long
def test_a_run_of_a_paused_model_is_green_and_does_nothing(laptop: LaptopSystem) -> None:
    """Nothing but the plan and the teardowns, and the log says until when and why; a person ends the pause again."""
    api = laptop.airflow.api()
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    roll_back(api, {"to": "stay", "reason": "complaints", "pause_until": tomorrow})
    wait_for_dag(api, DAG_ID)
    api.unpause(DAG_ID)
    run_id = api.trigger(DAG_ID, logical_date=PAUSED)
    state, _ = follow_run(api, DAG_ID, run_id, say=print, timeout_s=180)
    tasks = tasks_of(api, run_id)
    assert state == "success"
    ran = {task for task, said in tasks.items() if said == "success"}
    assert ran == {"plan", "report", "cancel_jobs", "conclude"}
    assert {said for task, said in tasks.items() if task not in ran} == {"skipped"}
    assert f"paused until {tomorrow}" in conclusion(api, run_id)
    assert "because: complaints" in "\n".join(api.log_lines(DAG_ID, run_id, "plan", 1))
    roll_back(api, {"to": "stay"})


def roll_back(api: Any, conf: dict[str, str]) -> None:
    """A run of `rollback`, from its trigger to its good end."""
    wait_for_dag(api, ROLLBACK)
    api.unpause(ROLLBACK)
    run_id = api.trigger(ROLLBACK, conf={"model": MODEL, **conf})
    state, _ = follow_run(api, ROLLBACK, run_id, say=print, timeout_s=120)
    assert state == "success"
