"""What a night asked of the local cloud: jobs of Vertex AI, and calls by service and minute.

In: the variables of a running local cloud in this process's environment. Out: jobs by kind, those that were made twice
or still run, calls between two looks, the busiest minute.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from localcloud import faults
from localcloud.calls import FILE_NAME, CallCounts
from localcloud.state import State

VERTEX_QUOTA = 600
"""Requests a minute that Vertex AI takes of a project and region by default, to read and write its resources."""
VERTEX = "Vertex AI"
# The product's own, `retraining.core.naming.vertex`, which needs more packages than the local cloud's environment has.
MODEL_LABEL, RUN_LABEL, TASK_LABEL = "retraining-model", "retraining-run", "retraining-task"
_ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"})

Call = tuple[str, str, str]
"""A minute of the clock (`2026-01-31T09:05Z`), a service, a method."""
Counts = Mapping[Call, int]
"""Calls by what they were."""


@dataclass(frozen=True, kw_only=True)
class PaidJob:
    """A job of Vertex AI.

    Attributes:
        run_key: Label of the run that it is for.
        task_id: Label of the task that made it: what it is for.
        model: Label of the model.
        state: Without the prefix `JOB_STATE_`.
        created: When it was made.
        ended: When it ended; None: it goes on.
        started: When its machine was there; None: it never was.
    """

    run_key: str
    task_id: str
    model: str
    state: str
    created: datetime
    ended: datetime | None
    started: datetime | None = None

    def may_follow(self, earlier: PaidJob) -> bool:
        """Whether this one is a retry of an earlier job, which had failed by then."""
        return earlier.state == "FAILED" and earlier.ended is not None and earlier.ended <= self.created


def between(before: Counts, after: Counts) -> dict[Call, int]:
    """Return the calls that came between two looks; what has none is left out."""
    counts = {key: number - before.get(key, 0) for key, number in after.items()}
    return {key: number for key, number in counts.items() if number > 0}


def by_service(counts: Counts) -> dict[str, int]:
    """Return calls by service, the most first."""
    found: Counter[str] = Counter()
    for (_, service, _), number in counts.items():
        found[service] += number
    return dict(found.most_common())


def busiest_minute(counts: Counts, service: str = VERTEX) -> int:
    """Return the calls of a service in the minute of the clock that had the most; 0: none had any."""
    found: Counter[str] = Counter()
    for (minute, its, _), number in counts.items():
        if its == service:
            found[minute] += number
    return max(found.values(), default=0)


def busiest_calls(counts: Counts, service: str = VERTEX, most: int = 5) -> dict[str, int]:
    """Return the methods of a service that were called most, with their calls."""
    found: Counter[str] = Counter()
    for (_, its, method), number in counts.items():
        if its == service:
            found[method] += number
    return dict(found.most_common(most))


def doubled_jobs(jobs: Iterable[PaidJob]) -> dict[str, int]:
    """Return the jobs that were made beside another of the same run and purpose, by `model task`.

    A job that follows one that has failed is a retry, and no double: `retried_jobs`.
    """
    return _later_jobs(jobs, lambda job, before: not all(map(job.may_follow, before)))


def retried_jobs(jobs: Iterable[PaidJob]) -> dict[str, int]:
    """Return the jobs that follow failed ones of the same run and purpose, by `model task`."""
    return _later_jobs(jobs, lambda job, before: bool(before) and all(map(job.may_follow, before)))


def _later_jobs(jobs: Iterable[PaidJob], counts: Callable[[PaidJob, Sequence[PaidJob]], bool]) -> dict[str, int]:
    """Return how many jobs count beside those that were made before for the same, by `model task`."""
    before: dict[tuple[str, str, str], list[PaidJob]] = {}
    found: Counter[str] = Counter()
    for job in sorted(jobs, key=lambda job: job.created):
        earlier = before.setdefault((job.run_key, job.model, job.task_id), [])
        if counts(job, earlier):
            found[f"{job.model} {job.task_id}"] += 1
        earlier.append(job)
    return dict(sorted(found.items()))


def running_jobs(jobs: Iterable[PaidJob]) -> list[str]:
    """Return the jobs that have not ended, as `model task`."""
    return sorted(f"{job.model} {job.task_id}" for job in jobs if job.state not in _ENDED)


def jobs_by_kind(jobs: Iterable[PaidJob]) -> dict[str, dict[str, int]]:
    """Return how many jobs of each task ended in each state."""
    found: dict[str, Counter[str]] = {}
    for job in jobs:
        found.setdefault(job.task_id, Counter())[job.state] += 1
    return {task_id: dict(states) for task_id, states in sorted(found.items())}


def read_counts(state_path: Path) -> dict[Call, int]:
    """Return all calls that a local cloud has counted.

    Args:
        state_path: Its state directory.
    """
    counts = CallCounts(state_path / FILE_NAME)
    try:
        return {(row.minute, row.service, row.method): row.count for row in counts.read(by_minute=True)}
    finally:
        counts.close()


def list_jobs() -> list[PaidJob]:
    """Return all jobs of Vertex AI, of whatever kind, that the local cloud has."""
    from google.cloud import aiplatform_v1

    client = aiplatform_v1.JobServiceClient(client_options={"api_endpoint": _host()})
    parent = _parent()
    listed = [
        *client.list_custom_jobs(parent=parent),
        *client.list_hyperparameter_tuning_jobs(parent=parent),
        *client.list_batch_prediction_jobs(parent=parent),
    ]
    return [
        PaidJob(
            run_key=job.labels.get(RUN_LABEL, job.name),
            task_id=job.labels.get(TASK_LABEL, "?"),
            model=job.labels.get(MODEL_LABEL, "?"),
            state=job.state.name.removeprefix("JOB_STATE_"),
            created=job.create_time,
            ended=job.end_time or None,
            started=getattr(job, "start_time", None) or None,
        )
        for job in listed
    ]


def machine_seconds(jobs: Iterable[PaidJob]) -> float:
    """Return the seconds for which the machines of jobs worked, each from its start to its end."""
    return sum((job.ended - job.started).total_seconds() for job in jobs if job.started and job.ended)


def let_machines_start_in(state_path: Path, seconds: int) -> None:
    """Have each job wait for its machine from now on, as the service's do.

    Args:
        state_path: State directory of the local cloud.
        seconds: How long; 0: not at all.
    """
    if seconds:
        fault = {"target": "Job.Start", "count": 1_000_000, "action": {"kind": "delay", "seconds": seconds}}
        faults.FaultStore(State(state_path).faults_path).add(faults.check(fault))


def delete_pools() -> None:
    """Delete all pools of machines, as a person would; wait until they are gone."""
    from google.cloud import aiplatform_v1

    client = aiplatform_v1.PersistentResourceServiceClient(client_options={"api_endpoint": _host()})
    for pool in client.list_persistent_resources(parent=_parent()):
        client.delete_persistent_resource(name=pool.name).result()


def list_price(models: Iterable[str]) -> float | None:
    """Return what the runs of these models cost at list prices, as their own documents have it; None: one has none."""
    from google.cloud import storage

    bucket = storage.Client().bucket(os.environ["RETRAINING_BUCKET"])
    total = 0.0
    for model in models:
        for blob in bucket.list_blobs(prefix=f"{model}/runs/", match_glob="**/timings.json"):
            tasks = json.loads(blob.download_as_bytes())["tasks"]
            prices = [task["estimated_usd"] for task in tasks if task["machine"] and not task["reused"]]
            if None in prices:
                return None
            total += sum(prices)
    return total


def of_models(jobs: Sequence[PaidJob], models: Iterable[str]) -> list[PaidJob]:
    """Return the jobs of these models."""
    names = set(models)
    return [job for job in jobs if job.model in names]


def _parent() -> str:
    return f"projects/{os.environ['RETRAINING_PROJECT']}/locations/{os.environ['RETRAINING_REGION']}"


def _host() -> str:
    return f"{os.environ['RETRAINING_REGION']}-aiplatform.googleapis.com"
