"""What a training brings along: the trainer itself as a source distribution, and the packages of a model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from packages.localcloud.tests.vertex.conftest import REPOSITORY_PATH, TRAINER_IMAGE, TRAINER_PYTHON
from packages.localcloud.tests.vertex.jobs.test_jobs import read_log
from tests.localcloud.test_training_jobs import run_uri as run_uri  # a fixture
from tests.localcloud.test_training_jobs import write_request
from tests.support.wheels import write_wheel

PREBUILT = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-15.py310:latest"
TRAINING = {"batch_size": 64, "epochs": 1}


@pytest.fixture(scope="module")
def wheel(bucket, tmp_path_factory) -> dict[str, Any]:
    """A package of the model, in the bucket."""
    path, digest = write_wheel(tmp_path_factory.mktemp("wheels"), "loud", {"loud.py": "print('loud is imported')"})
    bucket.blob(f"wheels/{path.name}").upload_from_filename(str(path))
    return {"wheel": f"gs://{bucket.name}/wheels/{path.name}", "sha256": [digest], "imports": "loud"}


def container(request_uri: str) -> dict[str, Any]:
    command = {"image_uri": TRAINER_IMAGE, "command": ["python", "-m", "trainer.task"]}
    return {"container_spec": {**command, "args": ["train", f"--request={request_uri}"]}}


def run(api, name: str, program: dict[str, Any]) -> Any:
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, **program}
    job = {"display_name": name, "job_spec": {"worker_pool_specs": [pool]}}
    return api.wait(api.jobs.create_custom_job(parent=api.parent, custom_job=job), timeout_s=180)


@pytest.mark.long
def test_the_source_distribution_trains_in_a_pre_built_container(api, bucket, run_uri, wheel, local_cloud, tmp_path):
    """As `make sdist` builds it; the version in the report is the distribution's, so no checkout was imported."""
    command = [str(TRAINER_PYTHON), "-m", "trainer.tools.package", "--framework", "2.15", "--out", str(tmp_path)]
    built = subprocess.run(command, cwd=REPOSITORY_PATH, check=True, capture_output=True, text=True)
    sdist = Path(built.stdout.strip())
    bucket.blob(f"packages/{sdist.name}").upload_from_filename(str(sdist))
    request_uri = write_request(bucket, "sdist", {**TRAINING, "packages": [wheel]})
    package = {
        "executor_image_uri": PREBUILT,
        "package_uris": [f"gs://{bucket.name}/packages/{sdist.name}"],
        "python_module": "trainer.task",
        "args": ["train", f"--request={request_uri}"],
    }
    job = run(api, "sdist", {"python_package_spec": package})
    lines = [str(entry.payload) for entry in read_log(local_cloud, job)]
    assert job.state.name == "JOB_STATE_SUCCEEDED", lines
    report = json.loads(bucket.blob("training-jobs/sdist/report.json").download_as_bytes())
    assert report["framework"]["trainer"].endswith("+tf2.15")
    assert any("loud is imported" in line for line in lines)


def test_a_package_that_someone_replaced_ends_the_job(api, bucket, run_uri, wheel, local_cloud):
    """With the exit code of what no repetition mends; nothing of it was imported."""
    changed = {**wheel, "sha256": ["0" * 64]}
    request_uri = write_request(bucket, "replaced", {**TRAINING, "packages": [changed]})
    job = run(api, "replaced", container(request_uri))
    lines = [str(entry.payload) for entry in read_log(local_cloud, job)]
    assert "exited with a non-zero status of 2" in job.error.message
    assert any("loud-1.0-py3-none-any.whl: its SHA-256 is" in line for line in lines), lines
    assert not any("loud is imported" in line for line in lines)
