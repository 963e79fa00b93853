"""Endpoints on Vertex AI, beyond what `ports` says of them."""

from __future__ import annotations

import dataclasses

import pytest
from google.api_core.exceptions import FailedPrecondition
from google.cloud import aiplatform_v1, storage

from retraining.core.naming.serving import container_spec, tensorflow_serving
from retraining.core.report.attributions import Attribution
from retraining.hooks.endpoints import EndpointOptions, dedicated_resources
from retraining.hooks.registry import Upload
from retraining.operators.deployment.version_upload import upload_once
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
    save_models(tmp_path, 0.25)
    bucket, _, path = folder.removeprefix("gs://").partition("/")
    upload_model(storage.Client().bucket(bucket), f"{path}/model/1", tmp_path / "0.25")
    image = "us-central1-docker.pkg.dev/local-project/retraining/tensorflow-serving:2.19.1"
    baselines = {"carrier": "AA", "distance": 7}
    explained = {
        "parameters": {"sampled_shapley_attribution": {"path_count": 3}},
        "metadata": {
            "inputs": {name: {"input_baselines": [value]} for name, value in baselines.items()},
            "outputs": {"score": {}},
        },
    }
    wanted = Upload(
        display_name=unique,
        description="x",
        artifact_uri=f"{folder}/model",
        container_spec=container_spec(tensorflow_serving(image, unique), "0" * 64),
        labels={"retraining-run": KEY},
        explanation_spec=explained,
    )
    version = upload_once(cloud, unique, wanted, f"{folder}/upload.json")
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
