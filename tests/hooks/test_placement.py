"""What is made carries key, network and labels, as the service tells whoever asks it afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import aiplatform_v1, bigquery

from retraining.core.data.sql import Query
from retraining.core.naming.vertex import model_name
from retraining.core.placement import Caller
from retraining.core.untyped import ProtoJson
from retraining.hooks.cloud import Cloud
from retraining.hooks.transports import bigquery_client
from tests.support.scenes.port_stage import make_job, make_upload

KEY = "projects/keys/locations/us-central1/keyRings/ring/cryptoKeys/key"
NETWORK = "projects/123/global/networks/net"
RESERVATION = "projects/slots/locations/us-central1/reservations/night"
CALLER = Caller(
    labels={"cost_center": "4711", "team": "delays"},
    names={"retraining-model": "flight_delays", "retraining-task": "snapshot"},
)
LABELS = {"team": "delays", "stage": "test", "cost_center": "4711"}


@pytest.fixture
def placed(local_hooks, monkeypatch) -> Cloud:
    """The hooks of a task of a model with labels, in an organisation that wants something."""
    del local_hooks  # whose dataset is there
    wanted = {"ENCRYPTION_KEY": KEY, "NETWORK": NETWORK, "LABELS": "team=all, stage=test", "RESERVATION": RESERVATION}
    for name, value in wanted.items():
        monkeypatch.setenv(f"RETRAINING_{name}", value)
    cloud = Cloud()
    cloud.caller = CALLER
    return cloud


def options(cloud: Cloud) -> dict[str, Any]:
    """Of Google's own client."""
    return {"credentials": cloud.session.credentials, "client_options": cloud.session.client_options}


def test_a_job(placed, unique) -> None:
    """The model's labels go before the environment's, those by which it is found again before both."""
    job: ProtoJson = make_job(owner=unique, team=unique)
    made = aiplatform_v1.JobServiceClient(**options(placed)).get_custom_job(name=placed.jobs.create(job).name)
    assert made.encryption_spec.kms_key_name == KEY
    assert made.job_spec.network == NETWORK
    assert dict(made.labels) == {**LABELS, "owner": unique, "team": unique, **placed.environment.labels}


def test_a_version_and_an_endpoint(placed, folder, unique) -> None:
    upload = make_upload(placed, folder, unique, "20131120t030000z-abcdef123456")
    placed.registry.start_upload(unique, upload)
    settings = placed.settings
    model = aiplatform_v1.ModelServiceClient(**options(placed)).get_model(
        name=model_name(settings.project, settings.region, unique)
    )
    assert model.encryption_spec.kms_key_name == KEY
    assert LABELS.items() <= dict(model.labels).items()
    name = placed.endpoints.ensure(unique, None, {}).name
    endpoint = aiplatform_v1.EndpointServiceClient(**options(placed)).get_endpoint(name=name)
    assert endpoint.encryption_spec.kms_key_name == KEY
    assert dict(endpoint.labels) == {**LABELS, **placed.environment.labels}


def test_a_statement(placed, unique) -> None:
    """Its labels say also which task of which model asked it, for the bill."""
    placed.warehouse.run_query(Query(sql="SELECT 1"), unique, "test")
    client = bigquery.Client(project=placed.settings.project, credentials=placed.session.credentials)
    job = client.get_job(unique, location=placed.settings.region)
    assert job.labels == {**LABELS, **CALLER.names, **placed.environment.labels}
    assert job.configuration.reservation == RESERVATION


def test_statements_run_in_the_project_that_pays(placed, monkeypatch) -> None:
    """Tables and datasets are named with the project that they are in; without the setting that one pays."""
    assert bigquery_client(placed.session).project == placed.settings.project
    monkeypatch.setenv("RETRAINING_QUERY_PROJECT", "the-payer")
    payer = Cloud()
    assert bigquery_client(payer.session).project == "the-payer"
    assert payer.warehouse.dataset_location(payer.settings.dataset)
    assert payer.warehouse.list_tables(payer.settings.dataset) == placed.warehouse.list_tables(placed.settings.dataset)
