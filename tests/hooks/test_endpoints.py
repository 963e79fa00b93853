"""Endpoints on Vertex AI, beyond what `ports` says of them."""

from __future__ import annotations

import dataclasses

import pytest
from google.api_core.exceptions import FailedPrecondition
from google.cloud import aiplatform_v1

from retraining.hooks.endpoints import EndpointOptions, dedicated_resources

MACHINE = {"machine_type": "n1-standard-2", "min_replicas": 1, "max_replicas": 3}


def test_replicas_come_and_go_for_the_load_that_is_asked_for() -> None:
    """As Vertex AI's message has it; without it nothing is said, and the service takes its own."""
    asked = aiplatform_v1.DedicatedResources(dedicated_resources({**MACHINE, "autoscale_cpu_percent": 70}))
    (metric,) = asked.autoscaling_metric_specs
    assert (metric.metric_name, metric.target) == ("aiplatform.googleapis.com/prediction/online/cpu/utilization", 70)
    assert (asked.min_replica_count, asked.max_replica_count) == (1, 3)
    for machine in (MACHINE, {**MACHINE, "autoscale_cpu_percent": None}):
        assert not aiplatform_v1.DedicatedResources(dedicated_resources(machine)).autoscaling_metric_specs


def test_accelerators_are_part_of_the_machine() -> None:
    """By Vertex AI's name; without them nothing is said."""
    gpus = {"accelerator_type": "NVIDIA_TESLA_T4", "accelerator_count": 2}
    spec = aiplatform_v1.DedicatedResources(dedicated_resources({**MACHINE, **gpus})).machine_spec
    assert (spec.accelerator_type.name, spec.accelerator_count) == ("NVIDIA_TESLA_T4", 2)
    plain = aiplatform_v1.DedicatedResources(dedicated_resources(MACHINE)).machine_spec
    assert (plain.accelerator_type, plain.accelerator_count) == (0, 0)


def test_a_dedicated_endpoint_is_asked_at_its_own_address(cloud, unique) -> None:
    """It says there that nothing is deployed; at the region's host it would refuse whoever asks."""
    made = cloud.endpoints.ensure(unique, None, {}, EndpointOptions(dedicated=True))
    assert made.address.endswith(".prediction.vertexai.goog")
    with pytest.raises(FailedPrecondition, match="has no deployed model"):
        cloud.endpoints.predict(made, [{"x": 1.0}])
    with pytest.raises(FailedPrecondition, match="cannot be accessed through the shared"):
        cloud.endpoints.predict(dataclasses.replace(made, address=""), [{"x": 1.0}])


def test_a_new_endpoint_logs_its_requests(cloud, unique) -> None:
    """All of them, to the table that was named."""
    table = f"{cloud.settings.project}.{cloud.settings.dataset}.requests_{unique}"
    made = cloud.endpoints.ensure(unique, table, {})
    options = cloud.session.client_options
    client = aiplatform_v1.EndpointServiceClient(credentials=cloud.session.credentials, client_options=options)
    logging = client.get_endpoint(name=made.name).predict_request_response_logging_config
    assert logging.enabled
    assert logging.sampling_rate == 1
    assert logging.bigquery_destination.output_uri == f"bq://{table}"
