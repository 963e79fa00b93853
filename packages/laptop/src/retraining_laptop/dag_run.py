"""One run of a model's DAG: triggers it (or runs it again), follows it, reads what it made.

Comes in: a running `System`. Goes out: the run's documents from storage, task times, one online prediction.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from retraining_laptop.airflow_api import AirflowApi, AirflowApiError
from retraining_laptop.progress import FINISHED_RUN, Failure, TaskTime, follow_run, read_failures, task_time

DOCUMENTS = ("plan", "snapshot", "manifest", "report", "evaluation", "decision", "registration", "deployment")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one run left behind.

    Attributes:
        state: `success` or `failed`; a run with a failed task failed.
        times: Its tasks.
        seconds: From its start to its end, wall clock.
        run_uri: `gs://` folder of the run's record.
        documents: The record's documents by kind; those that the run did not come to are missing.
        failures: Its failed tasks, with their messages.
    """

    state: str
    times: list[TaskTime]
    seconds: float
    run_uri: str
    documents: dict[str, dict[str, Any]]
    failures: list[Failure]


def run_dag(
    api: AirflowApi,
    dag_id: str,
    as_of: str,
    *,
    project: str,
    say: Callable[[str], None],
    timeout_s: float,
    verbose: bool = False,
    repeat: bool = True,
) -> Outcome:
    """Run the DAG for one logical date and return what it made.

    Args:
        as_of: The logical date, ISO 8601.
        project: Of the bucket.
        say: Takes one line of progress at a time.
        timeout_s: Seconds until this gives up.
        verbose: Whether the tasks' logs are printed too.
        repeat: Whether a run that succeeded is run again.

    Raises:
        TimeoutError: It is not over after `timeout_s` seconds.
    """
    wait_for_dag(api, dag_id)
    api.unpause(dag_id)
    run_id = _trigger_or_clear(api, dag_id, as_of, say, repeat=repeat)
    if run_id is None:
        run_id = _run_of(api, dag_id, as_of)["dag_run_id"]
    else:
        follow_run(api, dag_id, run_id, say=say, timeout_s=timeout_s, verbose=verbose)
    return read_outcome(api, dag_id, run_id, project)


def read_outcome(api: AirflowApi, dag_id: str, run_id: str, project: str) -> Outcome:
    """Return what a finished run made."""
    run = api.read_run(dag_id, run_id)
    times = [task_time(task) for task in api.task_instances(dag_id, run_id)]
    begin, end = (datetime.fromisoformat(run[name]) for name in ("start_date", "end_date"))
    run_uri, documents = "", {}
    if any(task.task_id == "plan" and task.state == "success" for task in times):
        run_uri = api.xcom(dag_id, run_id, "plan")["run_uri"]
        documents = read_documents(project, run_uri)
    failures = read_failures(api, dag_id, run_id)
    return Outcome(
        state="failed" if failures else run["state"],
        times=times,
        seconds=(end - begin).total_seconds(),
        run_uri=run_uri,
        documents=documents,
        failures=failures,
    )


def wait_for_dag(api: AirflowApi, dag_id: str, timeout_s: float = 90) -> None:
    """Wait until the DAG processor has stored a DAG.

    Raises:
        TimeoutError: It has not; the message has the import errors.
    """
    deadline = time.monotonic() + timeout_s
    while dag_id not in api.dag_ids():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{dag_id} does not appear. Import errors: {api.import_errors() or 'none'}")
        time.sleep(0.3)


def read_documents(project: str, run_uri: str) -> dict[str, dict[str, Any]]:
    """Return the run's documents by kind, as they lie on storage."""
    from google.cloud import storage  # after the local cloud's variables are set

    bucket_name, _, prefix = run_uri.removeprefix("gs://").partition("/")
    bucket = storage.Client(project=project).bucket(bucket_name)
    blobs = {kind: bucket.blob(f"{prefix}/{kind}.json") for kind in DOCUMENTS}
    return {kind: json.loads(blob.download_as_bytes()) for kind, blob in blobs.items() if blob.exists()}


def predict(endpoint_name: str, instances: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the endpoint's answer to one online request, asked over REST as any application would.

    Args:
        endpoint_name: `projects/…/locations/<region>/endpoints/…`.
        instances: One object per example, raw features by name.
    """
    import google.auth
    from google.auth.transport.requests import AuthorizedSession

    credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    region = endpoint_name.split("/")[3]
    url = f"https://{region}-aiplatform.googleapis.com/v1/{endpoint_name}:predict"
    answer = AuthorizedSession(credentials).post(url, json={"instances": instances}, timeout=60)
    answer.raise_for_status()
    return dict(answer.json())


def _trigger_or_clear(
    api: AirflowApi, dag_id: str, as_of: str, say: Callable[[str], None], *, repeat: bool
) -> str | None:
    """Start the run, or the tasks of a finished one again; None if there is nothing to do."""
    try:
        run_id = api.trigger(dag_id, logical_date=as_of)
    except AirflowApiError as error:
        if error.status != 409:
            raise
    else:
        say(f"{dag_id} triggered for {as_of}")
        return run_id
    run = _run_of(api, dag_id, as_of)
    run_id = str(run["dag_run_id"])
    if run["state"] not in FINISHED_RUN:
        say(f"{dag_id} has an unfinished run for {as_of}: it goes on")
        return run_id
    if not repeat and run["state"] == "success" and not read_failures(api, dag_id, run_id):
        say(f"{dag_id} has succeeded for {as_of} before: nothing runs again; this is what it made")
        return None
    api.clear_run(dag_id, run_id)
    say(f"{dag_id} has a run for {as_of}: cleared, every task runs again and reuses what is there")
    return run_id


def _run_of(api: AirflowApi, dag_id: str, as_of: str) -> dict[str, Any]:
    return next(run for run in api.runs(dag_id) if _same_instant(run["logical_date"], as_of))


def _same_instant(one: str | None, other: str) -> bool:
    return one is not None and datetime.fromisoformat(one) == datetime.fromisoformat(other)
