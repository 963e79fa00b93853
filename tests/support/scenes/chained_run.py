"""Export, training and evaluation of a run on one machine, in the cloud of memory: the tasks, and the machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from retraining.core.documents.plan import JobTask
from retraining.core.jobs import requests
from retraining.core.jobs.chains import chained
from retraining.core.jobs.job import Job, JobIdentity
from retraining.core.jobs.requests import JobRequest
from retraining.operators.jobs.chain import ChainedJobs
from retraining.operators.jobs.reconcile import Reconciler
from tests.support.fakes.cloud import FakeCloud
from tests.support.job_results import result_of
from tests.support.small_model import make_plan, make_snapshot, make_spec

TASKS: tuple[JobTask, ...] = ("export", "train", "evaluate")
WAKES = 40
WORKS_S = 100
"""Seconds that each task's work takes on the machine."""


class ChainedRun:
    """A run whose tasks are woken one after the other, as Airflow does, while its machines work.

    Attributes:
        cloud: Where.
        generations: How often each task was cleared.
        fails: Called with a job and the task that it is about to work for; may end the job.
    """

    def __init__(self) -> None:
        self.cloud = FakeCloud()
        self.generations = dict.fromkeys(TASKS, 0)
        self.fails: Callable[[str, str], bool] = lambda _job, _task: False
        self.works = True
        plan = make_plan(make_spec(jobs="chained"))
        self.plan = plan
        wanted = {
            "export": requests.export_job(plan, make_snapshot(plan)),
            "train": requests.training_job(plan),
            "evaluate": requests.evaluation_job(plan, None),
        }
        self.wanted: dict[JobTask, JobRequest] = {task: chained(plan, wanted[task], task) for task in TASKS}
        self.cloud.artifacts.put(self.wanted["train"].artifact_uri, b"model")

    def wake(self, task: JobTask, cloud: Any = None) -> Any:
        """One wake of a task."""
        hooks, wanted, generation = cloud or self.cloud, self.wanted[task], self.generations[task]
        identity = JobIdentity(
            key=f"{task}-{generation}", owner=task, dag_run="run", generation=generation, retries=1, try_number=1
        )
        assert wanted.chain is not None
        jobs = ChainedJobs(hooks, wanted, wanted.chain, identity, lambda: True)
        self.cloud.artifacts.now = self.cloud.clock.now()
        return Reconciler(hooks, wanted, identity, lambda _: None, jobs=jobs).poll_job()

    def finish(self, task: JobTask) -> Any:
        """Wake a task until it has its result, while the machines work."""
        for _ in range(WAKES):
            if result := self.wake(task):
                return result
            self.work()
        raise AssertionError(f"{task} waits without an end")

    def work(self, task: str = "") -> None:
        """Let each machine do the next work that it is asked for."""
        self.cloud.clock.sleep(WORKS_S)
        self.cloud.artifacts.now = self.cloud.clock.now()
        for (name, job), spec in zip(list(self.cloud.jobs.jobs.items()), self.cloud.jobs.specs, strict=True):
            if job.active and self.works:
                self._work_on(name, job, spec)

    def _work_on(self, name: str, job: Job, spec: dict[str, Any]) -> None:
        if job.started is None:
            self.cloud.jobs.jobs[name] = replace(job, started=self.cloud.clock.now() - timedelta(seconds=WORKS_S))
        for task, request_uri in stages_of(spec):
            asked = self.cloud.artifacts.objects.get(request_uri)
            if asked is None:
                return
            uri, result = result_of(asked)
            if uri in self.cloud.artifacts.objects:
                continue
            if not self.fails(name, task):
                self.cloud.artifacts.put(uri, json.dumps(result).encode())
            break
        if all(self._is_done(request_uri) for _, request_uri in stages_of(spec)):
            self.end(name)

    def result_of(self, task: JobTask) -> dict[str, Any]:
        """What the machine would leave for the request of a task."""
        return result_of(self.cloud.artifacts.objects[self.wanted[task].request_uri])[1]

    def _is_done(self, request_uri: str) -> bool:
        asked = self.cloud.artifacts.objects.get(request_uri)
        return asked is not None and result_of(asked)[0] in self.cloud.artifacts.objects

    def end(self, name: str, state: str = "JOB_STATE_SUCCEEDED", code: int = 0, message: str = "") -> None:
        """Let a job end now."""
        job = self.cloud.jobs.jobs[name]
        ended = replace(job, state=state, error_code=code, error_message=message, ended=self.cloud.clock.now())
        self.cloud.jobs.jobs[name] = ended

    @property
    def jobs(self) -> list[Job]:
        """All that were paid for, oldest first."""
        return list(self.cloud.jobs.jobs.values())

    @property
    def paid_seconds(self) -> float:
        """What the machines worked, by the service."""
        return sum(job.seconds or 0.0 for job in self.jobs)


def stages_of(spec: dict[str, Any]) -> list[tuple[str, str]]:
    """The tasks of a job, each with the address of its request."""
    args = spec["job_spec"]["worker_pool_specs"][0]["container_spec"]["args"]
    if args[0] != "chain":
        return [(args[0], args[1].removeprefix("--request="))]
    return [tuple(arg.removeprefix("--stage=").split("=", 1)) for arg in args if arg.startswith("--stage=")]
