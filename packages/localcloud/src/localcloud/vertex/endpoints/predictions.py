"""PredictionService: choose a deployed model by the traffic split, ask it, measure and log the answer."""

from __future__ import annotations

import json
import random

from google.api import httpbody_pb2
from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import DeployedModel, Endpoint, PredictResponse
from google.protobuf import struct_pb2

from localcloud.vertex.endpoints import addresses, traffic
from localcloud.vertex.endpoints.meter import Measured, Meter
from localcloud.vertex.endpoints.request_log import Json, RequestLog
from localcloud.vertex.endpoints.served_model import JSON
from localcloud.vertex.endpoints.serving import Serving
from localcloud.vertex.processes.serving_contract import read_predictions, request_body
from localcloud.vertex.resources.store import ENDPOINTS, Store
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition, InvalidArgument
from localcloud.vertex.wire.methods import Answer, raw

# https://cloud.google.com/vertex-ai/docs/quotas#request-size: of a public endpoint.
MAX_REQUEST_BYTES = 1_572_864
_CHANCE = random.Random()


class Predictions:
    """Answers requests for predictions.

    Args:
        serving: Runs what is deployed to them.
        request_log: Takes a sample of what is asked and answered.
        meter: Takes the code and the time of every answer.
    """

    def __init__(self, store: Store, serving: Serving, request_log: RequestLog, meter: Meter) -> None:
        self._store = store
        self._serving = serving
        self._request_log = request_log
        self._meter = meter

    def check_host(self, request: types.PredictRequest | types.RawPredictRequest, host: str) -> None:
        """Refuse a host at which this endpoint does not answer.

        Raises:
            ApiError: It does not.
        """
        addresses.check_request(self._store, request.endpoint, host)

    def predict(self, request: types.PredictRequest) -> PredictResponse:
        """Return predictions for instances, one each."""
        endpoint = find_endpoint(self._store, request.endpoint)
        deployed = choose_deployed(endpoint)
        instances = [to_json(value) for value in raw(request).instances]
        parameters = to_json(raw(request).parameters)
        with self._meter.measure(endpoint.name, deployed.id, len(instances)) as measured:
            answer = self._ask(endpoint, deployed, request_body(instances, parameters), measured)
            predictions = read_predictions(answer, len(instances))
        self._request_log.record(endpoint, deployed.id, instances, predictions)
        response = PredictResponse(
            deployed_model_id=deployed.id,
            model=deployed.model,
            model_version_id=deployed.model_version_id,
            model_display_name=deployed.display_name,
        )
        raw(response).predictions.extend(to_value(prediction) for prediction in predictions)
        return response

    def raw_predict(self, request: types.RawPredictRequest) -> Answer:
        """Return the container's own answer to the container's own request."""
        endpoint = find_endpoint(self._store, request.endpoint)
        deployed = choose_deployed(endpoint)
        data = bytes(request.http_body.data)
        instances = _rows(data, "instances")
        with self._meter.measure(endpoint.name, deployed.id, len(instances)) as measured:
            answer = self._ask(endpoint, deployed, data, measured, request.http_body.content_type or JSON)
        self._request_log.record(endpoint, deployed.id, instances, _rows(answer, "predictions"))
        headers = {
            "X-Vertex-AI-Endpoint-Id": names.last_part(endpoint.name),
            "X-Vertex-AI-Deployed-Model-Id": deployed.id,
            "X-Vertex-AI-Model": deployed.model,
            "X-Vertex-AI-Model-Version-Id": deployed.model_version_id,
        }
        return Answer(httpbody_pb2.HttpBody(content_type="application/json", data=answer), headers)

    def _ask(
        self, endpoint: Endpoint, deployed: DeployedModel, body: bytes, measured: Measured, content_type: str = JSON
    ) -> bytes:
        check_size(body)
        with measured.model_time():
            return self._serving.predict(endpoint, deployed.id, body, content_type)


def check_size(body: bytes) -> None:
    """Refuse what a public endpoint does not take.

    Raises:
        InvalidArgument: It is too large.
    """
    if len(body) > MAX_REQUEST_BYTES:
        raise InvalidArgument(
            f"The request has {len(body)} bytes. Expected at most {MAX_REQUEST_BYTES}, the limit of a public"
            " endpoint. Send fewer instances at a time."
        )


def find_endpoint(store: Store, name: str) -> Endpoint:
    """Return an endpoint to which something is deployed.

    Raises:
        ApiError: There is none, or nothing is.
    """
    if "/publishers/" in name:
        raise InvalidArgument(
            f"The local cloud has no publisher models: {name!r}. Expected projects/…/locations/…/endpoints/….",
            field="endpoint",
        )
    endpoint = store.get(ENDPOINTS, names.check_name(name, "endpoints", field="endpoint"))
    if not endpoint.deployed_models:
        raise FailedPrecondition(f"The Endpoint {name} has no deployed model. Deploy one first.")
    return endpoint


def choose_deployed(endpoint: Endpoint) -> DeployedModel:
    """Return the deployed model that answers a request, by chance and the traffic split.

    Raises:
        FailedPrecondition: None gets requests.
    """
    chosen = traffic.choose(endpoint.traffic_split, _CHANCE)
    for deployed in endpoint.deployed_models:
        if deployed.id == chosen:
            return deployed
    raise FailedPrecondition(
        f"The Endpoint {endpoint.name} has an empty traffic split: none of"
        f" {[d.id for d in endpoint.deployed_models]} gets requests. Set traffic_split."
    )


def to_json(value: struct_pb2.Value) -> Json:
    """Return a protobuf Value as a JSON value; whole numbers become integers, as proto JSON prints them."""
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if kind == "list_value":
        return [to_json(item) for item in value.list_value.values]
    if kind == "struct_value":
        return {key: to_json(item) for key, item in value.struct_value.fields.items()}
    return getattr(value, kind) if kind in ("string_value", "bool_value") else None


def to_value(value: Json) -> struct_pb2.Value:
    """Return a JSON value as a protobuf Value (NaN too, which the JSON form of a Value does not have)."""
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, int | float):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, list):
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[to_value(item) for item in value]))
    if isinstance(value, dict):
        return struct_pb2.Value(
            struct_value=struct_pb2.Struct(fields={key: to_value(item) for key, item in value.items()})
        )
    return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)


def _rows(body: bytes, key: str) -> list[Json]:
    """Return the rows of a container's JSON body, or the body as its one row when it has another form."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    rows = document.get(key) if isinstance(document, dict) else None
    return rows if isinstance(rows, list) else [body.decode(errors="replace")]
