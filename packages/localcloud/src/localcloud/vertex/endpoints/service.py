"""EndpointService: endpoints, and how their traffic is shared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Endpoint
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.endpoints import private_connections, traffic
from localcloud.vertex.endpoints.addresses import dedicated_address
from localcloud.vertex.endpoints.checks import check_endpoint
from localcloud.vertex.endpoints.request_log import complete_destination
from localcloud.vertex.endpoints.traffic import deployed_ids
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import ENDPOINTS, Store, now
from localcloud.vertex.resources.validation import (
    refuse,
)
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import Aborted, AlreadyExists, FailedPrecondition, InvalidArgument
from localcloud.vertex.wire.listing import ENDPOINT_FIELDS, list_page
from localcloud.vertex.wire.methods import message_bytes

_UPDATABLE = {
    "display_name",
    "description",
    "labels",
    "traffic_split",
    "predict_request_response_logging_config",
    "client_connection_config",
}


class Endpoints:
    """Answers what is asked of endpoints.

    Args:
        operations: Makes and deletes them in the background.
        project_number: Gives that of a project, which is part of dedicated endpoints' addresses.
    """

    def __init__(self, store: Store, operations: Operations, project_number: Callable[[str], str]) -> None:
        self._store = store
        self._operations = operations
        self._project_number = project_number

    def create_endpoint(self, request: types.CreateEndpointRequest) -> operations_pb2.Operation:
        """Keep a new endpoint, under the requested id or a generated one."""
        location, store = names.parse_location(request.parent), self._store
        endpoint = Endpoint()
        Endpoint.copy_from(endpoint, request.endpoint)
        refuse(check_endpoint(endpoint, request.endpoint_id))
        private_connections.clear(endpoint)
        traffic.check(endpoint.traffic_split, [])
        name = f"{location}/endpoints/{request.endpoint_id or names.new_id()}"
        if store.find_resource(ENDPOINTS, name) is not None:
            raise AlreadyExists(f"The Endpoint {name} already exists.")
        endpoint.name = name
        if endpoint.dedicated_endpoint_enabled:
            endpoint.dedicated_endpoint_dns = dedicated_address(name, self._project_number)
        complete_destination(endpoint)

        def work(progress: Progress) -> Endpoint:
            progress.check()
            endpoint.create_time = endpoint.update_time = now()
            store.insert(ENDPOINTS, name, request.parent, endpoint)
            return _with_etag(endpoint)

        return self._operations.start(
            "EndpointService.CreateEndpoint", name, types.CreateEndpointOperationMetadata(), work
        )

    def get_endpoint(self, request: types.GetEndpointRequest) -> Endpoint:
        """Return the endpoint as it stands."""
        return _with_etag(self._store.get(ENDPOINTS, names.check_name(request.name, "endpoints")))

    def list_endpoints(self, request: types.ListEndpointsRequest) -> types.ListEndpointsResponse:
        """Return endpoints of a location, newest first."""
        names.parse_location(request.parent)
        endpoints = [_with_etag(endpoint) for endpoint in self._store.list_under(ENDPOINTS, request.parent)]
        page, token = list_page(endpoints, request, ENDPOINT_FIELDS)
        return types.ListEndpointsResponse(endpoints=page, next_page_token=token)

    def update_endpoint(self, request: types.UpdateEndpointRequest) -> Endpoint:
        """Change the fields that the mask names."""
        return self._update(request.endpoint, list(request.update_mask.paths))

    def update_endpoint_long_running(self, request: types.UpdateEndpointLongRunningRequest) -> operations_pb2.Operation:
        """Change what may be changed at run time, as an operation."""
        names.check_name(request.endpoint.name, "endpoints", field="endpoint.name")
        paths = [name for name in _UPDATABLE if name in request.endpoint]

        def work(progress: Progress) -> Endpoint:
            progress.check()
            return self._update(request.endpoint, paths)

        return self._operations.start(
            "EndpointService.UpdateEndpointLongRunning",
            request.endpoint.name,
            types.UpdateEndpointOperationMetadata(),
            work,
        )

    def delete_endpoint(self, request: types.DeleteEndpointRequest) -> operations_pb2.Operation:
        """Remove an endpoint to which nothing is deployed."""
        store = self._store
        _refuse_deployed(store.get(ENDPOINTS, names.check_name(request.name, "endpoints")))

        def work(progress: Progress) -> empty_pb2.Empty:
            progress.check()
            with store.transaction():
                _refuse_deployed(store.get(ENDPOINTS, request.name))
                store.delete(ENDPOINTS, request.name)
            return empty_pb2.Empty()

        return self._operations.start(
            "EndpointService.DeleteEndpoint", request.name, types.DeleteOperationMetadata(), work
        )

    def _update(self, requested: Endpoint, paths: list[str]) -> Endpoint:
        name = names.check_name(requested.name, "endpoints", field="endpoint.name")
        if wrong := [path for path in paths if path.split(".")[0] not in _UPDATABLE]:
            raise InvalidArgument(
                f"update_mask names {wrong}. Expected some of {sorted(_UPDATABLE)}.", field="update_mask"
            )
        refuse(
            [
                finding
                for finding in check_endpoint(requested, "")
                if finding[0].split(".")[1].split("[")[0] in {path.split(".")[0] for path in paths}
            ]
        )
        with self._store.change(ENDPOINTS, name) as stored:
            if requested.etag and requested.etag != _with_etag(stored).etag:
                raise Aborted(
                    f"The etag {requested.etag!r} of {name} is not the present one. Read the endpoint again and"
                    f" repeat the change."
                )
            for path in paths:
                field, _, key = path.partition(".")
                if key and field in ("labels", "traffic_split"):
                    getattr(stored, field)[key] = getattr(requested, field)[key]
                else:
                    setattr(stored, field, getattr(requested, field))
            traffic.check(stored.traffic_split, deployed_ids(stored))
            complete_destination(stored)
            stored.etag, stored.update_time = "", now()
        return _with_etag(stored)


def _refuse_deployed(endpoint: Endpoint) -> None:
    if endpoint.deployed_models:
        raise FailedPrecondition(
            f"The Endpoint {endpoint.name} has deployed models: {deployed_ids(endpoint)}. Undeploy them first."
        )


def _with_etag(endpoint: Endpoint) -> Endpoint:
    endpoint.etag = ""
    endpoint.etag = hashlib.sha256(message_bytes(endpoint)).hexdigest()[:16]
    return endpoint
