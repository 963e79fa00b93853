"""The daily cleaning on the local cloud: listings, generations, versions, jobs; only the scheduler is missing."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.api_core.exceptions import PreconditionFailed
from google.cloud import storage

from retraining.core.documents import KINDS, Maintenance
from retraining.core.naming import vertex
from retraining.hooks.cloud import Cloud
from retraining.hooks.registry import Upload
from retraining.operators.deployment.version_upload import upload_once
from retraining.operators.retention.garbage_collection import (
    CancelUnattendedJobsOperator,
    DeleteGarbageOperator,
    FindGarbageOperator,
)
from tests.support.contracts import EXAMPLES
from tests.support.scenes.served_models import PREBUILT

SCHEMA = "0123456789abcdef"
CHAMPION, OLD_RUN = "20130905t030000z-000000000002", "20130904t030000z-000000000001"


class Shop:
    """One model of a test's own on the local cloud."""

    def __init__(self, cloud: Cloud, bucket: storage.Bucket) -> None:
        self.cloud, self.bucket = cloud, bucket
        self.model = f"clean_{uuid.uuid4().hex[:12]}"

    def put(self, path: str, data: bytes) -> None:
        """Write below the model's folder."""
        self.bucket.blob(f"{self.model}/{path}").upload_from_string(data)

    def paths(self, below: str) -> list[str]:
        """What is there."""
        prefix = f"{self.model}/"
        return [blob.name.removeprefix(prefix) for blob in self.bucket.list_blobs(prefix=prefix + below)]

    def put_span(self, day: str) -> str:
        """A whole span of one shard; gives its folder below the model's."""
        folder, name = f"spans/{SCHEMA}/{day}/{'1' * 32}", "train-00000-of-00001.tfrecord.gz"
        self.put(f"{folder}/{name}", b"x" * 50)
        self.put(f"{folder}/{name}.json", b"{}")
        file = {"part": "train", "shard": 0, "file_name": name, "rows": 1, "bytes": 50, "crc32c": "AAAAAA=="}
        marker = {"kind": "span", "schema_version": 1, "span": day, "fingerprint": "1" * 32, "schema_hash": SCHEMA}
        self.put(f"{folder}/span.json", json.dumps(marker | {"files": [file | {"sha256": "0" * 64}]}).encode())
        return folder

    def put_run(self, run_key: str, *days: str) -> None:
        """A finished run that used these days."""
        values = json.loads((EXAMPLES / "manifest__three_spans.json").read_text())
        used = {"fingerprint": "1" * 32, "rows": 1, "action": "reuse", "because": "same"}
        empty = {"rows": 0, "files": []}
        values |= {"model": self.model, "run_key": run_key, "schema_hash": SCHEMA}
        values |= {"spans": [{"span": day, **used} for day in days]}
        values |= {"splits": {"train": empty, "validation": empty, "test": empty}}
        self.put(f"runs/{run_key}/manifest.json", KINDS["manifest"].parse(json.dumps(values)).to_bytes())
        self.put(f"runs/{run_key}/deployment.json", b"{}")

    def register(self, run_key: str, alias: str) -> None:
        """A version of a run with an alias."""
        artifact_uri = f"gs://{self.bucket.name}/{self.model}/runs/{run_key}/training/model"
        self.put(f"runs/{run_key}/training/model/saved_model.pb", b"not a model")
        labels = {vertex.RUN_LABEL: run_key, vertex.MODEL_LABEL: self.model}
        wanted = Upload(
            display_name=self.model, description="x", artifact_uri=artifact_uri, container_spec=PREBUILT, labels=labels
        )
        self.cloud.registry.merge_aliases(
            upload_once(
                self.cloud, self.model, wanted, f"gs://{self.bucket.name}/{self.model}/runs/{run_key}/upload.json"
            ),
            [alias],
        )


@pytest.fixture
def shop(local_cloud) -> Shop:
    """Two days of examples; one is the champion's, the other an old run's."""
    from google.cloud import bigquery

    bigquery.Client(project=local_cloud.project).create_dataset(local_cloud.dataset, exists_ok=True)
    made = Shop(Cloud(), storage.Client(project=local_cloud.project).bucket(local_cloud.bucket))
    made.put_span("2013-09-01")
    made.put_span("2013-09-02")
    made.put_run(OLD_RUN, "2013-09-01", "2013-09-02")
    made.put_run(CHAMPION, "2013-09-02")
    made.register(CHAMPION, "champion")  # the only version, so it has the alias `default` too
    return made


@pytest.fixture
def clean(shop, make_run) -> Any:
    """Runs the tasks, so many days from now; gives the result and the document."""

    def do(days: int = 40, between: Any = lambda: None) -> tuple[dict[str, Any], Maintenance]:
        form = {"dry_run": False, "min_age_days": 30, "keep_versions": 10, "models": [shop.model]}
        run = make_run(dag_id="maintain", run_id=f"manual__{uuid.uuid4().hex}", params=form)
        run.run_after = datetime.now(UTC) + timedelta(days=days)
        folder = run.execute(FindGarbageOperator(task_id="look"))["cleaning_uri"]
        run.execute(CancelUnattendedJobsOperator(task_id="cancel_jobs", cleaning_uri=folder))
        between()
        result = run.execute(DeleteGarbageOperator(task_id="delete", cleaning_uri=folder))
        return result, Maintenance.parse(shop.cloud.artifacts.read_object(result["maintenance_uri"]) or b"")

    return do


def test_only_what_nobody_refers_to_goes(shop, clean) -> None:
    """Folder, files, sidecars, marker and tombstone; the champion's day and all documents stay."""
    documents = shop.paths("runs/")
    result, done = clean()
    assert shop.paths(f"spans/{SCHEMA}/2013-09-01/") == []
    assert len(shop.paths(f"spans/{SCHEMA}/2013-09-02/")) == 3
    assert shop.paths("runs/") == documents
    (cleaned,) = done.models
    assert (cleaned.looked_at, cleaned.kept["alias"].spans, cleaned.spans[0].outcome) == (2, 1, "deleted")
    assert result["freed_bytes"] >= cleaned.freed_bytes > 50
    _, done = clean()
    assert (done.models[0].looked_at, done.models[0].spans) == (1, ())


def test_what_is_young_stays(shop, clean) -> None:
    """By storage's own clock."""
    clean(days=20)
    assert len(shop.paths("spans/")) == 6


def test_a_span_that_is_exported_again_meanwhile_stays(shop, clean) -> None:
    """Its marker has another generation, and storage refuses to delete it as the one that was listed."""
    uri = f"gs://{shop.bucket.name}/{shop.model}/spans/{SCHEMA}/2013-09-01/{'1' * 32}/span.json"
    listed = shop.cloud.objects.find_object(uri)
    _, done = clean(between=lambda: shop.put_span("2013-09-01"))
    assert done.models[0].spans[0].outcome == "spared"
    assert len(shop.paths(f"spans/{SCHEMA}/2013-09-01/")) == 3
    with pytest.raises(PreconditionFailed):
        shop.bucket.blob(listed.uri.removeprefix(f"gs://{shop.bucket.name}/")).delete(
            if_generation_match=listed.generation
        )


def test_a_job_of_a_run_with_an_outcome_is_cancelled(shop, clean) -> None:
    """One that was lost on the way."""
    program = {
        "image_uri": shop.cloud.settings.trainer_image,
        "command": ["python", "-c", "import time; time.sleep(60)"],
    }
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": program}
    labels = {vertex.MODEL_LABEL: shop.model, vertex.RUN_LABEL: CHAMPION, vertex.KEY_LABEL: uuid.uuid4().hex}
    spec = {"worker_pool_specs": [pool], "scheduling": {"timeout": "60s"}}
    job = shop.cloud.jobs.create({"display_name": "lost", "job_spec": spec, "labels": labels})
    _, done = clean()
    assert [(cleaned.name, cleaned.outcome) for cleaned in done.jobs] == [(job.name, "cancelled")]
    assert shop.cloud.jobs.get(job.name).state in ("JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED")
