"""Where an endpoint answers: at its region's host, a dedicated one at its own alone, a private one in its networks.

Comes in: an endpoint, the host that was asked. Goes out: its address; a refusal of the wrong host.
https://cloud.google.com/vertex-ai/docs/predictions/choose-endpoint-type
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from google.cloud.aiplatform_v1.types import Endpoint

from localcloud.vertex.endpoints.private_connections import addresses, is_private
from localcloud.vertex.resources.store import ENDPOINTS, Store
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition

_DEDICATED = ".prediction.vertexai.goog"
_PRIVATE = ".prediction.p.vertexai.goog"
_SHARED = "aiplatform.googleapis.com"


def dedicated_address(endpoint_name: str, project_number: Callable[[str], str]) -> str:
    """Return the host of a dedicated endpoint, without `https://`: Google's SDK puts that before it."""
    location = names.parse_location(str(names.location_of(endpoint_name)))
    return f"{names.last_part(endpoint_name)}.{location.region}-{project_number(location.project)}{_DEDICATED}"


def check_request(store: Store, endpoint_name: str, host: str) -> None:
    """Refuse a request that was sent to a host at which its endpoint, if there is one, does not answer.

    Raises:
        FailedPrecondition: It does not.
    """
    endpoint = store.find_resource(ENDPOINTS, endpoint_name)
    if endpoint is not None:
        check_host(endpoint, host)


def check_host(endpoint: Endpoint, host: str) -> None:
    """Refuse a request that was sent to a host of another endpoint, or to the shared one of a dedicated endpoint.

    Args:
        endpoint: Which is asked.
        host: Where; of a bare port nothing is known, and nothing refused.

    Raises:
        FailedPrecondition: It does not answer there.
    """
    asked, own = host.rsplit(":", 1)[0], endpoint.dedicated_endpoint_dns
    if is_private(endpoint) or asked.endswith(_PRIVATE) or _is_address(asked):
        _check_private(endpoint, asked)
        return
    if own and asked.endswith(_SHARED):
        raise FailedPrecondition(
            f"Dedicated Endpoint cannot be accessed through the shared Vertex AI domain {_SHARED}. Please access the"
            f" endpoint using its dedicated dns name {own!r}."
        )
    if asked.endswith(_DEDICATED) and asked != own:
        answers = f"at {own}" if own else "at its region's host, for it is no dedicated one"
        raise FailedPrecondition(f"{endpoint.name} does not answer at {asked}. Expected a request {answers}.")


def _check_private(endpoint: Endpoint, asked: str) -> None:
    """Refuse a request to a private endpoint from without, or to another at a private endpoint's address."""
    if not is_private(endpoint):
        raise FailedPrecondition(f"{endpoint.name} does not answer at {asked}, for it is no private endpoint.")
    if asked.endswith((_SHARED, _DEDICATED)):
        raise FailedPrecondition(
            f"{endpoint.name} uses Private Service Connect and cannot be accessed through {asked}. Send the request"
            " to the address of its forwarding rule, from a network that it is connected to."
        )
    if _is_address(asked) and asked not in addresses(endpoint):
        raise FailedPrecondition(f"{endpoint.name} does not answer at {asked}. It has {addresses(endpoint)}.")
    if not endpoint.private_service_connect_config.service_attachment:
        raise FailedPrecondition(f"{endpoint.name} has no service attachment, for nothing is deployed to it.")


def _is_address(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
