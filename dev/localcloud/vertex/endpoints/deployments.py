"""EndpointService, deployments: what is brought up on endpoints, changed there, and taken off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import DeployedModel, Endpoint, Model
from google.longrunning import operations_pb2

from localcloud.vertex.endpoints import traffic
from localcloud.vertex.endpoints.service import deployed_ids
from localcloud.vertex.models.versions import find_version
from localcloud.vertex.resources.machines import check_machine
from localcloud.vertex.resources.store import ENDPOINTS, now
from localcloud.vertex.resources.validation import Finding, check_display_name, check_id, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import AlreadyExists, InvalidArgument, NotFound
from localcloud.vertex.wire.schema import clear_output_only

if TYPE_CHECKING:
    from localcloud.vertex.front.dispatch import Context
    from localcloud.vertex.resources.operations import Progress

_MUTABLE = {
    "dedicated_resources.min_replica_count",
    "dedicated_resources.max_replica_count",
    "dedicated_resources.required_replica_count",
    "dedicated_resources.autoscaling_metric_specs",
    "disable_container_logging",
}


def deploy_model(request: types.DeployModelRequest, context: Context) -> operations_pb2.Operation:
    """Bring a model version up on an endpoint, then give it its share of the traffic."""
    store = context.cloud.store
    endpoint = store.get(ENDPOINTS, names.check_name(request.endpoint, "endpoints", field="endpoint"))
    deployed = DeployedModel()
    DeployedModel.copy_from(deployed, request.deployed_model)
    clear_output_only(deployed)
    version = find_version(store, names.parse_model(deployed.model, "deployed_model.model"))
    refuse(_check_deployed_model(deployed, endpoint))
    _complete(deployed, version)
    wished = dict(request.traffic_split)
    traffic.after_deploy(endpoint.traffic_split, wished, deployed.id, deployed_ids(endpoint))

    def work(progress: Progress) -> types.DeployModelResponse:
        context.cloud.serving.deploy(endpoint.name, deployed, version, progress)
        try:
            with store.change(ENDPOINTS, endpoint.name) as changed:
                if deployed.id in deployed_ids(changed):
                    raise AlreadyExists(f"The DeployedModel {deployed.id} already exists on {endpoint.name}.")
                changed.traffic_split = traffic.after_deploy(
                    changed.traffic_split, wished, deployed.id, deployed_ids(changed)
                )
                changed.deployed_models.append(deployed)
                changed.update_time = now()
        except BaseException:  # whatever it was: a server that no endpoint names would run for ever
            context.cloud.serving.undeploy(endpoint.name, deployed.id)
            raise
        return types.DeployModelResponse(deployed_model=deployed)

    return context.cloud.operations.start(context, endpoint.name, types.DeployModelOperationMetadata(), work)


def undeploy_model(request: types.UndeployModelRequest, context: Context) -> operations_pb2.Operation:
    """Take a deployed model without traffic off an endpoint."""
    store = context.cloud.store
    endpoint = store.get(ENDPOINTS, names.check_name(request.endpoint, "endpoints", field="endpoint"))
    gone, wished = request.deployed_model_id, dict(request.traffic_split)
    _split_without(endpoint, gone, wished)

    def work(progress: Progress) -> types.UndeployModelResponse:
        progress.check()
        with store.change(ENDPOINTS, endpoint.name) as changed:
            changed.traffic_split = _split_without(changed, gone, wished)
            changed.deployed_models = [deployed for deployed in changed.deployed_models if deployed.id != gone]
            changed.update_time = now()
        context.cloud.serving.undeploy(endpoint.name, gone)
        return types.UndeployModelResponse()

    return context.cloud.operations.start(context, endpoint.name, types.UndeployModelOperationMetadata(), work)


def mutate_deployed_model(request: types.MutateDeployedModelRequest, context: Context) -> operations_pb2.Operation:
    """Change replica counts and logging of a deployed model."""
    store = context.cloud.store
    endpoint = store.get(ENDPOINTS, names.check_name(request.endpoint, "endpoints", field="endpoint"))
    _find_deployed(endpoint, request.deployed_model.id)
    paths = list(request.update_mask.paths)
    if wrong := [path for path in paths if path not in _MUTABLE]:
        raise InvalidArgument(f"update_mask names {wrong}. Expected some of {sorted(_MUTABLE)}.", field="update_mask")

    def work(progress: Progress) -> types.MutateDeployedModelResponse:
        progress.check()
        with store.change(ENDPOINTS, endpoint.name) as changed:
            deployed = _find_deployed(changed, request.deployed_model.id)
            request.update_mask.MergeMessage(
                DeployedModel.pb(request.deployed_model), DeployedModel.pb(deployed), replace_repeated_field=True
            )
            changed.update_time = now()
        return types.MutateDeployedModelResponse(deployed_model=deployed)

    return context.cloud.operations.start(context, endpoint.name, types.MutateDeployedModelOperationMetadata(), work)


def _check_deployed_model(deployed: DeployedModel, endpoint: Endpoint) -> Iterator[Finding]:
    if "dedicated_resources" not in deployed:
        yield (
            "deployed_model.dedicated_resources",
            "The model supports only DEDICATED_RESOURCES. Set dedicated_resources with a machine_spec.",
        )
        return
    resources = deployed.dedicated_resources
    yield from check_machine(resources.machine_spec, "prediction", "deployed_model.dedicated_resources.machine_spec")
    if resources.max_replica_count and resources.max_replica_count < resources.min_replica_count:
        yield (
            "deployed_model.dedicated_resources.max_replica_count",
            f"It is {resources.max_replica_count}, less than min_replica_count {resources.min_replica_count}.",
        )
    if deployed.id:
        yield from check_id(deployed.id, r"[0-9]{1,10}", "1 to 10 digits", "deployed_model.id")
        if deployed.id in (*deployed_ids(endpoint), traffic.NEW):
            yield (
                "deployed_model.id",
                f"The ID {deployed.id!r} is taken on {endpoint.name}. Expected a free one, or none.",
            )
    yield from check_display_name(deployed.display_name, "deployed_model.display_name")


def _complete(deployed: DeployedModel, version: Model) -> None:
    deployed.id = deployed.id or names.new_id()
    deployed.model, deployed.model_version_id = version.name, version.version_id
    deployed.display_name = deployed.display_name or version.display_name
    deployed.create_time = now()
    resources = deployed.dedicated_resources
    resources.max_replica_count = resources.max_replica_count or resources.min_replica_count


def _find_deployed(endpoint: Endpoint, deployed_model_id: str) -> DeployedModel:
    for deployed in endpoint.deployed_models:
        if deployed.id == deployed_model_id:
            return deployed
    raise NotFound(
        f"The DeployedModel {deployed_model_id!r} does not exist on {endpoint.name}. It has {deployed_ids(endpoint)}."
    )


def _split_without(endpoint: Endpoint, gone: str, wished: dict[str, int]) -> dict[str, int]:
    _find_deployed(endpoint, gone)
    remaining = [deployed_id for deployed_id in deployed_ids(endpoint) if deployed_id != gone]
    return traffic.after_undeploy(endpoint.traffic_split, wished, gone, remaining)
