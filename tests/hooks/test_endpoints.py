"""Endpoints on Vertex AI, beyond what `ports` says of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import BadRequest, FailedPrecondition
from google.cloud import aiplatform_v1, storage

from retraining.core.errors import SettingsError
from retraining.core.naming.serving import container_spec, tensorflow_serving
from retraining.core.promotion.versions import Version
from retraining.core.report.attributions import Attribution
from retraining.hooks.cloud import Cloud
from retraining.hooks.endpoints import Endpoint, EndpointOptions, dedicated_resources
from retraining.hooks.predictions import Answer, Unanswered
from retraining.hooks.registry import Upload
from retraining.operators.deployment.version_upload import upload_once
from tests.support.refusals import refuses
from tests.support.scenes.asked_endpoint import retire
from tests.support.scenes.port_stage import until
from tests.support.scenes.served_models import INSTANCE, save_models, upload_model

KEY = "20131120t030000z-000000000001"
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


def register(cloud: Cloud, folder: str, model: str, path: Path, explained: dict[str, Any] | None = None) -> Version:
    """A version that gives 0.25."""
    save_models(path, 0.25)
    bucket, _, name = folder.removeprefix("gs://").partition("/")
    upload_model(storage.Client().bucket(bucket), f"{name}/model/1", path / "0.25")
    image = "us-central1-docker.pkg.dev/local-project/retraining/tensorflow-serving:2.19.1"
    wanted = Upload(
        display_name=model,
        description="x",
        artifact_uri=f"{folder}/model",
        container_spec=container_spec(tensorflow_serving(image, model), "0" * 64),
        labels={"retraining-run": KEY},
        explanation_spec=explained,
    )
    return upload_once(cloud, model, wanted, f"{folder}/upload.json")


NETWORK = "projects/the-network-project/global/networks/main"


@pytest.fixture
def private_cloud(local_hooks, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """The hooks of an organisation whose endpoints answer in a network alone."""
    del local_hooks
    monkeypatch.setenv("RETRAINING_ENDPOINT_NETWORK", NETWORK)
    return Cloud()


@pytest.fixture
def private_endpoint(
    private_cloud: Cloud, folder: str, unique: str, tmp_path: Path
) -> Iterator[Callable[[], Endpoint]]:
    """A private endpoint that gives 0.25, once it is asked for."""
    version = register(private_cloud, folder, unique, tmp_path)
    made = private_cloud.endpoints.ensure(unique, None, {}, EndpointOptions(dedicated=True))
    assert (made.private, made.dedicated, made.address) == (True, False, "")
    assert private_cloud.endpoints.predict_once(made, [INSTANCE], 5) == Unanswered(kind="ServiceUnavailable")

    def serve() -> Endpoint:
        started = private_cloud.endpoints.start_deploy(made, version.version_name, KEY, MACHINE)
        until(private_cloud, lambda: private_cloud.endpoints.operation(started.name).done)
        now = private_cloud.endpoints.read_endpoint(made.name)
        return private_cloud.endpoints.set_traffic(now, dict.fromkeys(now.deployed, 100))

    yield serve
    retire(made.name)


def test_a_private_endpoint_is_asked_at_its_address_in_the_network(private_cloud, private_endpoint) -> None:
    """With numbers that are no number too; at the region's host it would refuse whoever asks."""
    endpoint = private_endpoint()
    assert (endpoint.private, endpoint.address[:7]) == (True, "10.128.")
    answer = private_cloud.endpoints.predict(endpoint, [INSTANCE, {**INSTANCE, "distance": float("nan")}])
    assert (answer.predictions, answer.deployed_model_id) == ([0.25, 0.25], min(endpoint.deployed))
    assert private_cloud.endpoints.predict_once(endpoint, [INSTANCE], 30) == Answer(
        predictions=[0.25], deployed_model_id=min(endpoint.deployed)
    )
    with pytest.raises(BadRequest, match="Private Service Connect"):
        private_cloud.endpoints.predict(dataclasses.replace(endpoint, private=False, address=""), [INSTANCE])
    wrong = private_cloud.endpoints.predict_once(endpoint, [{"distance": "far"}], 30)
    assert wrong == Unanswered(kind="BadRequest"), "what the model cannot read, named by its kind alone"


def test_a_network_that_lets_nobody_in_is_named_with_who_can_mend_it(
    private_cloud, private_endpoint, add_fault
) -> None:
    """By the service's own word."""
    add_fault(f"PscAutomation.Connect {NETWORK}", "error", message="CONNECTION_POLICY_MISSING")
    endpoint = private_endpoint()
    with refuses(
        SettingsError,
        where="RETRAINING_ENDPOINT_NETWORK",
        found="CONNECTION_POLICY_MISSING",
        expected="gcp-vertexai",
        way_out="network administrator",
    ):
        private_cloud.endpoints.predict(endpoint, [INSTANCE])


OTHER = "projects/the-network-project/global/networks/other"


@pytest.mark.parametrize(("networks", "answers"), [([OTHER, NETWORK], True), ([OTHER], False), ([], False)])
def test_a_private_endpoint_of_somebody_elses_is_asked_in_this_network_or_not_at_all(
    private_cloud, folder, unique, tmp_path, networks: list[str], answers: bool
) -> None:
    """At another network's address this one may have anybody, and the request carries a token."""
    version = register(private_cloud, folder, unique, tmp_path)
    session = private_cloud.session
    client = aiplatform_v1.EndpointServiceClient(credentials=session.credentials, client_options=session.client_options)
    automation = [{"project_id": "the-network-project", "network": network} for network in networks]
    connection = {
        "enable_private_service_connect": True,
        "project_allowlist": ["the-network-project"],
        "psc_automation_configs": automation,
    }
    theirs = aiplatform_v1.Endpoint(display_name=unique, private_service_connect_config=connection)
    parent, endpoint_id = f"projects/{session.project}/locations/{session.region}", unique
    client.create_endpoint(parent=parent, endpoint=theirs, endpoint_id=endpoint_id).result(timeout=20)
    started = private_cloud.endpoints.start_deploy(
        private_cloud.endpoints.get(unique), version.version_name, KEY, MACHINE
    )
    until(private_cloud, lambda: private_cloud.endpoints.operation(started.name).done)
    now = private_cloud.endpoints.get(unique)
    endpoint = private_cloud.endpoints.set_traffic(now, dict.fromkeys(now.deployed, 100))
    configs = client.get_endpoint(name=endpoint.name).private_service_connect_config.psc_automation_configs
    assert endpoint.address == next((each.ip_address for each in configs if each.network == NETWORK), "")
    if answers:
        assert private_cloud.endpoints.predict(endpoint, [INSTANCE]).predictions == [0.25]
    else:
        with refuses(SettingsError, where="RETRAINING_ENDPOINT_NETWORK", found=str(networks), way_out="Name a network"):
            private_cloud.endpoints.predict(endpoint, [INSTANCE])
    retire(endpoint.name)


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


def test_a_version_that_is_registered_so_is_explained(cloud, folder, unique, tmp_path) -> None:
    """By the specification of its upload, which the deployment inherits: each feature, the answer, the baseline's."""
    baselines = {"carrier": "AA", "distance": 7}
    explained = {
        "parameters": {"sampled_shapley_attribution": {"path_count": 3}},
        "metadata": {
            "inputs": {name: {"input_baselines": [value]} for name, value in baselines.items()},
            "outputs": {"score": {}},
        },
    }
    version = register(cloud, folder, unique, tmp_path, explained)
    endpoint = cloud.endpoints.ensure(unique, None, {})
    started = cloud.endpoints.start_deploy(endpoint, version.version_name, KEY, MACHINE)
    until(cloud, lambda: cloud.endpoints.operation(started.name).done)
    deployed = cloud.endpoints.read_endpoint(endpoint.name)
    (deployed_id,) = deployed.deployed
    found = cloud.endpoints.explain(deployed, [INSTANCE, INSTANCE], deployed_id)
    retire(endpoint.name)
    nothing = Attribution(
        output="score", answer=0.25, baseline=0.25, features={"carrier": 0.0, "distance": 0.0}, error=0.0
    )
    assert found == [[nothing], [nothing]]
