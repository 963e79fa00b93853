"""Machines that stay between jobs, through Google's client: made, held by jobs, waited for, deleted, refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1

from packages.localcloud.tests.vertex.conftest import make_job, make_pool, poll

State = v1.PersistentResource.State
SLEEP = "import time; time.sleep(600)"
MACHINES: dict[str, Any] = {
    "machine_spec": {"machine_type": "n1-standard-4"},
    "replica_count": 1,
    "disk_spec": {"boot_disk_type": "pd-ssd", "boot_disk_size_gb": 100},
}


def create(api, name: str, *, labels: dict[str, str] | None = None, **pool: Any) -> v1.PersistentResource:
    """One with a single pool, once it runs."""
    resource = {"labels": labels or {}, "resource_pools": [{**MACHINES, **pool}]}
    request = {"parent": api.parent, "persistent_resource": resource, "persistent_resource_id": name}
    return api.persistent.create_persistent_resource(request).result(timeout=60)


def used(api, name: str) -> int:
    """How many of its machines are held."""
    return api.persistent.get_persistent_resource(name=name).resource_pools[0].used_replica_count


@pytest.fixture
def warm(api) -> Iterator[v1.PersistentResource]:
    """One machine that stays."""
    made = create(api, f"warm-{uuid.uuid4().hex[:8]}", labels={"team": "a"})
    yield made
    try:
        api.persistent.delete_persistent_resource(name=made.name).result(timeout=60)
    except exceptions.NotFound:
        return


def test_it_is_kept_as_it_was_asked_for_and_listed(api, warm):
    assert (warm.state, warm.labels["team"]) == (State.RUNNING, "a")
    assert warm.start_time >= warm.create_time
    assert api.persistent.get_persistent_resource(name=warm.name) == warm
    assert warm.name in [each.name for each in api.persistent.list_persistent_resources(parent=api.parent)]


def test_its_name_is_the_callers_and_there_once(api, warm):
    with pytest.raises(exceptions.AlreadyExists):
        create(api, warm.name.rsplit("/", 1)[1])


def test_a_job_on_it_waits_for_no_machines_and_holds_one(api, warm, add_fault):
    add_fault("Job.Start", "delay", seconds=600)
    job = api.create_job(SLEEP, persistent_resource_id=warm.name.rsplit("/", 1)[1])
    assert api.wait(job, "JOB_STATE_RUNNING").job_spec.persistent_resource_id
    assert used(api, warm.name) == 1
    api.jobs.cancel_custom_job(name=job.name)
    assert api.wait(job).state == v1.JobState.JOB_STATE_CANCELLED
    poll(lambda: used(api, warm.name), lambda seen: seen == 0)


def test_a_second_job_waits_until_the_machine_is_free(api, warm):
    first = api.create_job(SLEEP, persistent_resource_id=warm.name.rsplit("/", 1)[1])
    api.wait(first, "JOB_STATE_RUNNING")
    second = api.create_job(persistent_resource_id=warm.name.rsplit("/", 1)[1])
    assert api.jobs.get_custom_job(name=second.name).state == v1.JobState.JOB_STATE_QUEUED
    api.jobs.cancel_custom_job(name=first.name)
    assert api.wait(second).state == v1.JobState.JOB_STATE_SUCCEEDED
    assert api.jobs.get_custom_job(name=first.name).end_time <= api.jobs.get_custom_job(name=second.name).start_time


def test_a_job_that_waits_can_be_cancelled(api, warm):
    first = api.create_job(SLEEP, persistent_resource_id=warm.name.rsplit("/", 1)[1])
    api.wait(first, "JOB_STATE_RUNNING")
    second = api.create_job(persistent_resource_id=warm.name.rsplit("/", 1)[1])
    api.jobs.cancel_custom_job(name=second.name)
    assert api.wait(second).state == v1.JobState.JOB_STATE_CANCELLED
    assert used(api, warm.name) == 1


def test_it_grows_to_its_maximum_and_shrinks_again(api):
    scaling = {"min_replica_count": 1, "max_replica_count": 2}
    made = create(api, f"grows-{uuid.uuid4().hex[:8]}", autoscaling_spec=scaling)
    jobs = [api.create_job(SLEEP, persistent_resource_id=made.name.rsplit("/", 1)[1]) for _ in range(2)]
    for job in jobs:
        api.wait(job, "JOB_STATE_RUNNING")
    assert api.persistent.get_persistent_resource(name=made.name).resource_pools[0].replica_count == 2
    api.jobs.cancel_custom_job(name=jobs[0].name)
    poll(
        lambda: api.persistent.get_persistent_resource(name=made.name).resource_pools[0].replica_count,
        lambda seen: seen == 1,
    )
    api.persistent.delete_persistent_resource(name=made.name).result(timeout=60)


def test_deleting_it_cancels_what_runs_on_it(api, warm):
    job = api.create_job(SLEEP, persistent_resource_id=warm.name.rsplit("/", 1)[1])
    api.wait(job, "JOB_STATE_RUNNING")
    api.persistent.delete_persistent_resource(name=warm.name).result(timeout=60)
    assert api.jobs.get_custom_job(name=job.name).state == v1.JobState.JOB_STATE_CANCELLED
    with pytest.raises(exceptions.NotFound):
        api.persistent.get_persistent_resource(name=warm.name)


def test_one_that_is_being_made_takes_no_job_and_may_fail(api, add_fault):
    """As with a stockout: it stays as ERROR, with the reason, until it is deleted."""
    call = "PersistentResourceService.CreatePersistentResource/operation"
    add_fault(call, "error", code="RESOURCE_EXHAUSTED", message="no machines in this zone")
    name = f"short-{uuid.uuid4().hex[:8]}"
    with pytest.raises(exceptions.GoogleAPICallError, match="no machines"):
        create(api, name)
    resource = f"{api.parent}/persistentResources/{name}"
    made = api.persistent.get_persistent_resource(name=resource)
    assert (made.state, made.error.code) == (State.ERROR, 8)
    with pytest.raises(exceptions.FailedPrecondition, match="in state ERROR"):
        api.create_job(persistent_resource_id=name)
    api.persistent.delete_persistent_resource(name=resource).result(timeout=60)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (make_job(persistent_resource_id="nowhere"), "persistentResources/nowhere does not exist"),
        (
            make_job(worker_pool_specs=[{**make_pool(""), "machine_spec": {"machine_type": "n1-standard-8"}}]),
            "worker_pool_specs.0..machine_spec.*No resource pool",
        ),
        (
            make_job(worker_pool_specs=[{**make_pool(""), "disk_spec": {"boot_disk_size_gb": 200}}]),
            "worker_pool_specs.0..machine_spec.*No resource pool",
        ),
        (make_job(worker_pool_specs=[make_pool(""), make_pool("", replica_count=2)]), "2 replicas, and .* at most 1"),
    ],
    ids=["nowhere", "machine", "disk", "replicas"],
)
def test_a_job_that_it_can_never_run_is_refused(api, warm, job, words):
    if not job.job_spec.persistent_resource_id:
        job.job_spec.persistent_resource_id = warm.name.rsplit("/", 1)[1]
    with pytest.raises((exceptions.NotFound, exceptions.InvalidArgument), match=words):
        api.jobs.create_custom_job(parent=api.parent, custom_job=job)


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        ({}, "Warm", "Invalid ID 'Warm'"),
        ({"machine_spec": {"machine_type": "n1-standard-3"}}, "warm", "'n1-standard-3' is not supported"),
        ({"replica_count": 0}, "warm", "replica count is 0"),
        ({"autoscaling_spec": {"min_replica_count": 2, "max_replica_count": 2}}, "warm", "a larger maximum"),
        ({"autoscaling_spec": {"min_replica_count": 2, "max_replica_count": 3}}, "warm", "one between the two"),
    ],
    ids=["id", "machine", "none", "no room", "outside"],
)
def test_malformed_ones_are_refused_before_they_cost(api, changes, name, words):
    with pytest.raises(exceptions.InvalidArgument, match=words):
        create(api, name, **changes)


def test_clusters_of_ray_are_refused_by_name(api):
    request = {"parent": api.parent, "persistent_resource_id": "x"}
    spec = {"ray_spec": {"image_uri": "ray:1"}}
    request["persistent_resource"] = {"resource_pools": [MACHINES], "resource_runtime_spec": spec}
    with pytest.raises(exceptions.MethodNotImplemented, match="ray_spec"):
        api.persistent.create_persistent_resource(request)


def test_after_a_restart_no_machine_is_held(solo):
    api = solo.start()
    made = create(api, "stays")
    job = api.create_job(SLEEP, persistent_resource_id="stays")
    api.wait(job, "JOB_STATE_RUNNING")
    assert used(api, made.name) == 1
    solo.end()
    api = solo.start()
    assert used(api, made.name) == 0
    assert api.persistent.get_persistent_resource(name=made.name).state == State.RUNNING


def test_one_that_was_being_made_when_the_server_ended_is_there_after_its_start(solo):
    """A stop is no failure of the machines."""
    api = solo.start()
    fault = {"target": "PersistentResourceService.CreatePersistentResource/operation", "count": 1}
    assert solo.ask("POST", "/faults", {**fault, "action": {"kind": "delay", "seconds": 600}})[0] == 200
    request = {"parent": api.parent, "persistent_resource": {"resource_pools": [MACHINES]}}
    api.persistent.create_persistent_resource({**request, "persistent_resource_id": "slow"})
    name = f"{api.parent}/persistentResources/slow"
    assert api.persistent.get_persistent_resource(name=name).state == State.PROVISIONING
    solo.end()
    assert solo.start().persistent.get_persistent_resource(name=name).state == State.RUNNING
