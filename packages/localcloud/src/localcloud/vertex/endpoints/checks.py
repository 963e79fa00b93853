"""What is wrong with an endpoint, or with a model that shall be deployed there.

Comes in: a resource. Goes out: findings.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import DeployedModel, Endpoint

from localcloud.vertex.endpoints import private_connections, traffic
from localcloud.vertex.endpoints.traffic import deployed_ids
from localcloud.vertex.resources.machines import check_machine
from localcloud.vertex.resources.validation import (
    Finding,
    check_display_name,
    check_id,
    check_labels,
    split_bigquery_uri,
)

_ENDPOINT_ID = r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?|[1-9][0-9]{0,8}"
_ENDPOINT_ID_FORM = (
    "a letter, then up to 62 of [a-z0-9-] with a letter or digit last;"
    " or a number of at most 9 digits without leading zero"
)


def check_endpoint(endpoint: Endpoint, endpoint_id: str) -> Iterator[Finding]:
    """Find what is wrong with an endpoint, and with the id that is requested for it ("": none)."""
    if endpoint_id:
        yield from check_id(endpoint_id, _ENDPOINT_ID, _ENDPOINT_ID_FORM, "endpoint_id")
    yield from check_display_name(endpoint.display_name, "endpoint.display_name")
    yield from check_labels(endpoint.labels, "endpoint.labels")
    yield from private_connections.check(endpoint)
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


def check_deployed_model(deployed: DeployedModel, endpoint: Endpoint) -> Iterator[Finding]:
    """Find what is wrong with a model that shall be deployed to an endpoint."""
    if "shared_resources" in deployed:
        yield from _check_names(deployed, endpoint)
        return
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
    yield from _check_names(deployed, endpoint)


def _check_names(deployed: DeployedModel, endpoint: Endpoint) -> Iterator[Finding]:
    if deployed.id:
        yield from check_id(deployed.id, r"[0-9]{1,10}", "1 to 10 digits", "deployed_model.id")
        if deployed.id in (*deployed_ids(endpoint), traffic.NEW):
            yield (
                "deployed_model.id",
                f"The ID {deployed.id!r} is taken on {endpoint.name}. Expected a free one, or none.",
            )
    yield from check_display_name(deployed.display_name, "deployed_model.display_name")
