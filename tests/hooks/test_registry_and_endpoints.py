"""Versions and aliases, endpoints and deployments, through Google's own clients."""

from __future__ import annotations

import time
from typing import Any

import pytest

from retraining.core.errors import ConflictError
from retraining.hooks.registry import Upload, Version
from retraining.operators.deployment.version_upload import drop_twins, upload_once

# Also in tests/trainer/training/test_job.py.
DIGEST = "ad258febbdf880da4d157eb7acb5254edc62e74b90ee9229f97676ad814dbac4"
KEYS = ("20131120t030000z-000000000001", "20131121t030000z-000000000002")


@pytest.fixture
def upload(cloud, folder, unique):
    """Registers a version of this test's model for a run."""

    def do(run_key: str) -> Version:
        artifact_uri = f"{folder}/{run_key}/model"
        cloud.artifacts.write_once(f"{artifact_uri}/saved_model.pb", b"not a model")
        wanted = Upload(
            display_name=unique,
            description="Promoted.",
            artifact_uri=artifact_uri,
            serving_image=cloud.settings.serving_image,
            labels={"retraining-run": run_key, "retraining-model": unique},
        )
        return upload_once(cloud, unique, wanted, f"{folder}/{run_key}/upload.json")

    return do


def test_a_run_has_one_version(cloud, upload, unique) -> None:
    """Uploading again finds the first one; another run adds one to the same model."""
    first, again, second = upload(KEYS[0]), upload(KEYS[0]), upload(KEYS[1])
    assert first.version_id == again.version_id == "1"
    assert second.version_id == "2"
    assert second.model_name == first.model_name
    assert second.version_name.endswith(f"/models/{unique}@2")
    assert cloud.registry.find_by_run(unique, KEYS[1]).run_key == KEYS[1]
    assert sorted(version.run_key for version in cloud.registry.list_versions(unique)) == sorted(KEYS)
    assert cloud.registry.list_versions(f"{unique}_not_there") == []


def test_an_upload_is_seen_while_it_runs_and_a_twin_can_be_deleted(cloud, upload, unique) -> None:
    """By its operation and among the model's; a deployed or only version is not deleted."""
    first = upload(KEYS[0])
    wanted = Upload(
        display_name=unique,
        description="Promoted.",
        artifact_uri=first.artifact_uri,
        serving_image=cloud.settings.serving_image,
        labels={"retraining-run": KEYS[0]},
    )
    assert not cloud.registry.delete_version(first)
    operation = cloud.registry.start_upload(unique, wanted)
    until = time.monotonic() + 30
    while not (seen := cloud.registry.operation(operation.name)).done:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert not seen.error
    assert cloud.registry.running_operations(unique) == []
    assert cloud.registry.running_operations(f"{unique}_not_there") == []
    assert cloud.registry.operation(f"{operation.name}000") is None
    assert [version.version_id for version in cloud.registry.versions_of_run(unique, KEYS[0])] == ["1", "2"]
    assert drop_twins(cloud, unique, KEYS[0]).version_id == "1"
    until = time.monotonic() + 30
    while len(cloud.registry.list_versions(unique)) > 1:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_models_digest_is_that_of_its_files(cloud, folder) -> None:
    """As `digest_folder` of the trainer has it: names and contents of all files, in order of names."""
    assert cloud.model_files.digest(f"{folder}/model") is None
    for name, content in (("saved_model.pb", b"graph"), ("variables/variables.index", b""), ("assets/a.txt", b"1")):
        cloud.artifacts.write_once(f"{folder}/model/{name}", content)
    cloud.artifacts.write_once(f"{folder}/model_of_another/saved_model.pb", b"x")
    assert cloud.model_files.digest(f"{folder}/model") == DIGEST


def test_an_alias_moves_only_from_where_it_was_seen(cloud, upload, unique) -> None:
    """Compare-and-set: a stale expectation is a conflict, the own version is not."""
    first, second = upload(KEYS[0]), upload(KEYS[1])
    assert cloud.registry.find_by_alias(unique, "champion") is None
    cloud.registry.move_alias(unique, "champion", first, None)
    with pytest.raises(ConflictError, match=r"alias champion.*version 1.*no version"):
        cloud.registry.move_alias(unique, "champion", second, None)
    cloud.registry.move_alias(unique, "champion", first, None)
    cloud.registry.move_alias(unique, "champion", second, "1")
    assert cloud.registry.find_by_alias(unique, "champion").version_id == "2"
    cloud.registry.merge_aliases(second, ["-champion", "previous"])
    assert cloud.registry.find_by_alias(unique, "champion") is None
    assert cloud.registry.find_by_alias(unique, "previous").version_id == "2"


def test_a_model_that_is_not_there_has_no_versions(cloud, unique) -> None:
    """None, not an error."""
    assert cloud.registry.find_by_alias(unique, "champion") is None
    assert cloud.registry.find_by_run(unique, KEYS[0]) is None


def test_an_endpoint_is_made_once_and_logs_its_requests(cloud, unique) -> None:
    """The second call finds it; the log table is the one that was named."""
    from google.cloud import aiplatform_v1

    table = f"{cloud.settings.project}.{cloud.settings.dataset}.requests_{unique}"
    assert cloud.endpoints.get(unique) is None
    made = cloud.endpoints.ensure(unique, table, {"retraining-model": unique})
    assert cloud.endpoints.ensure(unique, table, {}) == made
    options = cloud.session.client_options
    client = aiplatform_v1.EndpointServiceClient(credentials=cloud.session.credentials, client_options=options)
    logging = client.get_endpoint(name=made.name).predict_request_response_logging_config
    assert logging.enabled
    assert logging.bigquery_destination.output_uri == f"bq://{table}"


def test_a_deployment_that_fails_says_why(cloud, upload, unique) -> None:
    """The operation can be looked at by name, and ends with the reason."""
    version = upload(KEYS[0])
    endpoint = cloud.endpoints.ensure(unique, f"{cloud.settings.project}.{cloud.settings.dataset}.r_{unique}", {})
    machine: dict[str, Any] = {"machine_type": "n1-standard-2", "min_replicas": 1, "max_replicas": 1}
    operation = cloud.endpoints.start_deploy(endpoint, version.version_name, KEYS[0], machine)
    until = time.monotonic() + 60
    while not (operation := cloud.endpoints.operation(operation.name)).done:
        assert time.monotonic() < until
        time.sleep(0.2)
    assert operation.error
    assert cloud.endpoints.running_operations(endpoint) == []
    assert cloud.endpoints.read(endpoint.name).deployed == {}
    cloud.endpoints.undeploy(endpoint, "123")  # of what is not there: nothing happens
    assert cloud.endpoints.operation(f"{operation.name}000") is None
    cloud.endpoints.cancel_operation(operation.name)  # of what has ended: nothing happens


def test_traffic_is_set_only_on_the_endpoint_that_was_read(cloud, unique) -> None:
    """The etag is compared; a split that is there already is no conflict, whoever set it; none is a split too."""
    from google.cloud import aiplatform_v1

    endpoint = cloud.endpoints.ensure(unique, f"{cloud.settings.project}.{cloud.settings.dataset}.r_{unique}", {})
    assert cloud.endpoints.set_traffic(endpoint, {}).traffic == {}
    client = aiplatform_v1.EndpointServiceClient(
        credentials=cloud.session.credentials, client_options=cloud.session.client_options
    )
    changed = aiplatform_v1.Endpoint(name=endpoint.name, display_name="changed")
    client.update_endpoint(endpoint=changed, update_mask={"paths": ["display_name"]})
    assert cloud.endpoints.set_traffic(endpoint, {}).traffic == {}
    with pytest.raises(ConflictError, match="somebody else changed it"):
        cloud.endpoints.set_traffic(endpoint, {"123": 100})
