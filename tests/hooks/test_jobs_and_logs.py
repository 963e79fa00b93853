"""Jobs of Vertex AI and their lines, through the local cloud's own replicas."""

from __future__ import annotations

import time
from typing import Any

import pytest

from retraining.hooks import logs
from retraining.hooks.logs import Cursor


def make_job(code: str, **labels: str) -> dict[str, Any]:
    """A job of one replica that runs a line of Python."""
    container = {
        "image_uri": "us-central1-docker.pkg.dev/local-project/retraining/trainer:test",
        "command": ["python", "-c", code],
    }
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
    spec = {"worker_pool_specs": [pool], "scheduling": {"timeout": "60s"}}
    return {"display_name": "test", "job_spec": spec, "labels": labels}


def wait(cloud, name: str) -> Any:
    """The job once it has ended."""
    until = time.monotonic() + 60
    while (job := cloud.jobs.get(name)).active:
        assert time.monotonic() < until
        time.sleep(0.05)
    return job


def test_a_job_is_found_by_its_labels_and_ends(cloud, unique) -> None:
    """Created, listed, succeeded; its lines are read once."""
    created = cloud.jobs.create(make_job("print('one'); print('two')", owner=unique, key="a"))
    assert [job.name for job in cloud.jobs.find({"owner": unique})] == [created.name]
    assert cloud.jobs.find({"owner": unique, "key": "b"}) == []
    assert wait(cloud, created.name).state == "JOB_STATE_SUCCEEDED"
    cursor = Cursor()
    lines = [line for line in cloud.logs.read_new(created.job_id, cursor) if line.task == "workerpool0-0"]
    assert [line.text for line in lines] == ["one", "two"]
    assert cloud.logs.read_new(created.job_id, Cursor.from_json(cursor.to_json())) == []


@pytest.mark.parametrize(("limit", "value"), [("MAX_LINES", 1), ("MAX_BYTES", 2)])
def test_many_lines_are_read_in_several_reads(cloud, unique, monkeypatch, limit, value) -> None:
    """Each line once and in order, however many there are."""
    created = cloud.jobs.create(make_job("print('one'); print('two'); print('three')", owner=unique))
    wait(cloud, created.name)
    monkeypatch.setattr(logs, limit, value)
    cursor, reads = Cursor(), []
    while lines := cloud.logs.read_new(created.job_id, cursor):
        reads.append([line.text for line in lines if line.task == "workerpool0-0"])
    assert all(len(read) <= 1 for read in reads)
    assert [text for read in reads for text in read] == ["one", "two", "three"]


def test_a_job_says_whether_its_machines_are_spot(cloud, unique) -> None:
    """As it was asked, both where it is listed and where it is looked at."""
    asked = make_job("pass", owner=unique)
    asked["job_spec"]["scheduling"]["strategy"] = "SPOT"
    spot = cloud.jobs.create(asked)
    assert wait(cloud, spot.name).spot
    assert [job.spot for job in cloud.jobs.find({"owner": unique})] == [True]
    assert not wait(cloud, cloud.jobs.create(make_job("pass", owner=unique)).name).spot


def test_a_failed_job_says_its_exit_status(cloud, unique) -> None:
    """Status 2 is the user's fault."""
    from retraining.core.jobs.failures import Failure
    from retraining.operators.jobs.reconcile import failure_of

    job = wait(cloud, cloud.jobs.create(make_job("raise SystemExit(2)", owner=unique)).name)
    assert failure_of(job) is Failure.USER
    cloud.jobs.cancel(job.name)  # of a job that has ended: nothing happens


def test_jobs_that_run_are_found_by_a_labels_name(cloud, unique) -> None:
    """Whatever its value; those that ended are not."""
    running = cloud.jobs.create(make_job("import time; time.sleep(60)", **{unique: "a"}))
    wait(cloud, cloud.jobs.create(make_job("pass", **{unique: "b"})).name)
    assert [job.name for job in cloud.jobs.find_active(unique)] == [running.name]
    assert cloud.jobs.find_by_name(running.name).active
    cloud.jobs.cancel(running.name)
    wait(cloud, running.name)
    assert cloud.jobs.find_active(unique) == []
    assert cloud.jobs.find_by_name(f"{running.name}0") is None


def test_a_cancelled_job_ends(cloud, unique) -> None:
    """Its replica is stopped."""
    from retraining.core.jobs.failures import Failure
    from retraining.operators.jobs.reconcile import failure_of

    created = cloud.jobs.create(make_job("import time; time.sleep(60)", owner=unique))
    cloud.jobs.cancel(created.name)
    assert failure_of(wait(cloud, created.name)) is Failure.CANCELLED


def test_jobs_are_oldest_first(cloud, unique) -> None:
    """The newest job is the last one."""
    names = [cloud.jobs.create(make_job("pass", owner=unique)).name for _ in range(3)]
    assert [job.name for job in cloud.jobs.find({"owner": unique})] == names
