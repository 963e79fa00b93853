"""DeploymentResourcePoolService: machines that several deployed models share, until the pool is deleted.

Comes in: requests to create, get, list and delete pools, and who is on them. Goes out: pools in the store; findings
about a model that shall be deployed to one. Machines are this machine: a pool says what they would be.
https://cloud.google.com/vertex-ai/docs/predictions/model-co-hosting
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import DeployedModel, DeploymentResourcePool, Endpoint, Model
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.endpoints.serving import FindVersion
from localcloud.vertex.resources.machines import check_machine
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import DEPLOYMENT_RESOURCE_POOLS, ENDPOINTS, Store, now
from localcloud.vertex.resources.validation import Finding, check_id, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition
from localcloud.vertex.wire.listing import list_page

_ID = r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
_PREBUILT = re.compile(r"(?:[a-z]+-docker\.pkg\.dev/vertex-ai|gcr\.io/cloud-aiplatform)/prediction/(tf|pytorch)[^/]*")


class DeploymentResourcePools:
    """Answers what is asked of pools."""

    def __init__(self, store: Store, operations: Operations) -> None:
        self._store = store
        self._operations = operations

    def create_deployment_resource_pool(
        self, request: types.CreateDeploymentResourcePoolRequest
    ) -> operations_pb2.Operation:
        """Keep a new pool under the id that is asked for."""
        location, store = names.parse_location(request.parent), self._store
        pool = DeploymentResourcePool()
        DeploymentResourcePool.copy_from(pool, request.deployment_resource_pool)
        refuse([*_check(pool, request.deployment_resource_pool_id)])
        pool.name = f"{location}/deploymentResourcePools/{request.deployment_resource_pool_id}"
        pool.create_time = now()
        resources = pool.dedicated_resources
        resources.max_replica_count = resources.max_replica_count or resources.min_replica_count
        store.insert(DEPLOYMENT_RESOURCE_POOLS, pool.name, request.parent, pool)

        def work(progress: Progress) -> DeploymentResourcePool:
            progress.check()
            return store.get(DEPLOYMENT_RESOURCE_POOLS, pool.name)

        call = "DeploymentResourcePoolService.CreateDeploymentResourcePool"
        metadata = types.CreateDeploymentResourcePoolOperationMetadata()
        return self._operations.start(call, pool.name, metadata, work)

    def get_deployment_resource_pool(self, request: types.GetDeploymentResourcePoolRequest) -> DeploymentResourcePool:
        """Return one."""
        return self._store.get(DEPLOYMENT_RESOURCE_POOLS, names.check_name(request.name, "deploymentResourcePools"))

    def list_deployment_resource_pools(
        self, request: types.ListDeploymentResourcePoolsRequest
    ) -> types.ListDeploymentResourcePoolsResponse:
        """Return those of a location, newest first."""
        names.parse_location(request.parent)
        page, token = list_page(self._store.list_under(DEPLOYMENT_RESOURCE_POOLS, request.parent), request, {})
        return types.ListDeploymentResourcePoolsResponse(deployment_resource_pools=page, next_page_token=token)

    def query_deployed_models(self, request: types.QueryDeployedModelsRequest) -> types.QueryDeployedModelsResponse:
        """Return who is on one."""
        name = names.check_name(request.deployment_resource_pool, "deploymentResourcePools")
        self._store.get(DEPLOYMENT_RESOURCE_POOLS, name)
        found = [*_deployed_to(self._store, name)]
        page, token = list_page([deployed for _, deployed in found], request, {})
        ids = {deployed.id for deployed in page}
        refs = [
            types.DeployedModelRef(endpoint=endpoint.name, deployed_model_id=deployed.id)
            for endpoint, deployed in found
            if deployed.id in ids
        ]
        return types.QueryDeployedModelsResponse(
            deployed_models=page,
            deployed_model_refs=refs,
            total_deployed_model_count=len(found),
            total_endpoint_count=len({endpoint.name for endpoint, _ in found}),
            next_page_token=token,
        )

    def delete_deployment_resource_pool(
        self, request: types.DeleteDeploymentResourcePoolRequest
    ) -> operations_pb2.Operation:
        """Remove one that nothing is deployed to."""
        name, store = names.check_name(request.name, "deploymentResourcePools"), self._store
        store.get(DEPLOYMENT_RESOURCE_POOLS, name)
        _refuse_deployed(store, name)

        def work(progress: Progress) -> empty_pb2.Empty:
            progress.check()
            with store.transaction():
                _refuse_deployed(store, name)
                store.delete(DEPLOYMENT_RESOURCE_POOLS, name)
            return empty_pb2.Empty()

        call = "DeploymentResourcePoolService.DeleteDeploymentResourcePool"
        return self._operations.start(call, name, types.DeleteOperationMetadata(), work)


def check_shared(store: Store, deployed: DeployedModel, version: Model, find_version: FindVersion) -> Iterator[Finding]:
    """Find what is wrong with a model that shall be deployed to shared machines.

    Raises:
        NotFound: There is no such pool.
    """
    field, image = "deployed_model.shared_resources", version.container_spec.image_uri
    name = names.check_name(deployed.shared_resources, "deploymentResourcePools", field=field)
    store.get(DEPLOYMENT_RESOURCE_POOLS, name)
    if not _PREBUILT.match(image):
        yield field, f"{image} is no pre-built container for TensorFlow or PyTorch, which alone share machines."
    if "explanation_spec" in deployed:
        yield field, "Models that share machines are not explained. Deploy it with disable_explanations."
    for endpoint, other in _deployed_to(store, name):
        found = find_version(names.parse_model(f"{other.model}@{other.model_version_id}")).container_spec.image_uri
        if found != image:
            yield field, f"{name} has {other.id} of {endpoint.name} with {found}. Expected that image, not {image}."
            return


def _check(pool: DeploymentResourcePool, pool_id: str) -> Iterator[Finding]:
    field = "deployment_resource_pool"
    yield from check_id(pool_id, _ID, "at most 63 lower-case letters, digits and dashes", "deployment_resource_pool_id")
    resources = pool.dedicated_resources
    yield from check_machine(resources.machine_spec, "prediction", f"{field}.dedicated_resources.machine_spec")
    if resources.min_replica_count < 1:
        yield f"{field}.dedicated_resources.min_replica_count", "It is 0. Expected 1 or more."
    if resources.max_replica_count and resources.max_replica_count < resources.min_replica_count:
        yield f"{field}.dedicated_resources.max_replica_count", "It is less than min_replica_count."


def _deployed_to(store: Store, pool_name: str) -> Iterator[tuple[Endpoint, DeployedModel]]:
    for endpoint in store.list_all(ENDPOINTS):
        for deployed in endpoint.deployed_models:
            if deployed.shared_resources == pool_name:
                yield endpoint, deployed


def _refuse_deployed(store: Store, name: str) -> None:
    if found := [f"{deployed.id} of {endpoint.name}" for endpoint, deployed in _deployed_to(store, name)]:
        raise FailedPrecondition(
            f"The DeploymentResourcePool {name} has deployed models: {found}. Undeploy them first."
        )
