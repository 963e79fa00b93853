"""The pool of machines of a night that is pooled: opened before it, as its DAG does every night, and given up after it.

In: a running `System`, how many machines. Out: for how long they were there, which is what is paid for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench import fleet_cloud
from localcloud.errors import LocalCloudError
from retraining_laptop.airflow_api import AirflowApi
from retraining_laptop.dag_run import wait_for_dag
from retraining_laptop.progress import FINISHED_RUN

NAME = "nightly"
DAG_ID = f"machine_pool__{NAME}"
MACHINE = "n1-standard-4"
"""What a job of this software has by default: export, training and evaluation alike."""
LONGEST_S = 600.0
LOOK_INTERVAL_S = 2.0


@dataclass(kw_only=True)
class Pool:
    """A pool of a night: its machines, and the seconds for which they were there; 0: there was none."""

    machines: int = 0
    seconds: float = 0.0


def write_pool(include_path: Path, machines: int) -> None:
    """Write the file of a pool of so many machines, which are there as long as it is open."""
    values = {
        "name": NAME,
        "description": "The machines of the night",
        "opens": None,
        "hours": 24,
        "machines": [{"machine": MACHINE, "min": machines, "max": machines}],
    }
    path = include_path / "pools" / f"{NAME}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")


@contextmanager
def opened(api: AirflowApi, machines: int) -> Iterator[Pool]:
    """Have the pool's DAG make its machines; delete them at the end, and wait for the end of its run.

    Args:
        api: Of the Airflow that has the DAG.
        machines: How many its file says; 0: there is none, and nothing is done.

    Raises:
        LocalCloudError: Its machines did not come, or its run failed.
    """
    pool = Pool(machines=machines)
    if not machines:
        yield pool
        return
    wait_for_dag(api, DAG_ID)
    run_id = api.trigger(DAG_ID)
    api.unpause(DAG_ID)
    _wait(lambda: _task_state(api, run_id) == "success", "its machines")
    began = time.monotonic()
    yield pool
    fleet_cloud.delete_pools()
    pool.seconds = time.monotonic() - began
    _wait(lambda: api.read_run(DAG_ID, run_id)["state"] in FINISHED_RUN, "the end of its run")
    if (state := api.read_run(DAG_ID, run_id)["state"]) != "success":
        raise LocalCloudError(
            DAG_ID, found=f"its run ended as {state}", expected="success", way_out="See its tasks' logs"
        )


def _task_state(api: AirflowApi, run_id: str) -> str:
    """Return the state of the task that makes the machines."""
    return next((str(task["state"]) for task in api.task_instances(DAG_ID, run_id) if task["task_id"] == "open"), "")


def _wait(is_done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not is_done():
        if time.monotonic() > deadline:
            raise LocalCloudError(
                DAG_ID,
                found=f"{what} did not come",
                expected=f"it within {LONGEST_S:.0f} s",
                way_out="See its tasks' logs",
            )
        time.sleep(LOOK_INTERVAL_S)
