"""A night in which processes are killed, or say nothing: Airflow's, the local cloud's, one by one and two at once."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from demo.dag_run import DAG_ID
from demo.system import LaptopSystem
from retraining_laptop.airflow import COMPONENTS
from retraining_laptop.airflow_api import AirflowApiError
from retraining_laptop.dag_run import predict, read_documents, wait_for_dag
from retraining_laptop.progress import FINISHED_RUN
from tests.e2e.conftest import make_bundle, running_laptop
from tests.e2e.test_nights import failure_lines, jobs_of, started_jobs, version_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200)]

AWAY_S = 20
"""How long a part of Airflow is away before somebody starts it again; the local cloud does so at once."""
SILENT_S = 200
"""How long a server that lives says nothing: three times what a call may take."""
NIGHTS = [
    ("scheduler", "train", "2013-11-20"),
    ("api-server", "export", "2013-11-21"),
    ("dag-processor", "train", "2013-11-22"),
    ("bigquery", "export", "2013-11-23"),
    ("gateway", "train", "2013-11-24"),
    ("vertex", "train", "2013-11-25"),
    ("scheduler and vertex", "train", "2013-11-26"),
    ("api-server and gateway", "export", "2013-11-27"),
    ("silent bigquery", "export", "2013-11-28"),
    ("silent gateway", "train", "2013-11-29"),
    ("silent vertex", "train", "2013-11-30"),
]
"""What is killed, or silent, while which task's job is at work, in the run of which day."""
SILENT = "silent "
NO_ANSWER = (requests.RequestException, AirflowApiError)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaptopSystem]:
    """A local cloud whose servers are started again, and an Airflow."""
    base = tmp_path_factory.mktemp("killed")
    with running_laptop(base, make_bundle(base / "bundle"), cloud_options=("--restart",)) as running:
        wait_for_dag(running.airflow.api(), DAG_ID, timeout_s=300)
        running.airflow.api().unpause(DAG_ID)
        yield running


def kill(system: LaptopSystem, names: list[str]) -> None:
    """End processes at once, and have them started again."""
    parts = [name for name in names if name in COMPONENTS]
    for name in names:
        if name in parts:
            system.airflow.kill_component(name)
        else:
            os.kill(server_process(system, name), signal.SIGKILL)  # the local cloud starts it again itself
    if parts:
        time.sleep(AWAY_S)
    for name in parts:
        system.airflow.start_component(name)


def silence(system: LaptopSystem, name: str) -> None:
    """Stop a server, whose connections stay, and let it go on later."""
    process = server_process(system, name)
    os.kill(process, signal.SIGSTOP)
    time.sleep(SILENT_S)
    os.kill(process, signal.SIGCONT)


def server_process(system: LaptopSystem, name: str) -> int:
    """The process of a server of the local cloud."""
    words = (f"localcloud.{name}.server".encode(), str(system.state_path).encode())
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if all(word in command_line.read_bytes() for word in words):
                return int(command_line.parent.name)
    raise AssertionError(f"{name} does not run")


def wait_for_end(system: LaptopSystem, run_id: str) -> str:
    """How a run ends, whatever does not answer meanwhile."""

    def ended() -> str:
        with contextlib.suppress(*NO_ANSWER):
            (run,) = [run for run in system.airflow.api().runs(DAG_ID) if run["dag_run_id"] == run_id]
            return str(run["state"]) if run["state"] in FINISHED_RUN else ""
        return ""

    return str(wait_for(f"the end of {run_id}", ended, 900))


def planned(system: LaptopSystem, run_id: str) -> dict[str, Any] | None:
    """What `plan` came to; None: it is not done."""
    try:
        found: dict[str, Any] = system.airflow.api().xcom(DAG_ID, run_id, "plan")
    except AirflowApiError:
        return None
    return found


def paid_beside(jobs: list[Any]) -> list[str]:
    """The jobs that were made beside another of their task that went on or had succeeded."""
    found = []
    for job in sorted(jobs, key=lambda job: job.create_time):
        others = [each for each in jobs if each.labels["retraining-task"] == job.labels["retraining-task"]]
        before = [each for each in others if each.create_time < job.create_time]
        if any(each.state.name != "JOB_STATE_FAILED" or each.end_time > job.create_time for each in before):
            found.append(job.display_name)
    return found


@pytest.mark.parametrize(("victims", "task_id", "day"), NIGHTS, ids=[f"{night[0]}-{night[1]}" for night in NIGHTS])
def test_a_night_comes_to_its_end_whatever_dies(system: LaptopSystem, victims: str, task_id: str, day: str) -> None:
    """It succeeds, each job is paid once (the one that died with its server once more), and its version answers."""
    api = system.airflow.api()
    run_id = api.trigger(DAG_ID, logical_date=f"{day}T03:00:00Z")
    plan = wait_for("a plan", lambda: planned(system, run_id), 300)
    run_key = plan["run_key"]

    def at_work() -> bool:
        return any(job.state.name == "JOB_STATE_RUNNING" for job in started_jobs(run_key, task_id))

    wait_for(f"a job of {task_id}", at_work, 300)
    began = time.monotonic()
    if victims.startswith(SILENT):
        silence(system, victims.removeprefix(SILENT))
    else:
        kill(system, victims.split(" and "))
    state = wait_for_end(system, run_id)
    print(f"{victims} during {task_id}: {state} {time.monotonic() - began:.0f} s later", flush=True)
    assert state == "success", "\n".join(failure_lines(api, DAG_ID, run_id))
    jobs = jobs_of(run_key)
    tasks = sorted(job.labels["retraining-task"] for job in jobs)
    expected = [
        "evaluate",
        "export",
        *(["train"] * (2 if "vertex" in victims and not victims.startswith(SILENT) else 1)),
    ]
    assert tasks == expected
    assert paid_beside(jobs) == []
    assert not [job for job in jobs if job.state.name not in ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED")]
    documents = read_documents(os.environ["RETRAINING_PROJECT"], plan["run_uri"])
    assert "champion" in version_of(run_key).version_aliases
    golden = documents["report"]["golden"]
    answer = predict(documents["deployment"]["endpoint_name"], [each["instance"] for each in golden])
    assert answer["predictions"] == pytest.approx([each["prediction"] for each in golden], abs=1e-5)
