"""An endpoint of the local cloud, asked as any application would."""

from __future__ import annotations

from typing import Any

import google.auth
from google.auth.transport.requests import AuthorizedSession


def predict(endpoint_name: str, instances: list[Any]) -> list[Any]:
    """Ask as any application would."""
    region = endpoint_name.split("/")[3]
    url = f"https://{region}-aiplatform.googleapis.com/v1/{endpoint_name}:predict"
    session = AuthorizedSession(google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])[0])
    answer = session.post(url, json={"instances": instances}, timeout=60)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["predictions"])


def retire(endpoint_name: str) -> None:
    """End what serves, for the tests of other files."""
    from retraining.hooks.cloud import Cloud

    endpoints = Cloud().endpoints
    endpoint = endpoints.read_endpoint(endpoint_name)
    for deployed_id in endpoint.deployed:
        endpoints.undeploy(endpoint, deployed_id)
