"""Trainings as jobs of the local cloud: on one machine and in two kinds of cluster, each losing a replica."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from typing import Any

import pytest

from packages.localcloud.tests.vertex.conftest import ENDED, REPOSITORY_PATH, TRAINER_IMAGE, TRAINER_PYTHON, poll
from packages.localcloud.tests.vertex.jobs.test_jobs import read_log

STEPS_PER_EPOCH = 11
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


@pytest.fixture
def run_job(api, add_fault, bucket, run_uri, request):
    """Trains as a job, perhaps one that loses a replica; gives the job and its report."""
    name = "train-" + re.sub("[^a-z]+", "-", request.node.name)[-50:].strip("-")

    def run(
        pools: list[int], epochs: int, batch_size: int = 64, lost: str = "", grace_s: float = 15
    ) -> tuple[Any, Any]:
        training = {"batch_size": batch_size, "epochs": epochs, "checkpoint": {"every_steps": 5, "every_seconds": None}}
        request_uri = write_request(bucket, name, training)
        job = api.jobs.create_custom_job(parent=api.parent, custom_job=make_job(name, request_uri, pools))
        if lost:
            wait_for_step(api, bucket, name, job, STEPS_PER_EPOCH)
            action = {"replica": lost, "seconds": 0, "grace_seconds": grace_s}
            add_fault("Replica.Run", "preempt", filter=f'labels.case="{name}"', **action)
        ended = api.wait(job, timeout_s=240)
        assert ended.state.name == "JOB_STATE_SUCCEEDED", ended.error
        report = json.loads(bucket.blob(f"training-jobs/{name}/report.json").download_as_bytes())
        assert (report["steps"], report["epochs_run"]) == (epochs * STEPS_PER_EPOCH, epochs)
        return ended, report

    vars(run)["name"] = name
    return run


@pytest.mark.long
def test_a_machine_that_goes_saves_within_its_grace_and_no_step_is_lost(run_job, local_cloud, bucket) -> None:
    """SIGTERM, the state saved, exit code 143, a new machine, the next step; each attempt has its TensorBoard run."""
    job, report = run_job([1], epochs=12, lost="workerpool0-0")
    said = [str(entry.payload) for entry in read_log(local_cloud, job)]
    last = next(
        match for match in (re.search(r"Preempted: train: SIGTERM after step (\d+)", line) for line in said) if match
    )
    assert report["resumed_from_step"] == int(last[1]) >= STEPS_PER_EPOCH
    assert any("The replica workerpool0-0 was preempted. It is started again" in line for line in said)
    blobs = bucket.list_blobs(prefix=f"training-jobs/{run_job.name}/logs/")
    assert len({blob.name.split("/")[3] for blob in blobs if "tfevents" in blob.name}) == 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("pools", "lost", "batch_size", "strategy"),
    [
        pytest.param([1], "workerpool0-0", 64, "one_device", id="alone"),
        pytest.param([1, 1], "workerpool0-0", 32, "multi_worker", id="chief-of-lockstep"),
        pytest.param([1, 1], "workerpool1-0", 32, "multi_worker", id="worker-in-lockstep"),
        pytest.param([1, 2, 1], "workerpool1-1", 64, "parameter_server", id="worker-of-parameter-servers"),
        pytest.param([1, 2, 1], "workerpool2-0", 64, "parameter_server", id="parameter-server"),
    ],
)
@pytest.mark.parametrize("grace_s", [15, 0], ids=["with-grace", "at-once"])
def test_a_preempted_replica_costs_no_more_than_the_steps_since_the_last_checkpoint(
    run_job, pools: list[int], lost: str, batch_size: int, strategy: str, grace_s: int
) -> None:
    """The job succeeds, with the steps of an undisturbed training."""
    _, report = run_job(pools, epochs=30, batch_size=batch_size, lost=lost, grace_s=grace_s)
    assert report["strategy"] == strategy
    resumes = lost != "workerpool1-1"  # the other worker takes over what it had
    assert (report["resumed_from_step"] is not None) == resumes
    assert not resumes or report["resumed_from_step"] >= STEPS_PER_EPOCH


@pytest.mark.long
def test_an_evaluator_is_the_fourth_pool_and_ends_with_the_job(run_job, bucket) -> None:
    _, report = run_job([1, 0, 0, 1], epochs=60)
    assert report["strategy"] == "one_device"
    blobs = bucket.list_blobs(prefix=f"training-jobs/{run_job.name}/logs/evaluator/")
    assert any("tfevents" in blob.name for blob in blobs)


def wait_for_step(api, bucket, name: str, job, step: int) -> None:
    """Return when a checkpoint of that step or a later one is whole."""

    def look() -> tuple[int, Any]:
        return max(checkpoints(bucket, name), default=0), api.jobs.get_custom_job(name=job.name)

    _, seen = poll(look, lambda found: found[0] >= step or found[1].state.name in ENDED, 120)
    assert seen.state.name not in ENDED, seen.error


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
    specs = [
        {"machine_spec": machine, "replica_count": count, "container_spec": container} if count else {}
        for count in pools
    ]
    return {"display_name": f"train {name}", "labels": {"case": name}, "job_spec": {"worker_pool_specs": specs}}


def checkpoints(bucket, name: str) -> set[int]:
    """Steps of the whole checkpoints."""
    found = bucket.list_blobs(prefix=f"training-jobs/{name}/checkpoints/")
    return {int(blob.name.split("/")[-2].removeprefix("step-")) for blob in found if blob.name.endswith("state.json")}
