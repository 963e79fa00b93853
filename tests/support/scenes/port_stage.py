"""The cloud in memory and the local cloud, with what a test of the ports needs done behind them, done alike."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from retraining.core.jobs.job import Job
from retraining.core.retention.jobs_and_tables import Table
from retraining.hooks.ports import CloudPort
from retraining.hooks.registry import Upload
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.served_models import PREBUILT, save_models, upload_model

LOOKS, LOOK_INTERVAL_S = 1200, 0.05
FOREVER = "import time; time.sleep(60)"
_T = TypeVar("_T")


def until(cloud: CloudPort, look: Callable[[], _T]) -> _T:
    """Return the first true answer; a minute of the cloud's own time without one is a failure."""
    for _ in range(LOOKS):
        if answer := look():
            return answer
        cloud.clock.sleep(LOOK_INTERVAL_S)
    raise AssertionError("it does not come")


def make_job(code: str = "pass", **labels: str) -> dict[str, Any]:
    """A job of one replica that runs a line of Python."""
    image = "us-central1-docker.pkg.dev/local-project/retraining/trainer:test"
    container = {"image_uri": image, "command": ["python", "-c", code]}
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
    spec = {"worker_pool_specs": [pool], "scheduling": {"timeout": "60s"}}
    return {"display_name": "test", "job_spec": spec, "labels": labels}


def make_upload(cloud: CloudPort, folder: str, model: str, run_key: str) -> Upload:
    """What a run registers; its files are there."""
    artifact_uri = f"{folder}/{run_key}/model"
    cloud.artifacts.write_once(f"{artifact_uri}/saved_model.pb", b"not a model")
    return Upload(
        display_name=model,
        description="Promoted.",
        artifact_uri=artifact_uri,
        container_spec=PREBUILT,
        labels={"retraining-run": run_key, "retraining-model": model},
    )


class Stage(Protocol):
    """A cloud, and what happens behind it."""

    cloud: Any  # a CloudPort, of which the tests also ask what must not be there

    def say_and_end(self, job: Job, *lines: str) -> Job:
        """Let a job that prints these lines come to its end."""

    def prepare(self, where: str, rows: list[dict[str, Any]]) -> None:
        """Let a statement of this purpose find these rows."""

    def make_table(self, table_id: str) -> str:
        """Make a table with a column `n` of integers; give its full name."""

    def make_places(self, name: str, location: str) -> tuple[str, str]:
        """Make a bucket and a dataset in a location; give their names."""

    def disturb(self, endpoint_name: str) -> None:
        """Let somebody else change an endpoint."""

    def provide(self, pool_id: str) -> None:
        """Let a pool's machines be there."""

    def let_go(self, pool_id: str) -> None:
        """Let a pool's deletion come to its end."""

    def break_deployments(self) -> None:
        """Let no model come up; what `make_upload` stores is none."""

    def store_model(self, artifact_uri: str, score: float) -> None:
        """Store a model that always says this score."""


class MemoryStage:
    """The cloud in memory: the test itself ends jobs."""

    def __init__(self) -> None:
        self.cloud = FakeCloud()

    def say_and_end(self, job: Job, *lines: str) -> Job:
        """As the protocol."""
        for number, line in enumerate(lines):
            self.cloud.logs.say(job.job_id, line, second=number)
        self.cloud.jobs.end(job.name, seconds=1)
        return self.cloud.jobs.get(job.name)

    def prepare(self, where: str, rows: list[dict[str, Any]]) -> None:
        """As the protocol."""
        self.cloud.warehouse.rows[where] = rows

    def make_table(self, table_id: str) -> str:
        """As the protocol."""
        settings = self.cloud.settings
        name = f"{settings.project}.{settings.dataset}.{table_id}"
        self.cloud.warehouse.schemas[name] = [{"name": "n", "type": "INTEGER", "mode": "NULLABLE", "fields": []}]
        self.cloud.warehouse.tables.append(Table(name=name, expires=None))
        return name

    def make_places(self, name: str, location: str) -> tuple[str, str]:
        """As the protocol."""
        self.cloud.artifacts.locations[name] = (location,)
        self.cloud.warehouse.locations[name] = location
        return name, name

    def disturb(self, endpoint_name: str) -> None:
        """As the protocol."""
        self.cloud.endpoints.touch(endpoint_name)

    def provide(self, pool_id: str) -> None:
        """As the protocol."""
        self.cloud.machine_pools.run(pool_id)

    def let_go(self, pool_id: str) -> None:
        """As the protocol."""
        self.cloud.machine_pools.vanish(pool_id)

    def break_deployments(self) -> None:
        """As the protocol."""
        self.cloud.endpoints.error = "the model does not load"

    def store_model(self, artifact_uri: str, score: float) -> None:
        """As the protocol."""
        del artifact_uri
        self.cloud.endpoints.predictions = [score]


class LocalStage:
    """The local cloud: jobs end because their program does.

    Args:
        cloud: The hooks.
    """

    def __init__(self, cloud: Any) -> None:
        self.cloud = cloud

    def say_and_end(self, job: Job, *lines: str) -> Job:
        """As the protocol; the job was made to print them."""
        del lines
        until(self.cloud, lambda: not self.cloud.jobs.get(job.name).active)
        ended: Job = self.cloud.jobs.get(job.name)
        return ended

    def prepare(self, where: str, rows: list[dict[str, Any]]) -> None:
        """As the protocol: the statement itself finds them."""

    def make_table(self, table_id: str) -> str:
        """As the protocol."""
        from google.cloud import bigquery

        settings = self.cloud.settings
        name = f"{settings.project}.{settings.dataset}.{table_id}"
        schema = [bigquery.SchemaField("n", "INTEGER")]
        bigquery.Client(project=settings.project).create_table(bigquery.Table(name, schema=schema))
        return name

    def make_places(self, name: str, location: str) -> tuple[str, str]:
        """As the protocol."""
        from google.cloud import bigquery, storage

        project = self.cloud.settings.project
        made = (name.replace("_", "-"), name.replace("-", "_"))
        storage.Client(project=project).create_bucket(made[0], location=location)
        bigquery.Client(project=project, location=location).create_dataset(made[1])
        return made

    def disturb(self, endpoint_name: str) -> None:
        """As the protocol."""
        from google.cloud import aiplatform_v1

        session = self.cloud.session
        client = aiplatform_v1.EndpointServiceClient(
            credentials=session.credentials, client_options=session.client_options
        )
        changed = aiplatform_v1.Endpoint(name=endpoint_name, display_name="changed")
        client.update_endpoint(endpoint=changed, update_mask={"paths": ["display_name"]})

    def provide(self, pool_id: str) -> None:
        """As the protocol: they come by themselves."""

    def let_go(self, pool_id: str) -> None:
        """As the protocol: it comes by itself."""

    def break_deployments(self) -> None:
        """As the protocol: its file is no model."""

    def store_model(self, artifact_uri: str, score: float) -> None:
        """As the protocol."""
        from google.cloud import storage

        bucket, _, folder = artifact_uri.removeprefix("gs://").partition("/")
        with tempfile.TemporaryDirectory() as path:
            save_models(Path(path), score)
            upload_model(storage.Client().bucket(bucket), folder, Path(path) / str(score))
