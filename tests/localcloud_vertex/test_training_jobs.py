"""Trainings as jobs of the local cloud: on one machine and in two kinds of cluster, each losing a replica."""

from __future__ import annotations

import json
import subprocess
import textwrap
from typing import Any

import pytest

from .conftest import REPOSITORY_PATH, TRAINER_IMAGE, TRAINER_PYTHON, poll

EPOCHS = 40
_WRITE_RUN = """
    import json, sys
    from pathlib import Path
    sys.path.insert(0, "tests/trainer")
    import conftest
    run = conftest.Run(path=Path(sys.argv[1]), rows=conftest.make_rows())
    run.export()
    run.write_statistics()
    Path(sys.argv[1], "request.json").write_text(json.dumps(run.train_json()))
"""


@pytest.fixture(scope="module")
def run_uri(bucket, tmp_path_factory) -> str:
    """Address of an exported run."""
    folder, uri = tmp_path_factory.mktemp("run"), f"gs://{bucket.name}/training-jobs/run"
    command = [TRAINER_PYTHON, "-c", textwrap.dedent(_WRITE_RUN), str(folder)]
    subprocess.run(command, check=True, cwd=REPOSITORY_PATH, timeout=120)
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".json":
                content = content.replace(str(folder).encode(), uri.encode())
            bucket.blob(f"training-jobs/run/{path.relative_to(folder)}").upload_from_string(content)
    return uri


@pytest.mark.long
@pytest.mark.parametrize(
    ("pools", "lost", "batch_size", "strategy"),
    [
        pytest.param([1], "workerpool0-0", 64, "one_device", id="alone"),
        pytest.param([1, 1], "workerpool1-0", 32, "multi_worker", id="lockstep"),
        pytest.param([1, 2, 1], "workerpool1-1", 64, "parameter_server", id="a-worker-of-parameter-servers"),
        pytest.param([1, 2, 1], "workerpool2-0", 64, "parameter_server", id="the-parameter-server"),
    ],
)
def test_a_preempted_replica_costs_no_more_than_the_steps_since_the_last_checkpoint(
    api, add_fault, bucket, run_uri, request, pools: list[int], lost: str, batch_size: int, strategy: str
) -> None:
    """The job succeeds, with the steps of an undisturbed training."""
    name = request.node.callspec.id
    training = {"batch_size": batch_size, "epochs": EPOCHS, "checkpoint": {"every_steps": 5, "every_seconds": None}}
    request_uri = write_request(bucket, name, training)
    job = api.jobs.create_custom_job(parent=api.parent, custom_job=make_job(name, request_uri, pools))
    poll(lambda: checkpoints(bucket, name), lambda steps: max(steps, default=0) >= 3 * 11, 120)
    add_fault("Replica.Run", "preempt", filter=f'labels.case="{name}"', replica=lost, seconds=0, grace_seconds=15)
    ended = api.wait(job, timeout_s=240)
    assert ended.state.name == "JOB_STATE_SUCCEEDED", ended.error
    report = json.loads(bucket.blob(f"training-jobs/{name}/report.json").download_as_bytes())
    assert (report["strategy"], report["steps"], report["epochs_run"]) == (strategy, EPOCHS * 11, EPOCHS)
    resumes = lost != "workerpool1-1"  # the other worker takes over what it had
    assert (report["resumed_from_step"] is not None) == resumes
    assert not resumes or report["resumed_from_step"] >= 3 * 11


def write_request(bucket, name: str, training: dict[str, Any]) -> str:
    document = json.loads(bucket.blob("training-jobs/run/request.json").download_as_bytes())
    document["training"].update(training)
    for field in ("model_uri", "report_uri", "checkpoint_uri", "tensorboard_uri"):
        document[field] = document[field].replace("/run/training/", f"/{name}/")
    bucket.blob(f"training-jobs/{name}/request.json").upload_from_string(json.dumps(document))
    return f"gs://{bucket.name}/training-jobs/{name}/request.json"


def make_job(name: str, request_uri: str, pools: list[int]) -> dict[str, Any]:
    command = {"image_uri": TRAINER_IMAGE, "command": ["python", "-m", "trainer.task"]}
    container = {**command, "args": ["train", f"--request={request_uri}"]}
    machine = {"machine_type": "n1-standard-4"}
    specs = [{"machine_spec": machine, "replica_count": count, "container_spec": container} for count in pools]
    return {"display_name": f"train {name}", "labels": {"case": name}, "job_spec": {"worker_pool_specs": specs}}


def checkpoints(bucket, name: str) -> set[int]:
    """Steps of the whole checkpoints."""
    found = bucket.list_blobs(prefix=f"training-jobs/{name}/checkpoints/")
    return {int(blob.name.split("/")[-2].removeprefix("step-")) for blob in found if blob.name.endswith("state.json")}
