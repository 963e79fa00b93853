"""A night with one job in the local cloud: the same documents as with three, on a machine that starts once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1

from retraining.core.naming import vertex
from retraining.core.spec.files import load_spec
from retraining.hooks.cloud import Cloud
from retraining.hooks.session import call
from tests.support.scenes.data_tasks import make_source
from tests.support.scenes.whole_run import run_whole

SPEC = """
name: {name}
description: Will it be late?
schedule: null
jobs: {jobs}
data:
  query: chained/examples.sql
  key: id
  event_time: seen_at
  window_days: 10
  test_days: 2
  days: [2013-11-01, 2013-11-20]
  checks: {{min_rows: 300}}
features:
  - {{name: weight, kind: numeric}}
label: {{name: late, kind: binary}}
training: {{model: linear, seed: 7}}
evaluation: {{metric: log_loss, max_value: 0.9}}
deployment: null
"""
SOURCE = """
CREATE OR REPLACE TABLE chained_source.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-01 00:01:00+00', INTERVAL 24 * i MINUTE) AS seen_at,
  MOD(i * 104729, 1000) / 10 AS weight,
  IF(MOD(i * 104729, 1000) > 500, 1, 0) AS late
FROM UNNEST(GENERATE_ARRAY(0, 1199)) AS i
"""
QUERY = (
    "SELECT * FROM chained_source.parcels WHERE seen_at >= @window_start AND seen_at < @window_end AND seen_at < @as_of"
)
PARTS = {"export", "train", "evaluate"}

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def folder(local_cloud, include: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the models."""
    make_source(local_cloud, "chained_source", SOURCE)
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")
    (include / "sql" / "chained").mkdir(parents=True)
    (include / "sql" / "chained" / "examples.sql").write_text(QUERY)
    for jobs in ("chained", "separate"):
        (include / "models" / f"{jobs}.yaml").write_text(SPEC.format(name=jobs, jobs=jobs))
    return include


def jobs_of(model: str) -> list[aiplatform_v1.CustomJob]:
    """The custom jobs of a model, oldest first."""
    cloud = Cloud()
    place = f"projects/{cloud.settings.project}/locations/{cloud.settings.region}"
    client: aiplatform_v1.JobServiceClient = cloud.jobs._client
    found = call(lambda: list(client.list_custom_jobs(parent=place)))
    return sorted((job for job in found if job.labels.get(vertex.MODEL_LABEL) == model), key=lambda job: job.name)


def comparable(documents: dict[str, Any]) -> dict[str, Any]:
    """What two runs of equal models on equal rows share."""
    manifest, report, evaluation = (documents[kind] for kind in ("manifest", "report", "evaluation"))
    return {
        "rows": {name: split["rows"] for name, split in manifest["splits"].items()},
        "epochs": report["epochs_run"],
        "signature": report["signature"],
        "metrics": evaluation["challenger"]["metrics"],
        "verdict": documents["decision"]["verdict"],
    }


def test_one_job_leaves_what_three_leave(folder: Path, make_run) -> None:
    found = {}
    for model in ("chained", "separate"):
        spec = load_spec(folder / "models" / f"{model}.yaml")
        run = make_run(run_id=f"manual__{model}")
        found[model] = run_whole(spec, run)
        tasks = {task["task"]: task for task in found[model]["timings"]["tasks"] if task["task"] in PARTS}
        assert all(task["seconds"] > 0 and not task["reused"] for task in tasks.values()), tasks
        paid = [job.end_time.timestamp() - job.start_time.timestamp() for job in jobs_of(model)]
        told = sum(task["seconds"] for task in tasks.values())
        assert told == pytest.approx(sum(paid), abs=5), "the end of its last process is no task's"
    assert comparable(found["chained"]) == comparable(found["separate"])
    assert len(jobs_of("separate")) == 3
    (job,) = jobs_of("chained")
    assert job.state == aiplatform_v1.JobState.JOB_STATE_SUCCEEDED
