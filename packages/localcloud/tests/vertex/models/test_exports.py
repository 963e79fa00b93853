"""ExportModel through Google's clients and over REST: a version's files go to a folder of their own."""

from __future__ import annotations

import re
import uuid

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform
from google.cloud import aiplatform_v1 as v1

from packages.localcloud.tests.vertex.conftest import SERVING_IMAGE, poll

FILES = {"saved_model.pb": b"model", "variables/variables.index": b"index", "assets/vocabulary.txt": b"a\nb"}
ARTIFACT = v1.Model.ExportFormat.ExportableContent.ARTIFACT


@pytest.fixture
def folder(bucket) -> str:
    """A fresh prefix of the bucket."""
    return f"vertex-tests/exports/{uuid.uuid4().hex}"


@pytest.fixture
def model(api, bucket, folder) -> str:
    """Name of a model of two versions with files of their own."""
    parent = ""
    for number in ("1", "2"):
        for name, data in FILES.items():
            bucket.blob(f"{folder}/artifact{number}/{name}").upload_from_string(data + number.encode())
        spec = {
            "display_name": "Exported",
            "artifact_uri": f"gs://{bucket.name}/{folder}/artifact{number}/",
            "container_spec": {"image_uri": SERVING_IMAGE},
        }
        request = {"parent": api.parent, "model": spec, "parent_model": parent}
        parent = api.models.upload_model(request).result(30).model
    return parent


def config(bucket, folder: str, **more: object) -> dict[str, object]:
    """Return an output configuration with a destination in the bucket."""
    return {"artifact_destination": {"output_uri_prefix": f"gs://{bucket.name}/{folder}/out/"}, **more}


def files_of(bucket, uri: str) -> dict[str, bytes]:
    """Return what is below a folder, by name."""
    prefix = uri.removeprefix(f"gs://{bucket.name}/") + "/"
    return {blob.name.removeprefix(prefix): blob.download_as_bytes() for blob in bucket.list_blobs(prefix=prefix)}


@pytest.mark.parametrize(("version", "number"), [("", b"1"), ("@2", b"2")], ids=["default", "second"])
@pytest.mark.parametrize("format_id", ["", "custom-trained"], ids=["unsaid", "said"])
def test_a_version_is_exported(api, bucket, folder, model, version, number, format_id):
    """All of its files, and its source stays as it is."""
    asked = config(bucket, folder, export_format_id=format_id)
    operation = api.models.export_model(name=f"{model}{version}", output_config=asked)
    operation.result(timeout=30)
    written = operation.metadata.output_info.artifact_output_uri
    place = f"gs://{bucket.name}/{folder}/out/model-{model.rpartition('/')[2]}/custom-trained/"
    assert re.fullmatch(re.escape(place) + r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", written)
    expected = {name: data + number for name, data in FILES.items()}
    assert files_of(bucket, written) == expected
    assert files_of(bucket, f"gs://{bucket.name}/{folder}/artifact{number.decode()}") == expected


def test_the_sdk_exports(local_cloud, bucket, folder, model):
    """Which asks for the formats of the model first."""
    aiplatform.init(project=local_cloud.project, location=local_cloud.region)
    registered = aiplatform.Model(model)
    assert registered.supported_export_formats == {"custom-trained": [ARTIFACT]}
    out = registered.export_model("custom-trained", f"gs://{bucket.name}/{folder}/sdk")
    assert set(files_of(bucket, out["artifactOutputUri"])) == set(FILES)


def test_an_export_over_rest_is_a_long_running_operation(rest, bucket, folder, model, add_fault):
    """Its metadata says from the beginning where the files go."""
    add_fault("ModelService.ExportModel/operation", "delay", seconds=0.5)
    destination = {"outputUriPrefix": f"gs://{bucket.name}/{folder}/rest"}
    body = {"outputConfig": {"exportFormatId": "custom-trained", "artifactDestination": destination}}
    operation = rest("POST", f"/v1/{model}:export", body).json()
    assert not operation.get("done")
    written = operation["metadata"]["outputInfo"]["artifactOutputUri"]
    done = poll(lambda: rest("GET", f"/v1/{operation['name']}").json(), lambda seen: bool(seen.get("done")))
    assert done["response"]["@type"].endswith("google.cloud.aiplatform.v1.ExportModelResponse")
    assert done["metadata"]["outputInfo"]["artifactOutputUri"] == written
    assert set(files_of(bucket, written)) == set(FILES)


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"export_format_id": "tf-saved-model"}, exceptions.FailedPrecondition, "format `tf-saved-model` is not supp"),
        (
            {"image_destination": {"output_uri": "us-docker.pkg.dev/p/r/i"}},
            exceptions.FailedPrecondition,
            "Exporting image for model .* is not supported",
        ),
        ({"artifact_destination": {"output_uri_prefix": ""}}, exceptions.InvalidArgument, "Required field is not set"),
        (
            {"artifact_destination": {"output_uri_prefix": "bucket/folder"}},
            exceptions.InvalidArgument,
            "output_uri_prefix",
        ),
        (
            {"artifact_destination": {"output_uri_prefix": "gs://no-such-bucket-here/x"}},
            exceptions.InvalidArgument,
            "'no-such-bucket-here'",
        ),
    ],
    ids=["format", "image", "nowhere", "no address", "no bucket"],
)
def test_what_is_not_exported_is_said(api, bucket, folder, model, asked, error, words):
    with pytest.raises(error, match=words):
        api.models.export_model(name=model, output_config=config(bucket, folder) | asked)
    assert files_of(bucket, f"gs://{bucket.name}/{folder}/out") == {}


def test_a_model_that_is_not_there_is_not_found(api, bucket, folder):
    with pytest.raises(exceptions.NotFound):
        api.models.export_model(name=f"{api.parent}/models/17", output_config=config(bucket, folder))


def test_a_model_without_an_artifact_has_no_formats(api, bucket, folder):
    spec = {"display_name": "Empty", "container_spec": {"image_uri": "us-docker.pkg.dev/local-project/shop/any:1"}}
    name = api.models.upload_model(parent=api.parent, model=spec).result(30).model
    assert not api.models.get_model(name=name).supported_export_formats
    with pytest.raises(exceptions.FailedPrecondition, match=r"supported_export_formats: \[\]"):
        api.models.export_model(name=name, output_config=config(bucket, folder))


def test_an_artifact_that_is_gone_fails_the_operation(api, bucket, folder, model):
    for name in FILES:
        bucket.blob(f"{folder}/artifact1/{name}").delete()
    operation = api.models.export_model(name=model, output_config=config(bucket, folder))
    with pytest.raises(exceptions.FailedPrecondition, match="is empty or does not exist"):
        operation.result(timeout=30)
