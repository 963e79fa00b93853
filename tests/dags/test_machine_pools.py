"""`machine_pool__<name>`: a DAG for each file of include/pools, and what a broken one becomes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.small_pool import write_pool

from .conftest import run_python

READ = """
import json, machine_pools

print(json.dumps({
    dag_id: {
        "tasks": {task.task_id: {
            "teardown": task.is_teardown,
            "decides": task.on_failure_fail_dagrun,
            "retries": task.retries,
            "weight": task.priority_weight,
            "slots": task.pool,
            "bounded": task.execution_timeout is not None and getattr(task, "timeout", 0) < 24 * 3600,
        } for task in dag.tasks},
        "doc": dag.doc_md,
        "schedule": type(dag.timetable).__name__,
        "runs": dag.max_active_runs,
        "dates": [dag.catchup, dag.start_date],
    }
    for dag_id, dag in vars(machine_pools).items() if "__" in dag_id and hasattr(dag, "tasks")
}))
"""


def test_no_file_makes_no_dag(dags) -> None:
    assert not [dag_id for dag_id in dags if dag_id.startswith("machine_pool")]


def test_each_file_makes_its_dag(bundle: Path) -> None:
    """Machines are deleted by a teardown, whatever became of the other tasks, and the run's state follows it."""
    include = bundle / "dags" / "include"
    write_pool(include)
    write_pool(include, name="by-hand", opens=None)
    write_pool(include, name="broken", hours=-1)
    dags = json.loads(run_python(bundle, READ).splitlines()[-1])
    assert sorted(dags) == [f"machine_pool__{name}" for name in ("broken", "by-hand", "nightly")]
    dag = dags["machine_pool__nightly"]
    assert list(dag["tasks"]) == ["open", "keep", "close", "kept"]
    assert (dag["tasks"]["close"]["teardown"], dag["tasks"]["close"]["decides"]) == (True, True)
    assert all(task["retries"] >= 2 and task["bounded"] for task in dag["tasks"].values())
    assert {task["weight"] for task in dag["tasks"].values()} == {210}, "as the models of highest priority"
    assert {task["slots"] for task in dag["tasks"].values()} == {"default_pool"}, "Airflow's pools are others"
    assert (dag["schedule"], dag["runs"], dag["dates"]) == ("CronTriggerTimetable", 1, [False, None])
    assert dag["doc"].startswith("# machine_pool__nightly")
    assert "{" not in dag["doc"]
    assert all(f"| {task_id} |" in dag["doc"] for task_id in dag["tasks"])
    assert dags["machine_pool__by-hand"]["schedule"] == "NullTimetable"
    assert list(dags["machine_pool__broken"]["tasks"]) == ["read_spec"]
    assert "hours is -1" in dags["machine_pool__broken"]["doc"]
