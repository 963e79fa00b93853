"""A run's jobs one after the other on one machine (`jobs: chained`): one job, which goes on as it is asked.

The job of the first task does its work, then waits for the request of the next one, which Airflow writes as it would
for a job of its own: documents, checks between the tasks and what counts as a result are those of separate jobs. Each
task sees its part of the job as a job (`as_job_of`), from the end of the part before it to its own result. In: jobs,
what lies on storage. Out: values; nothing here asks anybody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from retraining.core.catalog.machines import chained_tasks, planned_machines
from retraining.core.documents.document import read_object
from retraining.core.documents.evaluation import EvaluateRequest, Evaluation
from retraining.core.documents.export import ExportRequest, Manifest
from retraining.core.documents.plan import JobTask, Plan
from retraining.core.documents.training import Report, TrainRequest
from retraining.core.errors import ContractError
from retraining.core.jobs.failures import ABORTED, UNASKED_WORDS
from retraining.core.jobs.job import FAILED, SUCCEEDED, Job
from retraining.core.jobs.requests import COMMAND, Chain, JobRequest
from retraining.core.naming import storage, vertex
from retraining.core.untyped import ProtoJson

WAIT_S = 900
"""Seconds that a machine waits for the next task's request: its tasks sleep for 300 s at most, and wait for workers."""

REQUESTS: Mapping[JobTask, str] = {
    "export": ExportRequest.kind_name(),
    "train": TrainRequest.kind_name(),
    "evaluate": EvaluateRequest.kind_name(),
}
RESULTS: Mapping[JobTask, str] = {
    "export": Manifest.kind_name(),
    "train": Report.kind_name(),
    "evaluate": Evaluation.kind_name(),
}
WAY_OUT = "Delete this object and clear the task: its work is done by a job of its own"


def chained(plan: Plan, job_request: JobRequest, task: JobTask) -> JobRequest:
    """Return what a task wants of a run whose jobs are chained: its job goes on with the tasks that follow.

    Of another run's it is returned as it is.

    Args:
        plan: The run.
        job_request: For a job of its own.
        task: Whose.
    """
    tasks = () if plan.taken_from else chained_tasks(plan.spec)
    if task not in tasks:
        return job_request
    number = tasks.index(task)
    results_uri = storage.results_uri(plan)
    before = RESULTS[tasks[number - 1]] if number else None
    chain = Chain(
        task=task,
        tasks=tasks[number:],
        folder_uri=plan.run_uri,
        before_uri=storage.document_uri(results_uri, before) if before else "",
    )
    if len(chain.tasks) == 1:
        return replace(job_request, chain=chain)
    return replace(job_request, chain=chain, custom_job=_going_on(plan, job_request.custom_job, tasks[number:]))


def _going_on(plan: Plan, custom_job: ProtoJson, tasks: Sequence[JobTask]) -> ProtoJson:
    """Return a job that goes on: within the time of all its tasks and of the waits between them."""
    spec = custom_job["job_spec"]
    pool = spec["worker_pool_specs"][0]
    stages = [f"--stage={task}={storage.document_uri(plan.run_uri, REQUESTS[task])}" for task in tasks]
    container = {**pool["container_spec"], "command": list(COMMAND), "args": ["chain", *stages, f"--wait={WAIT_S}"]}
    longest = sum(planned_machines(plan, task).timeout_s for task in tasks) + WAIT_S * (len(tasks) - 1)
    return {
        **custom_job,
        "job_spec": {
            **spec,
            "worker_pool_specs": [{**pool, "container_spec": container}],
            "scheduling": {**spec["scheduling"], "timeout": f"{longest}s"},
            "base_output_directory": {"output_uri_prefix": storage.training_uri(storage.results_uri(plan))},
        },
    }


@dataclass(frozen=True, kw_only=True)
class Going:
    """Which job of a run goes on, as its maker noted it.

    Attributes:
        job: Its name.
        tasks: All that it does, in order.
    """

    job: str
    tasks: tuple[str, ...]

    def to_bytes(self) -> bytes:
        """Return it as it is stored."""
        return json.dumps({"job": self.job, "tasks": self.tasks}).encode()

    @classmethod
    def parse(cls, data: bytes, where: str) -> Going:
        """Read what `to_bytes` gave.

        Raises:
            ContractError: It is something else.
        """
        values = read_object(data, where, WAY_OUT)
        job, tasks = values.get("job"), values.get("tasks")
        if isinstance(job, str) and isinstance(tasks, list) and all(isinstance(task, str) for task in tasks):
            return cls(job=job, tasks=tuple(tasks))
        raise ContractError(where, f"job {job!r}, tasks {tasks!r}", "a job's name and a list of tasks", WAY_OUT)


@dataclass(frozen=True, kw_only=True)
class Use:
    """Which generation of a task has its work done by a job that an earlier task made.

    Attributes:
        key: Of the generation (`vertex.job_key`).
        generation: Its number.
    """

    key: str
    generation: int

    def to_bytes(self) -> bytes:
        """Return it as it is stored."""
        return json.dumps({"key": self.key, "generation": self.generation}).encode()

    @classmethod
    def parse(cls, data: bytes, where: str) -> Use:
        """Read what `to_bytes` gave.

        Raises:
            ContractError: It is something else.
        """
        values = read_object(data, where, WAY_OUT)
        key, generation = values.get("key"), values.get("generation")
        if isinstance(key, str) and isinstance(generation, int):
            return cls(key=key, generation=generation)
        raise ContractError(where, f"key {key!r}, generation {generation!r}", "a text and a number", WAY_OUT)


def as_job_of(
    chain: Chain, job: Job, *, labels: Mapping[str, str] | None, before: datetime | None, result: datetime | None
) -> Job:
    """Return a task's part of a job as a job: it has ended with the task's result, though the machine goes on.

    Args:
        chain: The task's place.
        job: As the service has it.
        labels: Of a job that an earlier task made: those which one of this task's own would have. None: it is its own.
        before: When the part before this one left its result; None: there is none.
        result: When this task's result was left; None: it was not.
    """
    if labels is not None:
        began = max(filter(None, (before, job.started)), default=None)
        job = replace(job, labels={**job.labels, **labels}, started=began, lines_from=before)
    if result is not None and (job.created is None or result >= job.created) and not (job.ended and result > job.ended):
        return replace(job, state=SUCCEEDED, ended=result, error_code=0, error_message="")
    if labels is not None and job.state == SUCCEEDED:
        return replace(job, state=FAILED, error_code=ABORTED, error_message=f"{UNASKED_WORDS} for {chain.task}")
    return job


def labels_of_use(job_request: JobRequest, owner: str, use: Use) -> dict[str, str]:
    """Return the labels that a job of a task's own would have, which an earlier task's job does the work of."""
    own: Mapping[str, Any] = job_request.custom_job.get("labels", {})
    identity = {vertex.KEY_LABEL: use.key, vertex.OWNER_LABEL: owner, vertex.GENERATION_LABEL: str(use.generation)}
    return {**own, **identity}
