"""Vertex AI's jobs in memory, with states that the test sets, and their log lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

from google.api_core.exceptions import NotFound

from retraining.core.jobs.job import Job, JobType, machines_of
from retraining.core.naming.environments import Environment
from retraining.hooks.logs import Cursor, Line
from tests.support.fakes.clock import START
from tests.support.fakes.settings import ENVIRONMENT

COLLECTIONS = {
    JobType.CUSTOM: "customJobs",
    JobType.TUNING: "hyperparameterTuningJobs",
    JobType.BATCH: "batchPredictionJobs",
}


class FakeJobs:
    """The job service, as one environment sees it. `before_create` and `after_create` may raise.

    Args:
        environment: Whose jobs are listed.
        service: What another environment sees of the same project; the jobs are in it.
    """

    def __init__(self, environment: Environment = ENVIRONMENT, service: FakeJobs | None = None) -> None:
        self.environment = environment
        self.jobs: dict[str, Job] = {} if service is None else service.jobs
        self.specs: list[dict[str, Any]] = []
        self.reported: dict[str, list[dict[str, Any]]] = {}
        self.cancelled: list[str] = []
        self.before_create: Callable[[], None] = lambda: None
        self.after_create: Callable[[], None] = lambda: None
        self.on_get: Callable[[str], None] = lambda _: None

    def find_jobs(self, labels: Mapping[str, str], types: Collection[JobType] = (JobType.CUSTOM,)) -> list[Job]:
        """As the hook."""
        return [job for job in self._ours(types) if labels.items() <= job.labels.items()]

    def find_active(self, label: str, types: Collection[JobType] = tuple(JobType)) -> list[Job]:
        """As the hook."""
        return [job for job in self._ours(types) if label in job.labels and job.active]

    def create(self, job: Mapping[str, Any]) -> Job:
        """As the hook."""
        self.before_create()
        number = len(self.jobs) + 1
        kind = COLLECTIONS[JobType.of(job)]
        spec = job.get("job_spec", job.get("trial_job_spec", {}))
        made = Job(
            name=f"projects/p/locations/r/{kind}/{number}",
            state="JOB_STATE_RUNNING",
            labels={**job.get("labels", {}), **self.environment.labels},
            created=START + timedelta(seconds=number),
            spot=spec.get("scheduling", {}).get("strategy") == "SPOT",
            folder_uri=spec.get("base_output_directory", {}).get("output_uri_prefix", ""),
            pool_id=spec.get("persistent_resource_id", ""),
            machines=machines_of(job),
        )
        self.jobs[made.name] = made
        self.specs.append(dict(job))
        self.after_create()
        return made

    def get(self, name: str) -> Job:
        """As the hook."""
        self.on_get(name)
        if name not in self.jobs:
            raise NotFound(name)
        return self.jobs[name]

    def find_by_name(self, name: str) -> Job | None:
        """As the hook."""
        return self.jobs.get(name)

    def trials(self, name: str) -> list[dict[str, Any]]:
        """As the hook."""
        self.get(name)
        return sorted(self.reported.get(name, []), key=lambda trial: int(trial["id"]))

    def cancel(self, name: str) -> None:
        """As the hook; the job ends at once."""
        job = self.jobs.get(name)
        if job is not None and job.active:
            self.cancelled.append(name)
            self.end(name, "JOB_STATE_CANCELLED", 1, "CANCELED")

    def end(
        self,
        name: str,
        state: str = "JOB_STATE_SUCCEEDED",
        code: int = 0,
        message: str = "",
        seconds: float | None = None,
    ) -> None:
        """Let a job end. Without seconds nobody knows how long it ran."""
        times: dict[str, Any] = {}
        if seconds is not None:
            times = {"started": START, "ended": START + timedelta(seconds=seconds)}
        if JobType.of_name(name) is JobType.BATCH:
            number = self.jobs[name].job_id
            times["output_table"] = f"local-project.retraining.predictions_{number}"
        changes: dict[str, Any] = {"state": state, "error_code": code, "error_message": message, **times}
        self.jobs[name] = dataclasses.replace(self.jobs[name], **changes)

    @property
    def newest(self) -> str:
        """Name of the job created last."""
        return list(self.jobs)[-1]

    def _ours(self, types: Collection[JobType]) -> list[Job]:
        """Jobs of this environment, oldest first."""
        return [
            job
            for job in self.jobs.values()
            if JobType.of_name(job.name) in types and self.environment.owns(job.labels, job.folder_uri)
        ]


class FakeLogs:
    """Log lines by job id. `say` may be told a time earlier than lines that were read already."""

    def __init__(self) -> None:
        self.entries: dict[str, list[tuple[str, Line]]] = {}

    def say(self, job_id: str, text: str, *, second: float, severity: str = "INFO") -> None:
        """Add a line."""
        entries = self.entries.setdefault(job_id, [])
        time = START + timedelta(seconds=second)
        entries.append((str(len(entries)), Line(time=time, severity=severity, task="workerpool0-0", text=text)))

    def read_new(self, job_id: str, cursor: Cursor) -> list[Line]:
        """As the hook, with the product's own cursor."""
        since = cursor.since()
        found = sorted(self.entries.get(job_id, []), key=lambda entry: entry[1].time)
        return [line for key, line in found if (since is None or line.time >= since) and cursor.take(key, line.time)]
