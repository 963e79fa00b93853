"""Endpoints on Vertex AI, beyond what `ports` says of them."""

from __future__ import annotations

from google.cloud import aiplatform_v1


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
