"""Private Service Connect of an endpoint: whom it lets in, and at which addresses it answers in whose networks.

Comes in: an endpoint. Goes out: findings; the endpoint with what the service fills in. Addresses are made while a model
is deployed, for each network of `psc_automation_configs`, and are gone, with the service attachment, when nothing is.
https://cloud.google.com/vertex-ai/docs/predictions/private-service-connect
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator

from google.cloud.aiplatform_v1.types import Endpoint
from google.cloud.aiplatform_v1.types.service_networking import PSCAutomationConfig, PSCAutomationState

from localcloud.vertex.resources.validation import Finding
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError

_FIELD = "endpoint.private_service_connect_config"
_NETWORK = re.compile(r"projects/([a-z][a-z0-9-]{4,28}[a-z0-9])/global/networks/([a-z]([-a-z0-9]*[a-z0-9])?)")

Automate = Callable[[str], None]
"""Raises why no address can be made in a network."""


def is_private(endpoint: Endpoint) -> bool:
    """Whether an endpoint answers in networks alone."""
    return bool(endpoint.private_service_connect_config.enable_private_service_connect)


def check(endpoint: Endpoint) -> Iterator[Finding]:
    """Find what is wrong with an endpoint's Private Service Connect."""
    config = endpoint.private_service_connect_config
    if not is_private(endpoint):
        return  # the field is a required one of the configuration, which is refused without it
    if endpoint.dedicated_endpoint_enabled:
        yield _FIELD, "An endpoint with it is no public one. Leave dedicated_endpoint_enabled out."
    for number, each in enumerate(config.psc_automation_configs):
        field = f"{_FIELD}.psc_automation_configs[{number}]"
        if not _NETWORK.fullmatch(each.network):
            yield f"{field}.network", f"{each.network!r}. Expected projects/<project id>/global/networks/<network>."
        if each.project_id not in config.project_allowlist:
            yield f"{field}.project_id", f"{each.project_id!r} is not in project_allowlist. Expected one of it."


def clear(endpoint: Endpoint) -> None:
    """Forget what only the service fills in, for a client may send what it once read."""
    config = endpoint.private_service_connect_config
    if is_private(endpoint):
        config.service_attachment = ""
        config.psc_automation_configs = [
            PSCAutomationConfig(project_id=each.project_id, network=each.network)
            for each in config.psc_automation_configs
        ]


def connect(endpoint: Endpoint, automate: Automate) -> None:
    """Give an endpoint to which a model is deployed its attachment and addresses, where it has none.

    A failure does not fail the deployment, is told in the state, and stays until nothing is deployed any more.
    """
    config = endpoint.private_service_connect_config
    if not is_private(endpoint) or config.service_attachment:
        return
    location = names.parse_location(str(names.location_of(endpoint.name)))
    seed = f"{endpoint.name} {endpoint.update_time}"  # another attachment and other addresses the next time
    config.service_attachment = (
        f"projects/{_digest(endpoint.name)}-tp/regions/{location.region}/serviceAttachments/gkedpm-{_digest(seed)}"
    )
    for each in config.psc_automation_configs:
        try:
            automate(each.network)
        except ApiError as error:
            each.state, each.error_message = PSCAutomationState.PSC_AUTOMATION_STATE_FAILED, error.message
            continue
        digest = _digest(f"{seed} {each.network}")
        each.ip_address = f"10.128.{int(digest[:2], 16)}.{1 + int(digest[2:4], 16) % 254}"
        each.forwarding_rule = (
            f"https://www.googleapis.com/compute/v1/projects/{each.project_id}/regions/{location.region}"
            f"/forwardingRules/sca-auto-fr-{digest}"
        )
        each.state = PSCAutomationState.PSC_AUTOMATION_STATE_SUCCESSFUL


def addresses(endpoint: Endpoint) -> list[str]:
    """Return the addresses at which an endpoint answers now."""
    return [
        each.ip_address for each in endpoint.private_service_connect_config.psc_automation_configs if each.ip_address
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
