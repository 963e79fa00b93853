"""A private endpoint through Google's clients: it answers at the addresses in its networks, and nowhere else."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import google.auth
import pytest
import requests
import urllib3
from google.api_core import exceptions
from google.auth.transport.requests import Request
from google.cloud import aiplatform
from google.cloud import aiplatform_v1 as v1
from google.cloud.aiplatform_v1.types.service_networking import PSCAutomationState
from google.protobuf import json_format, struct_pb2

from packages.localcloud.tests.vertex.conftest import deploy

INSTANCE = {"carrier": "UA", "distance": 3.0}
NETWORK = "projects/the-network-project/global/networks/main"
OTHER = "projects/the-network-project/global/networks/other"


def config(*networks: str, **changes: Any) -> dict[str, Any]:
    """What makes an endpoint a private one of these networks."""
    automation = [{"project_id": "the-network-project", "network": network} for network in networks]
    allowed = ["local-project", "the-network-project"]
    made = {"enable_private_service_connect": True, "project_allowlist": allowed, "psc_automation_configs": automation}
    return {**made, **changes}


@pytest.fixture(scope="module")
def version(upload) -> str:
    """A version to deploy."""
    model: str = upload("psc_private").model
    return model


@pytest.fixture(scope="module")
def endpoint(api, version) -> Iterator[str]:
    """A private endpoint of two networks that serves."""
    private = {"display_name": "private", "private_service_connect_config": config(NETWORK, OTHER)}
    made = api.endpoints.create_endpoint(parent=api.parent, endpoint=private, endpoint_id="private").result(timeout=10)
    assert not made.private_service_connect_config.service_attachment, "nothing is deployed"
    deploy(api, made.name, version, {"0": 100}, id="1")
    yield made.name
    api.endpoints.delete_endpoint(name=made.name).result(timeout=10)


def connections(api, name: str) -> list[Any]:
    """What the service says of each network."""
    return list(api.endpoints.get_endpoint(name=name).private_service_connect_config.psc_automation_configs)


def ask(local_cloud, address: str, name: str) -> requests.Response:
    """One prediction, as a client asks that does not hold the certificate against an authority."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
        url, body = f"https://{address}/v1/{name}:predict", {"instances": [INSTANCE]}
        answer: requests.Response = local_cloud.http.post(url, json=body, timeout=60, verify=False)
        return answer


def test_it_answers_at_the_address_of_each_network(local_cloud, api, endpoint) -> None:
    """And at a name of the domain that its certificate is for."""
    first, second = connections(api, endpoint)
    assert [each.network for each in (first, second)] == [NETWORK, OTHER]
    assert first.state == PSCAutomationState.PSC_AUTOMATION_STATE_SUCCESSFUL
    assert first.ip_address != second.ip_address
    for host in (first.ip_address, second.ip_address, "private-us-central1-123456789012.prediction.p.vertexai.goog"):
        assert ask(local_cloud, host, endpoint).json()["predictions"] == [6.0]


def test_googles_own_client_asks_it(local_cloud, api, endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """`aiplatform.PrivateEndpoint` with the address."""
    address = connections(api, endpoint)[0].ip_address
    credentials = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])[0]
    credentials.refresh(Request())
    aiplatform.init(project="local-project", location=local_cloud.region, credentials=credentials)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # which go before the client's wish to verify nothing
        monkeypatch.delenv(name, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
        told = aiplatform.PrivateEndpoint(endpoint).predict(instances=[INSTANCE], endpoint_override=address)
    assert (told.predictions, told.deployed_model_id) == ([6.0], "1")


def test_nobody_trusts_its_certificate_unasked(local_cloud, api, endpoint) -> None:
    """It is signed by no authority that clients know."""
    url = f"https://{connections(api, endpoint)[0].ip_address}/v1/{endpoint}:predict"
    with pytest.raises(requests.exceptions.SSLError):
        local_cloud.http.post(url, json={"instances": [INSTANCE]}, timeout=60)


def test_the_region_refuses_it_and_no_other_answers_at_its_address(
    local_cloud, api, endpoint, empty_endpoint, rest
) -> None:
    """By name, over gRPC and REST; explanations are not to be had of it at all."""
    told = rest("POST", f"/v1/{endpoint}:predict", {"instances": [INSTANCE]})
    assert told.status_code == 400
    assert "Private Service Connect" in told.json()["error"]["message"]
    client = v1.PredictionServiceClient(
        client_options={"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com"}
    )
    with pytest.raises(exceptions.FailedPrecondition, match="Private Service Connect"):
        client.predict(endpoint=endpoint, instances=[json_format.ParseDict(INSTANCE, struct_pb2.Value())])
    address = connections(api, endpoint)[0].ip_address
    assert "no private endpoint" in ask(local_cloud, address, empty_endpoint).json()["error"]["message"]
    assert "does not answer at 10.128.9.9" in ask(local_cloud, "10.128.9.9", endpoint).json()["error"]["message"]
    told = rest("POST", f"/v1/{endpoint}:explain", {"instances": [INSTANCE]})
    assert told.status_code == 400


def test_addresses_are_given_back_with_the_last_model_and_others_come_with_the_next(api, endpoint, version) -> None:
    """As the service says of its automation; what it made cannot be sent back to it as a wish."""
    before = connections(api, endpoint)[0].ip_address
    api.endpoints.undeploy_model(endpoint=endpoint, deployed_model_id="1").result(timeout=30)
    found = api.endpoints.get_endpoint(name=endpoint).private_service_connect_config
    assert (found.service_attachment, found.psc_automation_configs[0].ip_address) == ("", "")
    deploy(api, endpoint, version, {"0": 100}, id="2")
    assert connections(api, endpoint)[0].ip_address not in ("", before)
    api.endpoints.undeploy_model(endpoint=endpoint, deployed_model_id="2").result(timeout=30)


def test_a_network_without_a_policy_gets_no_address_and_the_model_is_deployed(api, version, add_fault) -> None:
    """The state says why; a deployment beside it does not mend it."""
    private = {"display_name": "lonely", "private_service_connect_config": config(NETWORK)}
    made = api.endpoints.create_endpoint(parent=api.parent, endpoint=private, endpoint_id="lonely").result(timeout=10)
    add_fault(
        f"PscAutomation.Connect {NETWORK}", "error", code="FAILED_PRECONDITION", message="CONNECTION_POLICY_MISSING"
    )
    deploy(api, made.name, version, {"0": 100}, id="1")
    deploy(api, made.name, version, {"0": 50, "1": 50}, id="2")
    found = connections(api, made.name)[0]
    assert (found.state, found.ip_address) == (PSCAutomationState.PSC_AUTOMATION_STATE_FAILED, "")
    assert found.error_message == "CONNECTION_POLICY_MISSING"
    for deployed_id in ("1", "2"):
        split = {"2": 100} if deployed_id == "1" else {}
        api.endpoints.undeploy_model(endpoint=made.name, deployed_model_id=deployed_id, traffic_split=split).result(30)
    api.endpoints.delete_endpoint(name=made.name).result(timeout=10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"project_allowlist": ["local-project"]}, "not in project_allowlist"),
        ({"psc_automation_configs": [{"project_id": "local-project", "network": "main"}]}, "Expected projects/"),
        (
            {"psc_automation_configs": [{"project_id": "local-project", "network": "projects/123/global/networks/a"}]},
            "Expected projects/<project id>",
        ),
        ({"enable_private_service_connect": False}, "enable_private_service_connect"),
    ],
)
def test_what_makes_no_sense_is_refused(api, changes: dict[str, Any], message: str) -> None:
    """With the field."""
    private = {"display_name": "wrong", "private_service_connect_config": config(NETWORK, **changes)}
    with pytest.raises(exceptions.InvalidArgument, match=message):
        api.endpoints.create_endpoint(parent=api.parent, endpoint=private, endpoint_id="wrong")


def test_a_private_endpoint_is_no_dedicated_public_one(api) -> None:
    """Only one of both."""
    private = {
        "display_name": "both",
        "dedicated_endpoint_enabled": True,
        "private_service_connect_config": config(NETWORK),
    }
    with pytest.raises(exceptions.InvalidArgument, match="no public one"):
        api.endpoints.create_endpoint(parent=api.parent, endpoint=private, endpoint_id="both")
