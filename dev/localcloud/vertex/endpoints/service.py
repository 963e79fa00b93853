"""EndpointService: endpoints, and how their traffic is shared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Endpoint
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.endpoints import traffic
from localcloud.vertex.endpoints.request_log import complete_destination
from localcloud.vertex.resources.store import ENDPOINTS, now
from localcloud.vertex.resources.validation import (
    Finding,
    check_display_name,
    check_id,
    check_labels,
    refuse,
    split_bigquery_uri,
)
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import Aborted, AlreadyExists, FailedPrecondition, InvalidArgument
from localcloud.vertex.wire.listing import ENDPOINT_FIELDS, list_page
from localcloud.vertex.wire.methods import message_bytes
from localcloud.vertex.wire.schema import clear_output_only

if TYPE_CHECKING:
    from localcloud.vertex.front.dispatch import Context
    from localcloud.vertex.resources.operations import Progress

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
        traffic.check(stored.traffic_split, deployed_ids(stored))
        complete_destination(stored)
        stored.etag, stored.update_time = "", now()
    return _with_etag(stored)


def deployed_ids(endpoint: Endpoint) -> list[str]:
    """Ids of what is deployed to an endpoint, oldest first."""
    return [deployed.id for deployed in endpoint.deployed_models]


def _refuse_deployed(endpoint: Endpoint) -> None:
    if endpoint.deployed_models:
        raise FailedPrecondition(
            f"The Endpoint {endpoint.name} has deployed models: {deployed_ids(endpoint)}. Undeploy them first."
        )


def _with_etag(endpoint: Endpoint) -> Endpoint:
    endpoint.etag = ""
    endpoint.etag = hashlib.sha256(message_bytes(endpoint)).hexdigest()[:16]
    return endpoint
