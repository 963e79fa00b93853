"""Endpoints on Vertex AI, beyond what `ports` says of them."""

from __future__ import annotations

from google.cloud import aiplatform_v1

from retraining.hooks.endpoints import dedicated_resources

MACHINE = {"machine_type": "n1-standard-2", "min_replicas": 1, "max_replicas": 3}


def test_replicas_come_and_go_for_the_load_that_is_asked_for() -> None:
    """As Vertex AI's message has it; without it nothing is said, and the service takes its own."""
    asked = aiplatform_v1.DedicatedResources(dedicated_resources({**MACHINE, "autoscale_cpu_percent": 70}))
    (metric,) = asked.autoscaling_metric_specs
    assert (metric.metric_name, metric.target) == ("aiplatform.googleapis.com/prediction/online/cpu/utilization", 70)
    assert (asked.min_replica_count, asked.max_replica_count) == (1, 3)
    for machine in (MACHINE, {**MACHINE, "autoscale_cpu_percent": None}):
        assert not aiplatform_v1.DedicatedResources(dedicated_resources(machine)).autoscaling_metric_specs


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
