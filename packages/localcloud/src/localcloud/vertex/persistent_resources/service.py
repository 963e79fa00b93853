"""PersistentResourceService: created under a name that the caller chooses, there until it is deleted.

Comes in: requests to create, get, list and delete. Goes out: persistent resources in the store. Creating one takes no
time here; a fault of `PersistentResourceService.CreatePersistentResource/operation` gives it minutes, as the service.
Deleting one cancels the jobs that run on it:
https://cloud.google.com/vertex-ai/docs/training/persistent-resource-delete
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import PersistentResource, ResourcePool
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.resources.held_machines import RUNNING, resource_name
from localcloud.vertex.resources.machines import check_machine
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import PERSISTENT_RESOURCES, Store, now
from localcloud.vertex.resources.validation import Finding, check_display_name, check_id, check_labels, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError, FailedPrecondition, InvalidArgument, NotFound
from localcloud.vertex.wire.listing import list_page

_ID = r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
_PAUSE_S = 0.05


class PersistentResources:
    """Answers what is asked of persistent resources.

    Args:
        active_jobs: Gives the custom jobs that have not ended.
        cancel_job: Asks one of them to end, by its name.
    """

    def __init__(
        self,
        store: Store,
        operations: Operations,
        active_jobs: Callable[[], list[types.CustomJob]],
        cancel_job: Callable[[str], object],
    ) -> None:
        self._store = store
        self._operations = operations
        self._active_jobs = active_jobs
        self._cancel_job = cancel_job

    def create_persistent_resource(self, request: types.CreatePersistentResourceRequest) -> operations_pb2.Operation:
        """Keep it as PROVISIONING; its operation makes it RUNNING."""
        location = names.parse_location(request.parent)
        resource = PersistentResource()
        PersistentResource.copy_from(resource, request.persistent_resource)
        refuse([*_check(resource, request.persistent_resource_id)])
        resource.name = f"{location}/persistentResources/{request.persistent_resource_id}"
        for number, pool in enumerate(resource.resource_pools):
            pool.id = pool.id or f"pool-{number}"
            pool.replica_count = max(pool.replica_count, pool.autoscaling_spec.min_replica_count, 1)
        resource.state = PersistentResource.State.PROVISIONING
        resource.create_time = resource.update_time = now()
        self._store.insert(PERSISTENT_RESOURCES, resource.name, request.parent, resource)

        def work(progress: Progress) -> PersistentResource:
            progress.check()
            with self._store.change(PERSISTENT_RESOURCES, resource.name) as made:
                if made.state == PersistentResource.State.PROVISIONING:
                    made.state = RUNNING
                    made.start_time = made.update_time = now()
                return made

        metadata = types.CreatePersistentResourceOperationMetadata()
        call = "PersistentResourceService.CreatePersistentResource"
        return self._operations.start(call, resource.name, metadata, work, failed=self._mark_failed)

    def _mark_failed(self, name: str, error: ApiError) -> None:
        """Write why a resource never ran."""
        with contextlib.suppress(NotFound), self._store.change(PERSISTENT_RESOURCES, name) as resource:
            resource.state, resource.error = PersistentResource.State.ERROR, error.to_status()
            resource.update_time = now()

    def get_persistent_resource(self, request: types.GetPersistentResourceRequest) -> PersistentResource:
        """Return one as it stands."""
        return self._store.get(PERSISTENT_RESOURCES, names.check_name(request.name, "persistentResources"))

    def list_persistent_resources(
        self, request: types.ListPersistentResourcesRequest
    ) -> types.ListPersistentResourcesResponse:
        """Return those of a location, newest first."""
        names.parse_location(request.parent)
        page, token = list_page(self._store.list_under(PERSISTENT_RESOURCES, request.parent), request, {})
        return types.ListPersistentResourcesResponse(persistent_resources=page, next_page_token=token)

    def delete_persistent_resource(self, request: types.DeletePersistentResourceRequest) -> operations_pb2.Operation:
        """Cancel the jobs on it, then remove it."""
        name = names.check_name(request.name, "persistentResources")
        with self._store.change(PERSISTENT_RESOURCES, name) as resource:
            if resource.state == PersistentResource.State.STOPPING:
                raise FailedPrecondition(f"The PersistentResource {name} is being deleted already.")
            resource.state, resource.update_time = PersistentResource.State.STOPPING, now()

        def work(progress: Progress) -> empty_pb2.Empty:
            for job in self._jobs_on(name):
                self._cancel_job(job)
            while self._jobs_on(name):
                progress.sleep(_PAUSE_S)
            self._store.delete(PERSISTENT_RESOURCES, name)
            return empty_pb2.Empty()

        call = "PersistentResourceService.DeletePersistentResource"
        return self._operations.start(call, name, types.DeleteOperationMetadata(), work)

    def _jobs_on(self, name: str) -> list[str]:
        return [job.name for job in self._active_jobs() if resource_name(job) == name]

    def resume(self) -> None:
        """Settle what a restart left open: what was being made is there, and what was being deleted is gone."""
        for resource in self._store.list_all(PERSISTENT_RESOURCES):
            if resource.state == PersistentResource.State.STOPPING:
                self._store.delete(PERSISTENT_RESOURCES, resource.name)
                continue
            with self._store.change(PERSISTENT_RESOURCES, resource.name) as changed:
                if changed.state == PersistentResource.State.PROVISIONING:
                    changed.state, changed.start_time = RUNNING, now()


def _check(resource: PersistentResource, resource_id: str) -> Iterator[Finding]:
    """Find everything about a new one that can be known before it is paid for.

    Raises:
        InvalidArgument: It has a name already.
    """
    field = "persistent_resource"
    if resource.name:
        raise InvalidArgument(f"{field}.name is set. Give persistent_resource_id.", field=f"{field}.name")
    yield from check_id(resource_id, _ID, "at most 63 lower-case letters, digits and dashes", "persistent_resource_id")
    yield from check_display_name(resource.display_name, f"{field}.display_name")
    yield from check_labels(resource.labels, f"{field}.labels")
    for number, pool in enumerate(resource.resource_pools):
        yield from _check_pool(pool, f"{field}.resource_pools[{number}]")


def _check_pool(pool: ResourcePool, field: str) -> Iterator[Finding]:
    yield from check_machine(pool.machine_spec, "training", f"{field}.machine_spec")
    scaling = pool.autoscaling_spec
    if "autoscaling_spec" not in pool:
        if pool.replica_count < 1:
            yield f"{field}.replica_count", f"The replica count is {pool.replica_count}. Expected 1 or more."
        return
    if not 0 < scaling.min_replica_count < scaling.max_replica_count:
        yield (
            f"{field}.autoscaling_spec",
            (
                f"min_replica_count is {scaling.min_replica_count} and max_replica_count {scaling.max_replica_count}."
                " Expected more than 0, and a larger maximum."
            ),
        )
    if pool.replica_count and not scaling.min_replica_count <= pool.replica_count <= scaling.max_replica_count:
        yield f"{field}.replica_count", f"The replica count is {pool.replica_count}. Expected one between the two."
