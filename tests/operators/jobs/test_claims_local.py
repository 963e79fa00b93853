"""One paid job through Google's clients: the local cloud loses answers, is slow, and its storage stumbles."""

from __future__ import annotations

import time
import uuid
from datetime import timedelta
from typing import Any

import pytest

from retraining.core.jobs.job import JobIdentity
from retraining.core.jobs.requests import JobRequest
from retraining.core.naming import storage, vertex
from retraining.hooks import vertex_jobs
from retraining.hooks.cloud import Cloud
from retraining.operators.jobs.reconcile import Reconciler

TIMEOUT_S = 60


@pytest.fixture
def cloud(local_cloud) -> Cloud:
    """All hooks on the local cloud."""
    del local_cloud
    return Cloud()


class Task:
    """A task that wants a job of a second."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.key = cloud, uuid.uuid4().hex
        container = {"image_uri": cloud.settings.trainer_image, "command": ["python", "-c", "pass"]}
        pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
        self.job = {"display_name": "claimed", "job_spec": {"worker_pool_specs": [pool]}}

    def wake(self) -> dict[str, Any] | None:
        """One wake."""
        identity = JobIdentity(key=self.key, owner=self.key, dag_run=self.key, generation=1, retries=0, try_number=1)
        return Reconciler(self.cloud, JobRequest(custom_job=self.job), identity, lambda _: None).poll_job()

    def until_done(self) -> list[Any]:
        """Wakes until there is a result; gives the jobs that were made."""
        until = time.monotonic() + TIMEOUT_S
        while self.wake() is None:
            assert time.monotonic() < until, "the task did not end"
            time.sleep(0.1)
        return self.cloud.jobs.find_jobs({vertex.KEY_LABEL: self.key})


def test_a_lost_answer_makes_no_second_job(cloud, add_fault) -> None:
    """The create was done and answered with 503."""
    add_fault("JobService.CreateCustomJob", "lost_response")
    task = Task(cloud)
    assert len(task.until_done()) == 1


def test_a_create_that_lands_after_its_deadline_makes_no_second_job(cloud, add_fault, monkeypatch) -> None:
    """The client gives up after half a second, the server goes on for two."""
    monkeypatch.setattr(vertex_jobs, "CREATE_TIMEOUT", timedelta(seconds=0.5))
    add_fault("JobService.CreateCustomJob", "delay", seconds=2)
    task = Task(cloud)
    assert task.wake() is None
    assert cloud.jobs.find_jobs({vertex.KEY_LABEL: task.key}) == []
    assert len(task.until_done()) == 1


def test_storage_that_stumbles_over_the_claim_makes_no_second_job(cloud, add_fault) -> None:
    """Its writes are lost before and after they are done."""
    target = f"storage.objects.insert {storage.pokes_uri(cloud.settings.bucket)}/claims/*"
    add_fault(target, "lost_response", code="UNAVAILABLE")
    add_fault(target, "error", code="UNAVAILABLE", skip=1)
    task = Task(cloud)
    assert len(task.until_done()) == 1


def test_a_job_made_beside_another_is_cancelled(cloud) -> None:
    """Whoever made it; the older one gives the result."""
    task = Task(cloud)
    task.job["job_spec"]["worker_pool_specs"][0]["container_spec"]["command"][-1] = "import time; time.sleep(3)"
    labels = JobIdentity(key=task.key, owner=task.key, dag_run=task.key, generation=1, retries=0, try_number=1).labels
    for _ in range(3):
        cloud.jobs.create({**task.job, "labels": labels})
    first, *others = task.until_done()
    assert first.state == "JOB_STATE_SUCCEEDED"
    assert [job.state for job in others] == ["JOB_STATE_CANCELLED"] * 2
