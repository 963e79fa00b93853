"""Which job holds how many machines of a persistent resource.

Comes in: a custom job that names one. Goes out: `used_replica_count` of its resource pools, so that a job waits while
the machines that it needs are held by others.

A worker pool runs on the resource pool with the same machines and disks, and needs as many of them as it has replicas:
https://cloud.google.com/vertex-ai/docs/training/persistent-resource-train
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from google.cloud.aiplatform_v1.types import (
    CustomJob,
    CustomJobSpec,
    DiskSpec,
    PersistentResource,
    ResourcePool,
    WorkerPoolSpec,
)

from localcloud.vertex.resources.store import PERSISTENT_RESOURCES, Store
from localcloud.vertex.resources.validation import Finding
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError, FailedPrecondition, NotFound
from localcloud.vertex.wire.methods import message_bytes

RUNNING = PersistentResource.State.RUNNING
TICK_S = 0.1
_DISK_TYPE, _DISK_GB = "pd-ssd", 100


def resource_name(job: CustomJob) -> str | None:
    """Return the name of the persistent resource that a job asks for; None: machines of its own."""
    wanted = job.job_spec.persistent_resource_id
    return f"{names.location_of(job.name)}/persistentResources/{wanted}" if wanted else None


def room_of(pool: ResourcePool) -> int:
    """Return how many machines a resource pool may have."""
    return int(pool.autoscaling_spec.max_replica_count or pool.replica_count or 1)


def check_place(job: CustomJob, store: Store, field: str) -> Iterator[Finding]:
    """Find out whether a persistent resource can ever run a job.

    Raises:
        ApiError: There is none of that name, or it does not run.
    """
    name = resource_name(job)
    if name is None:
        return
    resource = store.find_resource(PERSISTENT_RESOURCES, name)
    if resource is None:
        raise NotFound(f"The PersistentResource {name} does not exist.")
    if resource.state != RUNNING:
        raise FailedPrecondition(
            f"The PersistentResource {name} is in state {resource.state.name}. Expected RUNNING. Wait until it runs,"
            " or create the job without persistent_resource_id."
        )
    for index, worker_pool in enumerate(job.job_spec.worker_pool_specs):
        where = f"{field}.worker_pool_specs[{index}]"
        if worker_pool == WorkerPoolSpec():
            continue
        fitting = _find_pool(resource, worker_pool)
        if fitting is None:
            yield (
                f"{where}.machine_spec",
                (
                    f"No resource pool of {name} has the machines and disks of this worker pool. Expected"
                    " machine_spec and disk_spec of one of them."
                ),
            )
        elif worker_pool.replica_count > room_of(fitting):
            yield (
                f"{where}.replica_count",
                (
                    f"{worker_pool.replica_count} replicas, and the resource pool {fitting.id} of {name} has at most"
                    f" {room_of(fitting)}."
                ),
            )


@contextlib.contextmanager
def held_machines(store: Store, job: CustomJob, wait: Callable[[float], object]) -> Iterator[bool]:
    """Hold the machines that a job needs for as long as the block runs.

    Args:
        wait: Waits so many seconds, and raises when the job shall end.

    Yields:
        Whether the job runs on a persistent resource.

    Raises:
        ApiError: The persistent resource is gone.
    """
    name = resource_name(job)
    if name is None:
        yield False
        return
    while not _take(store, name, job.job_spec):
        wait(TICK_S)
    try:
        yield True
    finally:
        with contextlib.suppress(ApiError):  # it was deleted meanwhile
            _change(store, name, job.job_spec, -1)


def free_all(store: Store) -> None:
    """After a restart: no job runs any more, so no machine is held."""
    for resource in store.list_all(PERSISTENT_RESOURCES):
        with store.change(PERSISTENT_RESOURCES, resource.name) as changed:
            for pool in changed.resource_pools:
                pool.used_replica_count = 0


def _take(store: Store, name: str, spec: CustomJobSpec) -> bool:
    """Hold all machines of a job, or none."""
    with store.transaction():
        resource = store.get(PERSISTENT_RESOURCES, name)
        if resource.state != RUNNING:
            raise FailedPrecondition(f"The PersistentResource {name} is in state {resource.state.name}.")
        needed = _needed(resource, spec)
        if any(pool.used_replica_count + needed.get(pool.id, 0) > room_of(pool) for pool in resource.resource_pools):
            return False
        _change(store, name, spec, +1)
        return True


def _change(store: Store, name: str, spec: CustomJobSpec, sign: int) -> None:
    with store.change(PERSISTENT_RESOURCES, name) as resource:
        needed = _needed(resource, spec)
        for pool in resource.resource_pools:
            pool.used_replica_count += sign * needed.get(pool.id, 0)
            if pool.autoscaling_spec.max_replica_count:
                pool.replica_count = max(pool.used_replica_count, pool.autoscaling_spec.min_replica_count)


def _needed(resource: PersistentResource, spec: CustomJobSpec) -> dict[str, int]:
    """Return how many machines of each resource pool a job needs, by the pool's id."""
    needed: dict[str, int] = {}
    for worker_pool in spec.worker_pool_specs:
        fitting = _find_pool(resource, worker_pool)
        if worker_pool != WorkerPoolSpec() and fitting is not None:
            needed[fitting.id] = needed.get(fitting.id, 0) + worker_pool.replica_count
    return needed


def _find_pool(resource: PersistentResource, worker_pool: WorkerPoolSpec) -> ResourcePool | None:
    wanted = _machines(worker_pool)
    return next((pool for pool in resource.resource_pools if _machines(pool) == wanted), None)


def _machines(pool: ResourcePool | WorkerPoolSpec) -> tuple[bytes, str, int]:
    disk: DiskSpec = pool.disk_spec
    return (
        message_bytes(pool.machine_spec),
        disk.boot_disk_type or _DISK_TYPE,
        disk.boot_disk_size_gb or _DISK_GB,
    )
