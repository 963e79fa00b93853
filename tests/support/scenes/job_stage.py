"""A job service with slow creates and lists that lag, and processes that can be killed or held up at every call.

A process is a wake of a task: a `Reconciler` on hooks of its own over the one `World`. Time passes only between wakes.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from google.api_core.exceptions import DeadlineExceeded, NotFound, ServiceUnavailable

from retraining.core.jobs.job import Job, JobIdentity, JobType
from retraining.core.jobs.requests import JobRequest
from retraining.operators.jobs.reconcile import Reconciler
from tests.support.fakes.clock import START
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.jobs import FakeJobs

JOBS = {
    JobType.CUSTOM: {"display_name": "job", "job_spec": {}, "labels": {"a": "b"}},
    JobType.TUNING: {"display_name": "study", "study_spec": {}, "trial_job_spec": {}, "labels": {"a": "b"}},
    JobType.BATCH: {"display_name": "scores", "input_config": {}, "labels": {"a": "b"}},
}
RUNS_FOR = timedelta(minutes=15)
WAKE_EVERY = timedelta(seconds=60)


class Killed(BaseException):
    """The process is gone."""


class SlowJobs(FakeJobs):
    """The job service.

    Attributes:
        lag: How long after its creation a job is in a list.
        landings: Of the next creates: how long after the caller gave up the job is made; None: never.
    """

    def __init__(self, clock: Any) -> None:
        super().__init__()
        self.clock = clock
        self.lag = timedelta(0)
        self.landings: Iterator[timedelta | None] = iter(())
        self._later: list[tuple[datetime, dict[str, Any]]] = []

    def settle(self) -> None:
        """Make what is late, and let jobs end in their time."""
        for at, spec in [late for late in self._later if late[0] <= self.clock.now()]:
            self._later.remove((at, spec))
            self._make(spec, at)
        for job in self.jobs.values():
            if job.active and job.created is not None and self.clock.now() >= job.created + RUNS_FOR:
                self.end(job.name, seconds=RUNS_FOR.total_seconds())

    def find_jobs(self, labels: Mapping[str, str], types: Collection[JobType] = (JobType.CUSTOM,)) -> list[Job]:
        """As the hook."""
        self.settle()
        found = super().find_jobs(labels, types)
        return sorted(
            (job for job in found if job.created and job.created + self.lag <= self.clock.now()),
            key=lambda job: (job.created, job.name),
        )

    def find_active(self, label: str, types: Collection[JobType] = tuple(JobType)) -> list[Job]:
        """As the hook; the list lags as the other one."""
        self.settle()
        found = super().find_active(label, types)
        return [job for job in found if job.created and job.created + self.lag <= self.clock.now()]

    def find_by_name(self, name: str) -> Job | None:
        """As the hook."""
        self.settle()
        return super().find_by_name(name)

    def get(self, name: str) -> Job:
        """As the hook."""
        self.settle()
        if name not in self.jobs:
            raise NotFound(name)
        return super().get(name)

    def create(self, job: Mapping[str, Any]) -> Job:
        """As the hook."""
        now = self.clock.now()
        for after in self.landings:
            if after is not None:
                self._later.append((now + after, job))
            raise DeadlineExceeded("504") if after else ServiceUnavailable("503")
        return self._make(job, now)

    def _make(self, spec: dict[str, Any], created: datetime) -> Job:
        job = dataclasses.replace(super().create(spec), created=created)
        self.jobs[job.name] = job
        return job

    @property
    def kept(self) -> list[Job]:
        """Those that nobody cancelled, oldest first."""
        left = [job for job in self.jobs.values() if job.state != "JOB_STATE_CANCELLED"]
        return sorted(left, key=lambda job: (job.created, job.name))


@dataclasses.dataclass(kw_only=True)
class World(FakeCloud):
    """What all processes share."""

    type_: JobType = JobType.CUSTOM

    def __post_init__(self) -> None:
        super().__init__()
        self.jobs: SlowJobs = SlowJobs(self.clock)

    def at(self, seconds: float) -> None:
        """Set the time."""
        self.clock.time = START + timedelta(seconds=seconds)

    def wake(self, around: Callable[[str], None] = lambda _: None, *, generation: int = 3, try_number: int = 1) -> Any:
        """One wake of the task; `around` is told of each call before it and, with an exclamation mark, after it."""
        identity = JobIdentity(
            key=f"key-{generation}",
            owner="owner",
            dag_run="run",
            generation=generation,
            retries=2,
            try_number=try_number,
        )
        job_request = JobRequest(custom_job=JOBS[self.type_])
        return Reconciler(Process(self, around), job_request, identity, lambda _: None).poll_job()

    def until_done(self, **whose: int) -> Any:
        """Wakes at their times until there is a result."""
        for _ in range(60):
            if result := self.wake(**whose):
                return result
            self.clock.time += WAKE_EVERY
        raise AssertionError(f"the task never ended: {self.jobs.jobs}")


class Process:
    """The hooks of one process."""

    def __init__(self, world: World, around: Callable[[str], None]) -> None:
        self.settings, self.clock, self.logs = world.settings, world.clock, world.logs
        self.artifacts: Any = _Watched(world.artifacts, around)
        self.jobs: Any = _Watched(world.jobs, around)


class _Watched:
    """A hook each of whose calls is announced."""

    def __init__(self, hook: Any, around: Callable[[str], None]) -> None:
        self._hook, self._around = hook, around

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._around(name)
            result = getattr(self._hook, name)(*args, **kwargs)
            self._around(f"{name}!")
            return result

        return call


def kill_at(number: int, error: type[BaseException] = Killed) -> Callable[[str], None]:
    """End the process at its so many-th announcement; with another error, that call fails, or its answer is lost."""
    left = iter(range(number, -1, -1))

    def around(_: str) -> None:
        if next(left, None) == 0:
            raise error("at this call")

    return around


def announcements(wake: Callable[[Callable[[str], None]], Any]) -> list[str]:
    """What an undisturbed wake announces."""
    heard: list[str] = []
    wake(heard.append)
    return heard


class Held:
    """A process that does one call at a time, when it is told to.

    Args:
        wake: What it does.
    """

    def __init__(self, wake: Callable[[Callable[[str], None]], Any]) -> None:
        self._go, self._at = threading.Semaphore(0), threading.Semaphore(0)
        self.done = False
        self.error: Exception | None = None
        self._wake = wake
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._at.acquire(timeout=30)

    def advance(self, calls: int = 1000) -> None:
        """Let it go on for so many calls, or to its end."""
        for _ in range(calls):
            if self.done:
                break
            self._go.release()
            assert self._at.acquire(timeout=30)
        if self.error:
            raise self.error

    def _run(self) -> None:
        try:
            self._wake(self._hold)
        except Exception as error:  # noqa: BLE001 - raised again where the test can see it
            self.error = error
        self.done = True
        self._at.release()

    def _hold(self, what: str) -> None:
        if not what.endswith("!"):
            self._at.release()
            self._go.acquire(timeout=30)
