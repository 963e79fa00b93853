"""A night with one job in the local cloud: the same documents as with three, on a machine that starts once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1

from retraining.core.naming import vertex
from retraining.hooks.cloud import Cloud
from retraining.hooks.session import call
from tests.support.scenes.parcels import make_parcels
from tests.support.scenes.whole_run import run_whole

PARTS = {"export", "train", "evaluate"}

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


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


def test_one_job_leaves_what_three_leave(local_cloud, include: Path, make_run, monkeypatch) -> None:
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")
    found = {}
    for model in ("chained", "separate"):
        spec = make_parcels(local_cloud, include, model, f"jobs: {model}")
        found[model] = run_whole(spec, make_run(run_id=f"manual__{model}"))
        tasks = {task["task"]: task for task in found[model]["timings"]["tasks"] if task["task"] in PARTS}
        assert all(task["seconds"] > 0 and not task["reused"] for task in tasks.values()), tasks
        paid = [job.end_time.timestamp() - job.start_time.timestamp() for job in jobs_of(model)]
        told = sum(task["seconds"] for task in tasks.values())
        assert told == pytest.approx(sum(paid), abs=5), "the end of its last process is no task's"
    assert comparable(found["chained"]) == comparable(found["separate"])
    assert len(jobs_of("separate")) == 3
    (job,) = jobs_of("chained")
    assert job.state == aiplatform_v1.JobState.JOB_STATE_SUCCEEDED
