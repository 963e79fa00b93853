"""EndpointService: endpoints, what is deployed to them, and how their traffic is shared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import DeployedModel, Endpoint, Model
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex import names, traffic
from localcloud.vertex.errors import Aborted, AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from localcloud.vertex.listing import ENDPOINT_FIELDS, list_page
from localcloud.vertex.machines import check_machine
from localcloud.vertex.methods import message_bytes
from localcloud.vertex.request_log import complete_destination
from localcloud.vertex.schema import clear_output_only
from localcloud.vertex.store import ENDPOINTS, now
from localcloud.vertex.validation import Finding, check_display_name, check_id, check_labels, refuse, split_bigquery_uri
from localcloud.vertex.versions import find_version

if TYPE_CHECKING:
    from localcloud.vertex.dispatch import Context
    from localcloud.vertex.operations import Progress

_ENDPOINT_ID = r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?|[1-9][0-9]{0,8}"
_ENDPOINT_ID_WORDS = (
    "a letter, then up to 62 of [a-z0-9-] with a letter or digit last;"
    " or a number of at most 9 digits without leading zero"
)
_UPDATABLE = {
    "display_name",
    "description",
    "labels",
    "traffic_split",
    "predict_request_response_logging_config",
    "client_connection_config",
}
_MUTABLE = {
    "dedicated_resources.min_replica_count",
    "dedicated_resources.max_replica_count",
    "dedicated_resources.required_replica_count",
    "dedicated_resources.autoscaling_metric_specs",
    "disable_container_logging",
}


def create_endpoint(request: types.CreateEndpointRequest, context: Context) -> operations_pb2.Operation:
    """Keep a new endpoint, under the wished id or a generated one."""
    location, store = names.parse_location(request.parent), context.cloud.store
    endpoint = Endpoint()
    Endpoint.copy_from(endpoint, request.endpoint)
    clear_output_only(endpoint)
    refuse(_check_endpoint(endpoint, request.endpoint_id))
    traffic.check(endpoint.traffic_split, [])
    name = f"{location}/endpoints/{request.endpoint_id or names.new_id()}"
    if store.find(ENDPOINTS, name) is not None:
        raise AlreadyExists(f"The Endpoint {name} already exists.")
    endpoint.name = name
    complete_destination(endpoint)

    def work(progress: Progress) -> Endpoint:
        progress.check()
        endpoint.create_time = endpoint.update_time = now()
        store.insert(ENDPOINTS, name, request.parent, endpoint)
        return _with_etag(endpoint)

    return context.cloud.operations.start(context, name, types.CreateEndpointOperationMetadata(), work)


def get_endpoint(request: types.GetEndpointRequest, context: Context) -> Endpoint:
    """The endpoint as it stands."""
    return _with_etag(context.cloud.store.get(ENDPOINTS, names.check_name(request.name, "endpoints")))


def list_endpoints(request: types.ListEndpointsRequest, context: Context) -> types.ListEndpointsResponse:
    """Endpoints of a location, newest first."""
    names.parse_location(request.parent)
    found = [_with_etag(endpoint) for endpoint in context.cloud.store.list_under(ENDPOINTS, request.parent)]
    page, token = list_page(found, request, ENDPOINT_FIELDS)
    return types.ListEndpointsResponse(endpoints=page, next_page_token=token)


def update_endpoint(request: types.UpdateEndpointRequest, context: Context) -> Endpoint:
    """Change the fields that the mask names."""
    return _update(request.endpoint, list(request.update_mask.paths), context)


def update_endpoint_long_running(
    request: types.UpdateEndpointLongRunningRequest, context: Context
) -> operations_pb2.Operation:
    """Change what may be changed at run time, as an operation."""
    names.check_name(request.endpoint.name, "endpoints", field="endpoint.name")
    paths = [name for name in _UPDATABLE if name in request.endpoint]

    def work(progress: Progress) -> Endpoint:
        progress.check()
        return _update(request.endpoint, paths, context)

    return context.cloud.operations.start(context, request.endpoint.name, types.UpdateEndpointOperationMetadata(), work)


def delete_endpoint(request: types.DeleteEndpointRequest, context: Context) -> operations_pb2.Operation:
    """Remove an endpoint to which nothing is deployed."""
    store = context.cloud.store
    _refuse_deployed(store.get(ENDPOINTS, names.check_name(request.name, "endpoints")))

    def work(progress: Progress) -> empty_pb2.Empty:
        progress.check()
        with store.transaction():
            _refuse_deployed(store.get(ENDPOINTS, request.name))
            store.delete(ENDPOINTS, request.name)
        return empty_pb2.Empty()

    return context.cloud.operations.start(context, request.name, types.DeleteOperationMetadata(), work)


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
    traffic.after_deploy(endpoint.traffic_split, wished, deployed.id, _ids(endpoint))

    def work(progress: Progress) -> types.DeployModelResponse:
        context.cloud.serving.deploy(endpoint.name, deployed, version, progress)
        try:
            with store.change(ENDPOINTS, endpoint.name) as changed:
                if deployed.id in _ids(changed):
                    raise AlreadyExists(f"The DeployedModel {deployed.id} already exists on {endpoint.name}.")
                changed.traffic_split = traffic.after_deploy(changed.traffic_split, wished, deployed.id, _ids(changed))
                changed.deployed_models.append(deployed)
                changed.update_time = now()
        except BaseException:
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


def _check_endpoint(endpoint: Endpoint, endpoint_id: str) -> Iterator[Finding]:
    if endpoint_id:
        yield from check_id(endpoint_id, _ENDPOINT_ID, _ENDPOINT_ID_WORDS, "endpoint_id")
    yield from check_display_name(endpoint.display_name, "endpoint.display_name")
    yield from check_labels(endpoint.labels, "endpoint.labels")
    yield from _check_logging(endpoint.predict_request_response_logging_config)


def _check_logging(config: types.PredictRequestResponseLoggingConfig) -> Iterator[Finding]:
    field = "endpoint.predict_request_response_logging_config"
    if not config.enabled:
        return
    if not 0 < config.sampling_rate <= 1:
        yield (
            f"{field}.sampling_rate",
            f"The sampling rate is {config.sampling_rate:g}. Expected more than 0 and at most 1.",
        )
    if split_bigquery_uri(config.bigquery_destination.output_uri) is None:
        yield (
            f"{field}.bigquery_destination.output_uri",
            f"{config.bigquery_destination.output_uri!r} is no BigQuery address. Expected bq://project[.dataset[.table]].",
        )


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
        if deployed.id in (*_ids(endpoint), traffic.NEW):
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


def _update(wished: Endpoint, paths: list[str], context: Context) -> Endpoint:
    name = names.check_name(wished.name, "endpoints", field="endpoint.name")
    if wrong := [path for path in paths if path.split(".")[0] not in _UPDATABLE]:
        raise InvalidArgument(f"update_mask names {wrong}. Expected some of {sorted(_UPDATABLE)}.", field="update_mask")
    refuse(
        [
            finding
            for finding in _check_endpoint(wished, "")
            if finding[0].split(".")[1].split("[")[0] in {path.split(".")[0] for path in paths}
        ]
    )
    with context.cloud.store.change(ENDPOINTS, name) as stored:
        if wished.etag and wished.etag != _with_etag(stored).etag:
            raise Aborted(
                f"The etag {wished.etag!r} of {name} is not the present one. Read the endpoint again and"
                f" repeat the change."
            )
        for path in paths:
            field, _, key = path.partition(".")
            if key and field in ("labels", "traffic_split"):
                getattr(stored, field)[key] = getattr(wished, field)[key]
            else:
                setattr(stored, field, getattr(wished, field))
        traffic.check(stored.traffic_split, _ids(stored))
        complete_destination(stored)
        stored.etag, stored.update_time = "", now()
    return _with_etag(stored)


def _ids(endpoint: Endpoint) -> list[str]:
    return [deployed.id for deployed in endpoint.deployed_models]


def _find_deployed(endpoint: Endpoint, deployed_model_id: str) -> DeployedModel:
    for deployed in endpoint.deployed_models:
        if deployed.id == deployed_model_id:
            return deployed
    raise NotFound(
        f"The DeployedModel {deployed_model_id!r} does not exist on {endpoint.name}. It has {_ids(endpoint)}."
    )


def _split_without(endpoint: Endpoint, gone: str, wished: dict[str, int]) -> dict[str, int]:
    _find_deployed(endpoint, gone)
    remaining = [deployed_id for deployed_id in _ids(endpoint) if deployed_id != gone]
    return traffic.after_undeploy(endpoint.traffic_split, wished, gone, remaining)


def _refuse_deployed(endpoint: Endpoint) -> None:
    if endpoint.deployed_models:
        raise FailedPrecondition(
            f"The Endpoint {endpoint.name} has deployed models: {_ids(endpoint)}. Undeploy them first."
        )


def _with_etag(endpoint: Endpoint) -> Endpoint:
    endpoint.etag = ""
    endpoint.etag = hashlib.sha256(message_bytes(endpoint)).hexdigest()[:16]
    return endpoint
