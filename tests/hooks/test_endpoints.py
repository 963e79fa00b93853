"""Endpoints on Vertex AI, beyond what `ports` says of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud import aiplatform_v1

from retraining.hooks.endpoints import Endpoint, Endpoints, dedicated_resources

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


def test_a_dedicated_endpoint_is_asked_at_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the header that names it; any other at the region's."""
    asked: list[tuple[str, Any]] = []

    class Client:
        def __init__(self, credentials: None, client_options: dict[str, str]) -> None:
            self.address = client_options["api_endpoint"]

        def predict(self, metadata: Any, **_: Any) -> aiplatform_v1.PredictResponse:
            asked.append((self.address, tuple(metadata)))
            return aiplatform_v1.PredictResponse(deployed_model_id="1")

    monkeypatch.setattr(aiplatform_v1, "PredictionServiceClient", Client)
    session: Any = SimpleNamespace(credentials=None, client_options={"api_endpoint": "region"})
    hook, name = Endpoints(session), "projects/p/locations/r/endpoints/late"
    for address in ("late.r-1.prediction.vertexai.goog", ""):
        hook.predict(Endpoint(name=name, deployed={}, traffic={}, address=address), [{"x": 1.0}])
    assert asked == [
        ("late.r-1.prediction.vertexai.goog", (("x-vertex-ai-endpoint-id", "late"),)),
        ("region", ()),
    ]


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
