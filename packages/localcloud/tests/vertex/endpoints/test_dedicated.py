"""A dedicated endpoint through Google's client: it answers at its own host alone, and no other endpoint does there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1
from google.protobuf import json_format, struct_pb2

from packages.localcloud.tests.vertex.conftest import deploy

INSTANCE = {"carrier": "UA", "distance": 3.0}


def ask(address: str, endpoint: str) -> v1.PredictResponse:
    """One prediction, asked at a host."""
    client = v1.PredictionServiceClient(client_options={"api_endpoint": address})
    return client.predict(endpoint=endpoint, instances=[json_format.ParseDict(INSTANCE, struct_pb2.Value())])


@pytest.fixture(scope="module")
def endpoint(api, upload) -> Iterator[v1.Endpoint]:
    """A dedicated endpoint that serves."""
    dedicated: dict[str, Any] = {"display_name": "alone", "dedicated_endpoint_enabled": True}
    made = api.endpoints.create_endpoint(parent=api.parent, endpoint=dedicated, endpoint_id="alone").result(timeout=10)
    deploy(api, made.name, upload("alone").model, {"0": 100}, id="1")
    yield api.endpoints.get_endpoint(name=made.name)
    api.endpoints.undeploy_model(endpoint=made.name, deployed_model_id="1").result(timeout=30)
    api.endpoints.delete_endpoint(name=made.name).result(timeout=10)


def test_it_answers_at_its_own_host(local_cloud, endpoint):
    """Over gRPC and REST, as its address says."""
    address = endpoint.dedicated_endpoint_dns
    assert address == f"alone.{local_cloud.region}-123456789012.prediction.vertexai.goog"
    assert list(ask(address, endpoint.name).predictions) == [6.0]
    url = f"https://{address}/v1/{endpoint.name}:predict"
    told: requests.Response = local_cloud.http.post(url, json={"instances": [INSTANCE]}, timeout=60)
    assert told.json()["predictions"] == [6.0]


def test_the_shared_host_refuses_it(local_cloud, endpoint, rest):
    """By the service's words, over both."""
    words = "cannot be accessed through the shared Vertex AI domain aiplatform.googleapis.com.*alone"
    with pytest.raises(exceptions.FailedPrecondition, match=words):
        ask(f"{local_cloud.region}-aiplatform.googleapis.com", endpoint.name)
    told = rest("POST", f"/v1/{endpoint.name}:predict", {"instances": [INSTANCE]})
    assert (told.status_code, told.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")


def test_another_endpoint_does_not_answer_there(endpoint, empty_endpoint, api):
    """Whether it has a host of its own or not; it is still changed at the region's."""
    with pytest.raises(exceptions.FailedPrecondition, match="at its region's host"):
        ask(endpoint.dedicated_endpoint_dns, empty_endpoint)
    assert api.endpoints.get_endpoint(name=empty_endpoint).dedicated_endpoint_dns == ""
