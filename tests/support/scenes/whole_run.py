"""Whole nights and scorings of a model on the local cloud: the tasks of its DAG one by one, as a worker runs them.

Comes in: a spec and a DAG run. Goes out: the documents that the run left on storage.
"""

from __future__ import annotations

import copy
import importlib
import json
import time
from pathlib import Path
from typing import Any

from google.cloud import storage

from retraining.core.documents import Decision
from retraining.core.promotion.replay import REPLAYED, decision_changes, replay_decision
from tests.support.airflow_release import AirflowRescheduleException

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 300


def load_dags(name: str) -> Any:
    """A kind of DAGs, as a module; imported when Airflow's home is the test's."""
    return importlib.import_module(f"retraining.dags.{name}")


def run_whole(spec: Any, run: Any, last: str | None = None, **params: Any) -> dict[str, Any]:
    """Run every task of a night, or all up to `last`; give its documents by kind."""
    found = _run_tasks(load_dags("retrain").retrain_dag(spec), run, last, **params)
    if "decision" in found:
        require_same_decision(run.xcoms["plan", "return_value"]["run_uri"])
    return found


def require_same_decision(run_uri: str) -> None:
    """Take the decision of a run again, from the bytes that it left."""
    bucket, _, folder = run_uri.removeprefix("gs://").partition("/")
    blobs = {kind: storage.Client().bucket(bucket).blob(f"{folder}/{kind}.json") for kind in REPLAYED}
    stored = {kind: blob.download_as_bytes() for kind, blob in blobs.items()}
    assert decision_changes(Decision.parse(stored["decision"]), replay_decision(stored)) == []


def read_object(uri: str) -> bytes:
    """The bytes of an object."""
    return storage.Blob.from_uri(uri, storage.Client()).download_as_bytes()


def run_scoring(spec: Any, run: Any, **params: Any) -> dict[str, Any]:
    """Run every task of a scoring; give its documents by kind."""
    return _run_tasks(load_dags("score").score_dag(spec, spec.scoring), run, **params)


def _run_tasks(dag: Any, run: Any, last: str | None = None, **params: Any) -> dict[str, Any]:
    run.dag_id, run.params = dag.dag_id, dag.params.dump() | params
    for task in dag.topological_sort():
        _run_task(task, run)
        if task.task_id == last:
            break
    return documents(run.xcoms["plan", "return_value"]["run_uri"])


def run_walk_forward(spec: Any, run: Any, **params: Any) -> dict[str, Any]:
    """Run every task of a walk-forward, those of one version after the other; give the documents of its folder."""
    dag = load_dags("walk_forward").walk_forward_dag(spec)
    run.dag_id, run.params = dag.dag_id, dag.params.dump() | params
    tasks = list(dag.topological_sort())
    of_version = [task for task in tasks if task.task_group and task.task_group.group_id == "version"]
    for task in tasks:
        if task in of_version[1:]:
            continue
        if task not in of_version:
            _run_task(task, run)
            continue
        for number, as_of in enumerate(run.xcoms["dates", "return_value"]):
            for each in map(copy.copy, of_version):
                each.__dict__["as_of"] = as_of
                _run_task(each, run, map_index=number)
    return documents(run.xcoms["plan", "return_value"]["run_uri"])


def _run_task(task: Any, run: Any, map_index: int = -1) -> None:
    """Run a task to its end."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            run.execute(task, map_index=map_index)
            return
        except AirflowRescheduleException:
            assert time.monotonic() < deadline, f"{task.task_id} did not end"


def documents(run_uri: str) -> dict[str, Any]:
    """The run's JSON documents by kind, and its page as `page`."""
    bucket, _, folder = run_uri.removeprefix("gs://").partition("/")
    found: dict[str, Any] = {}
    for blob in storage.Client().list_blobs(bucket, prefix=f"{folder}/", delimiter="/"):
        path = Path(blob.name)
        if path.suffix == ".json":
            found[path.stem] = json.loads(blob.download_as_bytes())
        elif path.suffix == ".html":
            found["page"] = blob.download_as_text()
    return found
