"""The real export job against the local cloud: a run table, requests for it, and the process that carries them out.

The job runs as on Vertex AI, `python -m trainer.task export --request gs://…` in the trainer's own environment; only
its hosts come from the environment.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery, storage

from tests.support.contracts import EXAMPLES
from tests.support.job_log import messages

REPOSITORY_PATH = Path(__file__).resolve().parents[3]
TRAINER_PYTHON = REPOSITORY_PATH / ".venv" / "trainer" / "bin" / "python"
EXAMPLE_PATH = EXAMPLES / "export_request__two_new_spans.json"
DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
ROWS = 3_000
SCHEMA = [
    {"name": "parcel_id", "type": "STRING", "mode": "NULLABLE"},
    {"name": "carrier", "type": "STRING", "mode": "NULLABLE"},
    {"name": "distance", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "weight", "type": "FLOAT", "mode": "NULLABLE"},
    {"name": "late", "type": "INTEGER", "mode": "NULLABLE"},
]
# As `plugins/retraining/package_data/templates/snapshot.sql.j2` makes them; two train shards a day.
RUN_TABLE = """
CREATE OR REPLACE TABLE {table} CLUSTER BY span, part, shard AS
WITH examples AS (
  SELECT
    CONCAT('parcel-', CAST(i AS STRING)) AS parcel_id,
    IF(MOD(i, 11) = 0, NULL, CONCAT('carrier ', CAST(MOD(i, 7) AS STRING))) AS carrier,
    MOD(i * 7919, 3001) AS distance,
    i / 7 AS weight,
    MOD(i, 2) AS late,
    DATE_ADD(DATE '2024-01-01', INTERVAL MOD(i, 3) DAY) AS span,
    IF(MOD(i, 10) = 4, 'validation', 'train') AS part,
    IF(MOD(i, 10) = 4, 0, MOD(DIV(i, 10), 2)) AS shard
  FROM UNNEST(GENERATE_ARRAY(0, {rows} - 1)) AS i
)
SELECT examples.*, FARM_FINGERPRINT(TO_JSON_STRING(examples)) AS row_hash FROM examples
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ended:
    """A process that ended.

    Attributes:
        code: 0 done, 2 trying again cannot help, 1 anything else.
        message: The last line of standard error: what happened, for the person who looks at the job.
        out: Standard output: the job's log.
        error: Standard error.
    """

    code: int
    message: str
    out: str
    error: str


@dataclasses.dataclass(kw_only=True)
class ExportJob:
    """One run's export: its request, and what lies in its span store.

    Attributes:
        bucket: The local cloud's.
        folder: The run's folder in it, with `spans/` and the documents.
        request: The export request as JSON; change it before `run`.
        processes: Those still running, ended with the test.
    """

    bucket: storage.Bucket
    folder: str
    request: dict[str, Any]
    processes: list[subprocess.Popen[str]] = dataclasses.field(default_factory=list)

    def uri(self, name: str = "") -> str:
        """Return an address below the run's folder."""
        return f"gs://{self.bucket.name}/{self.folder}/{name}"

    def run(self, *, env: Mapping[str, str] | None = None, prefix: Sequence[str] = ()) -> Ended:
        """Carry the request out, to the end.

        Args:
            env: Laid over this process's environment.
            prefix: A command that runs the job (`prlimit …`).
        """
        process = self.start(env=env, prefix=prefix)
        out, error = process.communicate(timeout=300)
        lines = [line for line in messages(error) if line.strip()]
        return Ended(code=process.returncode, message=lines[-1] if lines else "", out=out, error=error)

    def start(self, *, env: Mapping[str, str] | None = None, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Begin to carry it out."""
        self.bucket.blob(f"{self.folder}/request.json").upload_from_string(json.dumps(self.request))
        command = [*prefix, TRAINER_PYTHON, "-m", "trainer.task", "export", "--request", self.uri("request.json")]
        environ = {**os.environ, "PYTHONPATH": str(REPOSITORY_PATH), **(env or {})}
        process = subprocess.Popen(
            [str(part) for part in command],
            env=environ,
            cwd=REPOSITORY_PATH,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    def names(self, part: str = "") -> list[str]:
        """List what the span store holds, as paths below it; only those that contain `part`."""
        prefix = f"{self.folder}/spans/"
        found = (blob.name.removeprefix(prefix) for blob in self.bucket.list_blobs(prefix=prefix))
        return sorted(name for name in found if part in name)

    def shards(self) -> dict[str, bytes]:
        """Return the shard files' bytes by path."""
        return {name: self.read(name) for name in self.names() if name.endswith((".tfrecord", ".tfrecord.gz"))}

    def read(self, name: str) -> bytes:
        """Return an object of the span store."""
        content: bytes = self.bucket.blob(f"{self.folder}/spans/{name}").download_as_bytes()
        return content

    def write(self, name: str, content: bytes) -> None:
        """Put an object into the span store, over an older one."""
        self.bucket.blob(f"{self.folder}/spans/{name}").upload_from_string(content)

    def generations(self) -> dict[str, int]:
        """Return the generation of every object of the span store: it changes when one is written again."""
        found = self.bucket.list_blobs(prefix=f"{self.folder}/spans/")
        return {blob.name.removeprefix(f"{self.folder}/spans/"): blob.generation for blob in found}

    def manifest(self) -> dict[str, Any] | None:
        """Return the run's manifest; None while there is none."""
        blob = self.bucket.blob(f"{self.folder}/manifest.json")
        if not blob.exists():
            return None
        manifest: dict[str, Any] = json.loads(blob.download_as_bytes())
        return manifest


@pytest.fixture(scope="session")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with a dataset for run tables."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("exporting", exists_ok=True)
    return made


@pytest.fixture(scope="session")
def run_table(client) -> str:
    """Full name of a run table of ROWS rows on DAYS."""
    client.query_and_wait(RUN_TABLE.format(table="exporting.parcels", rows=ROWS))
    return f"{client.project}.exporting.parcels"


@pytest.fixture(scope="session")
def spans(client, run_table) -> list[dict[str, Any]]:
    """The request's spans for the run table: every day is new."""
    if not TRAINER_PYTHON.exists():
        pytest.skip("the trainer's environment is missing: run `make setup`")
    counted = client.query_and_wait(
        f"SELECT span, part, COUNT(*) AS row_count, MAX(shard) + 1 AS shards FROM `{run_table}`"
        " GROUP BY span, part ORDER BY span, part"
    )
    rows = [(row.span.isoformat(), row.part, row.row_count, row.shards) for row in counted]
    return [
        {
            "span": day,
            "fingerprint": f"{index:032x}",
            "parts": [
                {"part": part, "rows": count, "shards": shards} for span, part, count, shards in rows if span == day
            ],
            "action": "export",
            "because": "new span",
        }
        for index, day in enumerate(DAYS)
    ]


@pytest.fixture
def make_job(local_cloud, run_table, spans):
    """Make export jobs of the run table, each with a span store of its own."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    jobs: list[ExportJob] = []

    def make(**changes: Any) -> ExportJob:
        folder = f"exporting/{uuid.uuid4().hex}"
        job = ExportJob(bucket=bucket, folder=folder, request={})
        job.request = {
            **json.loads(EXAMPLE_PATH.read_text()),
            "schema": SCHEMA,
            "spans": json.loads(json.dumps(spans)),
            "spans_uri": job.uri("spans"),
            "manifest_uri": job.uri("manifest.json"),
            "table": run_table,
            "test_start": DAYS[-1],
            **changes,
        }
        jobs.append(job)
        return job

    yield make
    for job in jobs:
        for process in job.processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


@pytest.fixture
def job(make_job) -> ExportJob:
    """An export job of the run table."""
    made: ExportJob = make_job()
    return made


@pytest.fixture(scope="session")
def expected(local_cloud, run_table, spans) -> dict[str, bytes]:
    """The shards that an undisturbed export writes."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    calm = ExportJob(bucket=bucket, folder=f"exporting/calm-{uuid.uuid4().hex}", request={})
    calm.request = {
        **json.loads(EXAMPLE_PATH.read_text()),
        "schema": SCHEMA,
        "spans": spans,
        "spans_uri": calm.uri("spans"),
        "manifest_uri": calm.uri("manifest.json"),
        "table": run_table,
        "test_start": DAYS[-1],
    }
    ended = calm.run()
    assert ended.code == 0, ended.error
    return calm.shards()
