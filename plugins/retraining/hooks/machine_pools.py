"""Pools of machines that stay between jobs: persistent resources of Vertex AI. Found, made, deleted.

In: ids and what they are made of. Out: `OpenPool` values. Their ids are the caller's, so one that is there is not made,
and not paid, twice; what another environment made is none of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from retraining.core.documents.plan import Pool
from retraining.core.errors import ConflictError
from retraining.core.jobs.machine_pools import OpenPool
from retraining.core.naming.vertex import PERSISTENT_RESOURCES, ResourceName, location_name
from retraining.hooks import limits
from retraining.hooks.session import Session, call, call_once

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import PersistentResource, PersistentResourceServiceClient, ResourcePool


class MachinePools:
    """The persistent resources of one region.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parent = location_name(session.project, session.region)

    def find(self, pool_id: str) -> OpenPool | None:
        """Return a pool as it stands; None: there is none of that id.

        Raises:
            ConflictError: It is another environment's.
        """
        from google.api_core.exceptions import NotFound

        name = self._name(pool_id)
        try:
            found = call(lambda: self._client.get_persistent_resource(name=name, retry=None))
        except NotFound:
            return None
        if not self._session.environment.owns(found.labels, ""):
            raise ConflictError(
                name,
                f"the labels {dict(found.labels)}",
                f"this environment's, {self._session.environment.labels}",
                "Delete it, or give the pool another name",
            )
        return _pool(found)

    def create(self, pool_id: str, resource: Mapping[str, Any]) -> None:
        """Begin to make a pool. One that is there already stays as it is.

        Args:
            pool_id: Its id.
            resource: `PersistentResource` in proto-JSON with snake_case names.
        """
        from google.api_core.exceptions import AlreadyExists

        try:
            call_once(lambda: self._begin(pool_id, resource))
        except AlreadyExists:
            return

    def _begin(self, pool_id: str, resource: Mapping[str, Any]) -> object:
        from google.cloud import aiplatform_v1
        from google.protobuf import json_format

        message = aiplatform_v1.PersistentResource()
        labels = self._session.labels(resource.get("labels", {}))
        placed = self._session.placement.placed_pool({**resource, "labels": labels})
        json_format.ParseDict(placed, aiplatform_v1.PersistentResource.pb(message))
        request = {"parent": self._parent, "persistent_resource_id": pool_id, "persistent_resource": message}
        return self._client.create_persistent_resource(request=request, retry=None)

    def delete(self, pool_id: str) -> None:
        """Begin to delete a pool, and the jobs on it. One that is gone, or going, stays so."""
        from google.api_core.exceptions import FailedPrecondition, NotFound

        name = self._name(pool_id)
        try:
            call(lambda: self._client.delete_persistent_resource(name=name, retry=None))
        except (FailedPrecondition, NotFound):
            return

    def find_all(self) -> list[OpenPool]:
        """Return the pools of this environment."""
        request = {"parent": self._parent}
        found = call(
            lambda: list(self._client.list_persistent_resources(request=request, retry=None)),
            timeout_s=limits.LISTING_S,
        )
        return [_pool(each) for each in found if self._session.environment.owns(each.labels, "")]

    def _name(self, pool_id: str) -> str:
        return f"{self._parent}/{PERSISTENT_RESOURCES}/{pool_id}"

    @cached_property
    def _client(self) -> PersistentResourceServiceClient:
        from google.cloud import aiplatform_v1

        from retraining.hooks.transports import grpc_client

        session = self._session
        client: PersistentResourceServiceClient = grpc_client(
            aiplatform_v1.PersistentResourceServiceClient, session, client_options=session.client_options
        )
        return client


def _pool(found: PersistentResource) -> OpenPool:
    account = found.resource_runtime_spec.service_account_spec
    return OpenPool(
        pool_id=ResourceName.parse(found.name).resource_id,
        state=found.state.name,
        labels=dict(found.labels),
        error=str(found.error.message) if found.error else "",
        machines=tuple(_machines(each) for each in found.resource_pools),
        own_accounts=bool(account.enable_custom_service_account),
    )


def _machines(pool: ResourcePool) -> Pool:
    machine, disk = pool.machine_spec, pool.disk_spec
    accelerator = {"type": machine.accelerator_type.name, "count": machine.accelerator_count}
    return Pool.model_validate(
        {
            "machine": machine.machine_type,
            "count": pool.autoscaling_spec.max_replica_count or pool.replica_count,
            "accelerator": accelerator if machine.accelerator_count else None,
            "disk_gb": disk.boot_disk_size_gb or 100,
            "disk_type": disk.boot_disk_type or "pd-ssd",
        }
    )
