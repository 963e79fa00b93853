"""An endpoint of the local cloud, asked as any application would."""

from __future__ import annotations

import contextlib
import time
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


def retire(endpoint_name: str, within_s: float = 120.0) -> None:
    """End what serves, what has the traffic last, for the tests of other files."""
    from retraining.core.errors import ConflictError
    from retraining.hooks.cloud import Cloud

    endpoints, until = Cloud().endpoints, time.monotonic() + within_s
    while (endpoint := endpoints.read_endpoint(endpoint_name)).deployed:
        assert time.monotonic() < until, f"{endpoint.deployed} stay on {endpoint_name}"
        if not endpoints.running_operations(endpoint):
            with contextlib.suppress(ConflictError):
                endpoints.undeploy(endpoint, min(endpoint.deployed, key=lambda one: endpoint.traffic.get(one, 0)))
        time.sleep(0.05)
