"""A world for the daily cleaning: three days of examples in a bucket in memory, runs that used them, and its tasks."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from retraining.core.documents import KINDS, Maintenance, MaintenancePlan
from retraining.operators.retention.garbage_collection import (
    CancelUnattendedJobsOperator,
    DeleteGarbageOperator,
    FindGarbageOperator,
)
from tests.support.contracts import EXAMPLES
from tests.support.fakes.bucket import FakeBucket
from tests.support.fakes.cloud import FakeCloud

NOW = datetime(2013, 12, 24, 12, 30, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=90)
MODEL, OTHER = "late", "later"
SCHEMA = "0123456789abcdef"
DAYS = ("2013-09-01", "2013-09-02", "2013-09-03")
OLD_RUN, CHAMPION, RECENT = (
    "20130904t030000z-000000000001",
    "20130905t030000z-000000000002",
    "20131223t030000z-000000000003",
)
FORM = {"dry_run": True, "min_age_days": 30, "keep_versions": 10, "models": [MODEL]}


@dataclasses.dataclass
class Scene:
    """A cloud, and one run of the DAG on it."""

    cloud: FakeCloud
    run: Any
    bucket: FakeBucket

    def look(self) -> dict[str, Any]:
        """First task."""
        return self.run.execute(FindGarbageOperator(task_id="look", cloud=self.cloud.connect))

    def cancel(self) -> list[dict[str, Any]]:
        """Second."""
        return self._execute(CancelUnattendedJobsOperator(task_id="cancel_jobs", cloud=self.cloud.connect))

    def delete(self) -> dict[str, Any]:
        """Third."""
        return self._execute(DeleteGarbageOperator(task_id="delete", cloud=self.cloud.connect))

    def clean(self) -> dict[str, Any]:
        """All of them."""
        self.look()
        self.cancel()
        return self.delete()

    def plan(self) -> MaintenancePlan:
        """What it meant to do."""
        return self._document(MaintenancePlan)

    def done(self) -> Maintenance:
        """What it did."""
        return self._document(Maintenance)

    def _execute(self, task: Any) -> Any:
        task.cleaning_uri = self.run.xcoms["look", "return_value"]["cleaning_uri"]
        return self.run.execute(task)

    def _document(self, kind: Any) -> Any:
        folder = self.run.xcoms["look", "return_value"]["cleaning_uri"]
        return kind.parse(self.bucket.objects[f"{folder}/{kind.kind_name()}.json"])


STORE, EARLIER_STORE = "gs://bucket/jobs/{}/spans", "gs://bucket/{}/spans"
"""Where spans lie, and where earlier releases had them."""


def folder(day: str, fingerprint: str = "1", model: str = MODEL) -> str:
    """A span's."""
    return f"{STORE.format(model)}/{SCHEMA}/{day}/{fingerprint * 32}"


def put_span(bucket: FakeBucket, day: str, fingerprint: str = "1", model: str = MODEL, *, shards: int = 2) -> str:
    """Store a whole span: files, sidecars, and the marker last."""
    uri, part = folder(day, fingerprint, model), "golden" if day == "golden" else "train"
    files = []
    for shard in range(shards):
        name = f"{part}-{shard:05d}-of-{shards:05d}.tfrecord.gz"
        bucket.put(f"{uri}/{name}", b"x" * 50)
        bucket.put(f"{uri}/{name}.json", b"{}")
        digests = {"crc32c": "AAAAAA==", "sha256": "0" * 64}
        files.append({"part": part, "shard": shard, "file_name": name, "rows": 1, "bytes": 50, **digests})
    values = {"span": day, "fingerprint": fingerprint * 32, "schema_hash": SCHEMA, "files": files}
    bucket.put(
        f"{uri}/span.json", KINDS["span"].parse(json.dumps({"kind": "span", "schema_version": 1, **values})).to_bytes()
    )
    return uri


def example(name: str, **changes: Any) -> bytes:
    """A contract example with changes."""
    values = json.loads((EXAMPLES / f"{name}.json").read_text()) | changes
    return KINDS[values["kind"]].parse(json.dumps(values)).to_bytes()


def put_plan(bucket: FakeBucket, run_key: str, model: str = MODEL, *, start: str = "2013-09-01") -> str:
    """Store a run's plan, whose window begins on a day and ends ten later; gives the run's folder."""
    uri = f"gs://bucket/{model}/runs/{run_key}"
    first = datetime.fromisoformat(start).date()
    days = {"start": 0, "test_start": 8, "end": 10}
    window = {name: (first + timedelta(days=offset)).isoformat() for name, offset in days.items()}
    bucket.put(f"{uri}/plan.json", example("plan__scheduled", run_key=run_key, window=window))
    return uri


def put_run(
    bucket: FakeBucket, run_key: str, spans: dict[str, str], model: str = MODEL, *, golden: str | None = None
) -> None:
    """Store a finished run that used some spans."""
    uri = put_plan(bucket, run_key, model)
    reused = {"rows": 1, "action": "reuse", "because": "same fingerprint as stored"}
    used = [{"span": day, "fingerprint": fingerprint * 32} for day, fingerprint in spans.items()]
    work = golden and {"table": "p.d.t", "fingerprint": golden * 32, "shards": 1, **reused}
    taken = [{**span, "parts": [], "action": "reuse", "because": "same fingerprint as stored"} for span in used]
    bucket.put(
        f"{uri}/snapshot.json",
        example(
            "snapshot__three_new_spans",
            model=model,
            run_key=run_key,
            schema_hash=SCHEMA,
            spans_uri=f"{STORE.format(model)}/{SCHEMA}",
            spans=taken,
            golden=work,
        ),
    )
    empty = {"rows": 0, "files": []}
    files = [
        {
            "uri": f"{folder(day, fingerprint, model)}/train-00000-of-00002.tfrecord.gz",
            "span": day,
            "part": "train",
            "rows": 1,
            "bytes": 50,
            "crc32c": "AAAAAA==",
            "sha256": "0" * 64,
        }
        for day, fingerprint in spans.items()
    ]
    bucket.put(
        f"{uri}/manifest.json",
        example(
            "manifest__three_spans",
            model=model,
            run_key=run_key,
            schema_hash=SCHEMA,
            spans=[{**span, **reused} for span in used],
            splits={"train": {"rows": len(files), "files": files}, "validation": empty, "test": empty},
        ),
    )
    bucket.put(f"{uri}/deployment.json", example("deployment__nothing_changed", model=model, run_key=run_key))


def make_world() -> tuple[FakeCloud, FakeBucket]:
    """The same world each time: of three days the first is nobody's any more.

    The second is the champion's, the third last night's; an old run used all of them.
    """
    cloud = FakeCloud()
    bucket = FakeBucket(now=LONG_AGO)
    cloud.artifacts = cloud.objects = bucket
    bucket.put("gs://bucket/environment.txt", b"bucket")
    for day in DAYS:
        put_span(bucket, day)
    put_run(bucket, OLD_RUN, dict.fromkeys(DAYS, "1"))
    put_run(bucket, CHAMPION, {DAYS[1]: "1"})
    add_version(cloud, CHAMPION, "champion")
    bucket.now = NOW - timedelta(days=1)
    put_run(bucket, RECENT, {DAYS[2]: "1"})
    bucket.now = NOW + timedelta(minutes=1)
    return cloud, bucket


def add_version(cloud: FakeCloud, run_key: str, *aliases: str) -> None:
    """A version of the model."""
    cloud.registry.add(run_key, *aliases, model_name=f"projects/p/locations/r/models/{MODEL}")


def make_daily_run(make_run: Any, **changes: Any) -> Any:
    """A run by the schedule."""
    run = make_run(
        **{"dag_id": "maintain", "run_id": "scheduled__1", "run_type": "scheduled", "params": FORM, **changes}
    )
    run.run_after = NOW
    return run


def whole(bucket: FakeBucket, uri: str) -> bool:
    """Whether a span has its marker and every file that it lists."""
    marker = bucket.objects.get(f"{uri}/span.json")
    return marker is not None and all(
        f"{uri}/{file['file_name']}" in bucket.objects for file in json.loads(marker)["files"]
    )


def no_half_span(bucket: FakeBucket) -> None:
    """No span has a marker and lacks a file."""
    for uri in [uri.removesuffix("/span.json") for uri in bucket.objects if uri.endswith("/span.json")]:
        assert whole(bucket, uri), uri
