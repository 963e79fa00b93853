"""Pools of machines: made under the caller's id, once; found; deleted with their jobs."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import pytest

from retraining.core.jobs import machine_pools
from tests.support.scenes.port_stage import FOREVER, make_job, until
from tests.support.small_pool import make_pool

KIND = {"machine": "n1-standard-4", "min": 1, "max": 2}


@pytest.fixture
def resource(cloud: Any) -> dict[str, Any]:
    """What a pool is made of."""
    pool = make_pool(machines=[KIND, {"machine": "n1-standard-8", "disk_gb": 200}])
    labels = machine_pools.pool_labels(pool, cloud.clock.now())
    return machine_pools.pool_request(pool, labels, own_accounts=True)


@pytest.fixture
def pool_id() -> str:
    """One of this test's own."""
    return f"pool-{uuid.uuid4().hex[:8]}"


def open_pool(stage: Any, pool_id: str, resource: dict[str, Any]) -> Any:
    """The pool, once it runs."""
    stage.cloud.machine_pools.create(pool_id, resource)
    stage.provide(pool_id)
    return until(
        stage.cloud, lambda: found if (found := stage.cloud.machine_pools.find(pool_id)).state == "RUNNING" else None
    )


def test_a_pool_is_as_it_was_asked_for(stage, cloud, pool_id, resource) -> None:
    """Each kind of machines with as many as there may be; and the environment's label beside its own."""
    assert cloud.machine_pools.find(pool_id) is None
    found = open_pool(stage, pool_id, resource)
    assert [(each.machine, each.count, each.disk_gb) for each in found.machines] == [
        ("n1-standard-4", 2, 100),
        ("n1-standard-8", 1, 200),
    ]
    assert found.own_accounts
    assert found.labels == {**resource["labels"], **cloud.environment.labels}
    assert isinstance(found.closes, datetime)
    assert found.closes < found.ends
    assert pool_id in [each.pool_id for each in cloud.machine_pools.find_all()]
    cloud.machine_pools.delete(pool_id)


def test_a_second_create_changes_nothing(stage, cloud, pool_id, resource) -> None:
    """Its id is known beforehand: an answer that got lost costs nothing."""
    found = open_pool(stage, pool_id, resource)
    cloud.machine_pools.create(pool_id, {**resource, "labels": {"other": "labels"}})
    assert cloud.machine_pools.find(pool_id).labels == found.labels
    cloud.machine_pools.delete(pool_id)


def test_deleting_it_cancels_its_jobs(stage, cloud, pool_id, resource, unique) -> None:
    """And may be asked again, also when it is gone."""
    open_pool(stage, pool_id, resource)
    job = make_job(FOREVER, owner=unique)
    job["job_spec"]["persistent_resource_id"] = pool_id
    job["job_spec"]["worker_pool_specs"][0]["disk_spec"] = {"boot_disk_type": "pd-ssd", "boot_disk_size_gb": 100}
    made = cloud.jobs.create(job)
    assert cloud.jobs.get(made.name).pool_id == pool_id
    for _ in range(2):
        cloud.machine_pools.delete(pool_id)
    until(cloud, lambda: cloud.jobs.get(made.name).state == "JOB_STATE_CANCELLED")
    stage.let_go(pool_id)
    until(cloud, lambda: cloud.machine_pools.find(pool_id) is None)
    cloud.machine_pools.delete(pool_id)
