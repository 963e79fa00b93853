"""CopyModel through Google's client and over REST: a version goes to another region, or beside another model."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1

from localcloud.vertex.models.copies import copy_of
from localcloud.vertex.wire.errors import FailedPrecondition
from localcloud.vertex.wire.names import Location
from packages.localcloud.tests.vertex.conftest import SERVING_IMAGE, poll

ELSEWHERE = "europe-west4"
OWN_IMAGE = "us-central1-docker.pkg.dev/local-project/shop/serving:1"
KEY = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"


@pytest.fixture(scope="session")
def artifact_uri(bucket) -> str:
    """A folder that looks like a SavedModel to the registry, which opens none."""
    bucket.blob("vertex-tests/copied/saved_model.pb").upload_from_string(b"")
    return f"gs://{bucket.name}/vertex-tests/copied"


@pytest.fixture
def source(api, artifact_uri, request) -> str:
    """Name of a model of two versions, made for this test; the second has an alias and an evaluation."""
    model_id = f"c_{abs(hash(request.node.nodeid)) % 10**10}"
    model = {
        "display_name": "Copied",
        "artifact_uri": artifact_uri,
        "container_spec": {"image_uri": SERVING_IMAGE, "args": ["--model_name=late"]},
        "labels": {"run": "one"},
    }
    name = api.models.upload_model({"parent": api.parent, "model": model, "model_id": model_id}).result(30).model
    second = {
        **model,
        "labels": {"run": "two"},
        "version_description": "second",
        "version_aliases": ["champion"],
        "encryption_spec": {"kms_key_name": KEY},
    }
    api.models.upload_model({"parent": api.parent, "model": second, "parent_model": name}).result(30)
    evaluation = v1.ModelEvaluation(display_name="e", metrics_schema_uri="gs://google-cloud-aiplatform/schema/m.yaml")
    api.models.import_model_evaluation(parent=f"{name}@2", model_evaluation=evaluation)
    return name


@pytest.fixture(scope="session")
def there(local_cloud) -> v1.ModelServiceClient:
    """The registry of another region."""
    return v1.ModelServiceClient(client_options={"api_endpoint": f"{ELSEWHERE}-aiplatform.googleapis.com:443"})


@pytest.fixture
def parent(local_cloud) -> str:
    """The other region."""
    return f"projects/{local_cloud.project}/locations/{ELSEWHERE}"


def test_a_version_is_copied_to_another_region(api, there, parent, source, artifact_uri):
    model_id = f"{source.rpartition('/')[2]}_there"
    operation = there.copy_model({"parent": parent, "source_model": f"{source}@champion", "model_id": model_id})
    done = operation.result(timeout=30)
    assert (done.model, done.model_version_id) == (f"{parent}/models/{model_id}", "1")
    assert operation.metadata.generic_metadata.create_time
    copied = there.get_model(name=done.model)
    assert (copied.display_name, copied.version_description, dict(copied.labels)) == (
        "Copied",
        "second",
        {"run": "two"},
    )
    assert (copied.artifact_uri, list(copied.container_spec.args)) == (artifact_uri, ["--model_name=late"])
    assert copied.original_model_info.model == f"{source}@2"
    assert copied.model_source_info.copy
    # What a copy has not: the source's aliases, key and evaluations.
    assert list(copied.version_aliases) == ["default"]
    assert not copied.encryption_spec.kms_key_name
    assert not list(there.list_model_evaluations(parent=f"{done.model}@1"))
    original = api.models.get_model(name=f"{source}@2")
    assert list(original.version_aliases) == ["champion"]
    assert not original.model_source_info.copy


def test_without_a_version_the_default_one_is_copied_with_the_requests_key(there, parent, source):
    copied = there.copy_model(
        {"parent": parent, "source_model": source, "encryption_spec": {"kms_key_name": KEY}}
    ).result(timeout=30)
    seen = there.get_model(name=copied.model)
    assert seen.original_model_info.model == f"{source}@1"
    assert seen.encryption_spec.kms_key_name == KEY
    assert seen.name.rpartition("/")[2].isdigit()


def test_a_copy_becomes_a_version_of_a_model_that_is_there(there, parent, source):
    first = there.copy_model({"parent": parent, "source_model": f"{source}@1"}).result(timeout=30)
    second = there.copy_model({"parent": parent, "source_model": f"{source}@2", "parent_model": first.model}).result(
        timeout=30
    )
    assert (second.model, second.model_version_id) == (first.model, "2")
    versions = {
        version.version_id: list(version.version_aliases) for version in there.list_model_versions(name=first.model)
    }
    assert versions == {"1": ["default"], "2": []}


def test_a_copy_over_rest_is_a_long_running_operation(rest, parent, source, add_fault):
    add_fault("ModelService.CopyModel/operation", "delay", seconds=1.0)
    operation = rest(
        "POST", f"/v1/{parent}/models:copy", {"sourceModel": f"{source}@2", "modelId": "over_rest"}, region=ELSEWHERE
    ).json()
    assert not operation.get("done")
    assert operation["metadata"]["@type"].endswith("google.cloud.aiplatform.v1.CopyModelOperationMetadata")
    done = poll(lambda: rest("GET", f"/v1/{operation['name']}", region=ELSEWHERE).json(), lambda seen: seen.get("done"))
    assert done["response"]["@type"].endswith("google.cloud.aiplatform.v1.CopyModelResponse")
    assert (done["response"]["model"], done["response"]["modelVersionId"]) == (f"{parent}/models/over_rest", "1")
    seen = rest("GET", f"/v1/{parent}/models/over_rest", region=ELSEWHERE).json()
    assert seen["originalModelInfo"] == {"model": f"{source}@2"}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"source_model": "{source}@9"}, exceptions.NotFound, "does not exist"),
        ({"source_model": "{source}_no"}, exceptions.NotFound, "does not exist"),
        ({"source_model": "late"}, exceptions.InvalidArgument, "source_model"),
        ({"source_model": ""}, exceptions.InvalidArgument, "source_model"),
        ({"model_id": "9late"}, exceptions.InvalidArgument, "model_id"),
        ({"parent_model": "{source}"}, exceptions.InvalidArgument, "a version of a model in its own location"),
        ({"parent_model": "{parent}/models/nobody"}, exceptions.NotFound, "nobody"),
        ({"custom_service_account": "a@b.iam.gserviceaccount.com"}, exceptions.MethodNotImplemented, "does not offer"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_cannot_be_copied_is_refused(there, parent, source, change, error, words):
    changed = {name: value.format(source=source, parent=parent) for name, value in change.items()}
    with pytest.raises(error, match=words):
        there.copy_model({"parent": parent, "source_model": source, **changed})


def test_an_id_that_a_model_has_is_refused(there, parent, source):
    model_id = f"{source.rpartition('/')[2]}_twice"
    request = {"parent": parent, "source_model": source, "model_id": model_id}
    there.copy_model(request).result(timeout=30)
    with pytest.raises(exceptions.AlreadyExists, match="set parent_model"):
        there.copy_model(request)


@pytest.mark.parametrize(
    ("image", "project", "refused"),
    [
        (SERVING_IMAGE, "other", False),
        (OWN_IMAGE, "other", True),
        (OWN_IMAGE, "local-project", False),
    ],
)
def test_between_projects_only_googles_containers_go(image, project, refused):
    source = v1.Model(
        name="projects/local-project/locations/us-central1/models/late",
        version_id="2",
        container_spec={"image_uri": image},
        version_aliases=["champion"],
    )
    to = Location(project=project, region="us-central1")
    if refused:
        with pytest.raises(FailedPrecondition, match="upload it there"):
            copy_of(source, v1.CopyModelRequest(), to)
        return
    copied = copy_of(source, v1.CopyModelRequest(), to)
    assert copied.original_model_info.model == f"{source.name}@2"
    assert list(copied.version_aliases) == []
