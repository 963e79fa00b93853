"""Google Cloud in memory, for the operators' decisions: documents, jobs with states the test sets, log lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from retraining.core.data.span_store import StoredObject
from retraining.core.naming.environments import Environment
from retraining.hooks.logs import Cursor, Line
from retraining.hooks.objects import Deleted
from retraining.hooks.vertex_jobs import Job, JobType
from tests.support.fakes.clock import START, FakeClock
from tests.support.fakes.serving import FakeEndpoints, FakeModelFiles, FakeRegistry
from tests.support.fakes.settings import ENVIRONMENT, SETTINGS
from tests.support.fakes.warehouse import FakeWarehouse


class FakeArtifacts:
    """A bucket."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.generations: dict[str, int] = {}

    def read(self, uri: str) -> bytes | None:
        """As the hook."""
        return self.objects.get(uri)

    def exists(self, uri: str) -> bool:
        """As the hook."""
        return uri in self.objects

    def read_many(self, uris: list[str]) -> list[bytes]:
        """As the hook."""
        return [self.objects[uri] for uri in uris]

    def read_some(self, uris: list[str]) -> dict[str, bytes]:
        """As the hook."""
        return {uri: self.objects[uri] for uri in uris if uri in self.objects}

    def existing(self, uris: list[str]) -> list[str]:
        """As the hook."""
        return [uri for uri in uris if uri in self.objects]

    def list_folders(self, folder_uri: str, *, end: str = "") -> list[str]:
        """As the hook."""
        inside = (uri[len(folder_uri) + 1 :] for uri in self.objects if uri.startswith(folder_uri + "/"))
        names = sorted({path.split("/")[0] for path in inside if "/" in path})
        return [f"{folder_uri}/{name}" for name in names if not end or name < end]

    def write_once(self, uri: str, data: bytes, content_type: str = "application/json") -> bytes:
        """As the hook."""
        del content_type
        return self.objects.setdefault(uri, data)

    def overwrite(self, uri: str, data: bytes, content_type: str) -> None:
        """As the hook."""
        del content_type
        self.objects[uri] = data

    def read_generation(self, uri: str) -> tuple[bytes, int]:
        """As the hook."""
        return self.objects.get(uri, b""), self.generations.get(uri, 0)

    def write_if(self, uri: str, data: bytes, generation: int) -> int | None:
        """As the hook: compare and set."""
        if generation != self.generations.get(uri, 0):
            return None
        self.objects[uri] = data
        self.generations[uri] = generation + 1
        return generation + 1

    def list_uris(self, folder_uri: str, *, start: str = "", end: str = "", suffix: str = "") -> list[str]:
        """As the hook."""
        paths = sorted(uri[len(folder_uri) + 1 :] for uri in self.objects if uri.startswith(folder_uri + "/"))
        return [f"{folder_uri}/{p}" for p in paths if p >= start and (not end or p < end) and p.endswith(suffix)]


class FakeObjects:
    """What lies in the artifacts, as listings have it."""

    def __init__(self, artifacts: FakeArtifacts) -> None:
        self._objects = artifacts.objects

    def walk(self, folder_uri: str) -> Iterator[StoredObject]:
        """As the hook."""
        for uri in sorted(self._objects):
            if uri.startswith(folder_uri + "/"):
                created = datetime(2013, 11, 21, tzinfo=UTC)
                yield StoredObject(uri=uri, bytes=len(self._objects[uri]), generation=1, created=created)

    def find(self, uri: str) -> StoredObject | None:
        """As the hook."""
        if uri not in self._objects:
            return None
        created = datetime(2013, 11, 21, tzinfo=UTC)
        return StoredObject(uri=uri, bytes=len(self._objects[uri]), generation=1, created=created)

    def delete(self, objects: Iterable[StoredObject]) -> Iterator[Deleted]:
        """As the hook."""
        for item in objects:
            del self._objects[item.uri]
            yield Deleted(object=item, gone=True)


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

    def find(self, labels: Mapping[str, str], types: Collection[JobType] = (JobType.CUSTOM,)) -> list[Job]:
        """As the hook."""
        return [
            job
            for job in self.jobs.values()
            if labels.items() <= job.labels.items()
            and JobType.of_name(job.name) in types
            and self.environment.owns(job.labels, job.folder_uri)
        ]

    def create(self, custom_job: dict[str, Any]) -> Job:
        """As the hook."""
        self.before_create()
        number = len(self.jobs) + 1
        kind = "hyperparameterTuningJobs" if JobType.of(custom_job) is JobType.TUNING else "customJobs"
        job = Job(
            name=f"projects/p/locations/r/{kind}/{number}",
            state="JOB_STATE_RUNNING",
            labels={**custom_job["labels"], **self.environment.labels},
            created=START + timedelta(seconds=number),
            spot=custom_job.get("job_spec", {}).get("scheduling", {}).get("strategy") == "SPOT",
            error_code=0,
            error_message="",
        )
        self.jobs[job.name] = job
        self.specs.append(custom_job)
        self.after_create()
        return job

    def get(self, name: str) -> Job:
        """As the hook."""
        self.on_get(name)
        return self.jobs[name]

    def find_active(self, label: str) -> list[Job]:
        """As the hook."""
        ours = self.environment
        listed = (job for job in self.jobs.values() if ours.owns(job.labels, job.folder_uri))
        return [job for job in listed if label in job.labels and job.active]

    def find_by_name(self, name: str) -> Job | None:
        """As the hook."""
        return self.jobs.get(name)

    def trials(self, name: str) -> list[dict[str, Any]]:
        """As the hook."""
        return self.reported[name]

    def cancel(self, name: str) -> None:
        """As the hook."""
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
        times = {} if seconds is None else {"started": START, "ended": START + timedelta(seconds=seconds)}
        changes: dict[str, Any] = {"state": state, "error_code": code, "error_message": message, **times}
        self.jobs[name] = dataclasses.replace(self.jobs[name], **changes)

    @property
    def newest(self) -> str:
        """Name of the job created last."""
        return list(self.jobs)[-1]


class FakeLogs:
    """Log lines by job id. `say` may be told a time earlier than lines that were read already."""

    def __init__(self) -> None:
        self.entries: dict[str, list[tuple[str, Line]]] = {}

    def say(self, job_id: str, text: str, *, second: float) -> None:
        """Add a line."""
        entries = self.entries.setdefault(job_id, [])
        time = START + timedelta(seconds=second)
        entries.append((str(len(entries)), Line(time=time, severity="INFO", task="workerpool0-0", text=text)))

    def read_new(self, job_id: str, cursor: Cursor) -> list[Line]:
        """As the hook, with the product's own cursor."""
        since = cursor.since()
        found = sorted(self.entries.get(job_id, []), key=lambda entry: entry[1].time)
        return [line for key, line in found if (since is None or line.time >= since) and cursor.take(key, line.time)]


class FakeCloud:
    """The hooks; `connect` is what operators are given."""

    def __init__(self) -> None:
        self.registry = FakeRegistry()
        self.endpoints = FakeEndpoints()
        self.model_files = FakeModelFiles()
        self.warehouse = FakeWarehouse()
        self.settings = SETTINGS
        self.environment = ENVIRONMENT
        self.clock = FakeClock()
        self.artifacts = FakeArtifacts()
        self.objects = FakeObjects(self.artifacts)
        self.jobs = FakeJobs()
        self.logs = FakeLogs()

    def connect(self) -> FakeCloud:
        """Return this very cloud at each poke."""
        return self
