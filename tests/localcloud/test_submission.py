"""A run's job, submitted by hand: by gcloud and by the SDK, as the texts in its folder say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from retraining.core.jobs.submission import Submission
from tests.localcloud.test_training_jobs import make_job, write_request
from tests.localcloud.test_training_jobs import run_uri as run_uri  # a fixture


@pytest.mark.long
@pytest.mark.parametrize("by", ["gcloud", "sdk"])
def test_a_job_is_submitted_by_hand(api, bucket, run_uri, local_cloud, by: str) -> None:
    """It trains for real: the report is there."""
    if by == "gcloud" and shutil.which("gcloud") is None:
        pytest.skip("gcloud is not installed")
    name = f"by-{by}"
    job = make_job(name, write_request(bucket, name, {"batch_size": 64, "epochs": 1}), [1])
    submission = Submission(job=job, project=local_cloud.project, region=local_cloud.region)
    command, text = {
        "gcloud": (["sh", "-eu"], submission.command),
        "sdk": ([sys.executable, "-"], submission.program),
    }[by]
    environ = {key: value for key, value in {**os.environ, **local_cloud.env}.items() if value}
    subprocess.run(command, input=text, env=environ, text=True, capture_output=True, check=True, timeout=120)
    (mine,) = [each for each in api.jobs.list_custom_jobs(parent=api.parent) if each.labels.get("case") == name]
    ended = api.wait(mine, timeout_s=120)
    assert ended.state.name == "JOB_STATE_SUCCEEDED", ended.error
    assert json.loads(bucket.blob(f"training-jobs/{name}/report.json").download_as_bytes())["epochs_run"] == 1
