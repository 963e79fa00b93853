"""Python as a job of an account: what that account may do is tried by code that it runs itself."""

from __future__ import annotations

import time
from typing import NamedTuple

from retraining.core.untyped import ProtoJson
from retraining.hooks.cloud import Cloud
from retraining.hooks.logs import Cursor
from tests.support.scenes.roles import JOBS_ACCOUNT


class Scene(NamedTuple):
    """What an operation may use."""

    cloud: Cloud
    run_table: str
    name: str


def job_of(scene: Scene, code: str, account: str = JOBS_ACCOUNT) -> ProtoJson:
    """A job that runs Python as the jobs' account, or as another."""
    container = {"image_uri": scene.cloud.settings.trainer_image, "command": ["python", "-c", code]}
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
    spec = {"worker_pool_specs": [pool], "scheduling": {"timeout": "60s"}, "service_account": account}
    return {"display_name": "roles", "job_spec": spec, "labels": {"owner": scene.name}}


def run_job(scene: Scene, code: str, account: str = JOBS_ACCOUNT) -> None:
    """Run Python as a job with the jobs' account, or another; its lines are the error when it fails."""
    job = scene.cloud.jobs.create(job_of(scene, code, account))
    until = time.monotonic() + 90
    while job.active:
        assert time.monotonic() < until
        time.sleep(0.1)
        job = scene.cloud.jobs.get(job.name)
    if job.state != "JOB_STATE_SUCCEEDED":
        lines = scene.cloud.logs.read_new(job.job_id, Cursor())
        raise RuntimeError("\n".join(line.text for line in lines))
