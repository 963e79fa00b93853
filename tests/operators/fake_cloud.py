"""Google Cloud in memory, for the operators' decisions: documents, jobs with states the test sets, log lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from retraining.core.settings import Settings
from retraining.hooks.logs import Cursor, Line
from retraining.hooks.vertex_jobs import Job

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings(
    project="local-project",
    region="us-central1",
    bucket="bucket",
    dataset="retraining",
    trainer_image="us-central1-docker.pkg.dev/local-project/retraining/trainer:1",
    serving_image="us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest",
    gcp_conn_id="google_cloud_default",
    service_account=None,
    wake_interval_s=60,
    watch_s=0,
)


class FakeArtifacts:
    """A bucket."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def read(self, uri: str) -> bytes | None:
        """As the hook."""
        return self.objects.get(uri)

    def read_many(self, uris: list[str]) -> list[bytes]:
        """As the hook."""
        return [self.objects[uri] for uri in uris]

    def write_once(self, uri: str, data: bytes, content_type: str = "application/json") -> bytes:
        """As the hook."""
        del content_type
        return self.objects.setdefault(uri, data)

    def overwrite(self, uri: str, data: bytes, content_type: str) -> None:
        """As the hook."""
        del content_type
        self.objects[uri] = data

    def list_uris(self, folder_uri: str, *, start: str = "", end: str = "", suffix: str = "") -> list[str]:
        """As the hook."""
        paths = sorted(uri[len(folder_uri) + 1 :] for uri in self.objects if uri.startswith(folder_uri + "/"))
        return [f"{folder_uri}/{p}" for p in paths if p >= start and (not end or p < end) and p.endswith(suffix)]


class FakeJobs:
    """The job service. `on_create` may raise before or after the job is there."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.specs: list[dict[str, Any]] = []
        self.cancelled: list[str] = []
        self.before_create: Callable[[], None] = lambda: None
        self.after_create: Callable[[], None] = lambda: None
        self.on_get: Callable[[str], None] = lambda _: None

    def find(self, labels: Mapping[str, str]) -> list[Job]:
        """As the hook."""
        return [job for job in self.jobs.values() if labels.items() <= job.labels.items()]

    def create(self, custom_job: dict[str, Any]) -> Job:
        """As the hook."""
        self.before_create()
        number = len(self.jobs) + 1
        job = Job(
            name=f"projects/p/locations/r/customJobs/{number}",
            state="JOB_STATE_RUNNING",
            labels=dict(custom_job["labels"]),
            created=START + timedelta(seconds=number),
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

    def cancel(self, name: str) -> None:
        """As the hook."""
        self.cancelled.append(name)
        self.end(name, "JOB_STATE_CANCELLED", 1, "CANCELED")

    def end(self, name: str, state: str = "JOB_STATE_SUCCEEDED", code: int = 0, message: str = "") -> None:
        """Let a job end."""
        self.jobs[name] = dataclasses.replace(self.jobs[name], state=state, error_code=code, error_message=message)

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
    """The hooks."""

    def __init__(self) -> None:
        self.settings = SETTINGS
        self.artifacts = FakeArtifacts()
        self.jobs = FakeJobs()
        self.logs = FakeLogs()
