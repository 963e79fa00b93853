"""TensorFlow Serving's image: its flags, a model in a numbered folder, its REST API; asked by gRPC, REST and SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import requests
from google.api import httpbody_pb2
from google.api_core import exceptions
from google.cloud import aiplatform, storage
from google.cloud import aiplatform_v1 as v1

from packages.localcloud.tests.vertex.conftest import deploy
from packages.localcloud.tests.vertex.endpoints.test_endpoints import environment_of, instances, serving_pids

IMAGE = "us-central1-docker.pkg.dev/local-project/retraining/tensorflow-serving:2.19.1"
ARGUMENTS = ["--rest_api_port=$(AIP_HTTP_PORT)", "--model_name=doubler", "--model_base_path=$(AIP_STORAGE_URI)"]
CONTAINER = {
    "image_uri": IMAGE,
    "args": [*ARGUMENTS, "--file_system_poll_wait_seconds=0"],
    "ports": [{"container_port": 8501}],
    "predict_route": "/v1/models/doubler:predict",
    "health_route": "/v1/models/doubler",
}


@pytest.fixture(scope="module")
def numbered_uri(bucket: storage.Bucket, saved_model_uri: str) -> str:
    """Folder with the SavedModel in its folder 1."""
    source = saved_model_uri.removeprefix(f"gs://{bucket.name}/")
    for blob in list(bucket.list_blobs(prefix=f"{source}/")):
        bucket.copy_blob(blob, bucket, f"numbered/1/{blob.name.removeprefix(f'{source}/')}")
    return f"gs://{bucket.name}/numbered"


@pytest.fixture(scope="module")
def endpoint(api, upload, numbered_uri: str) -> Iterator[str]:
    """Name of an endpoint that a TensorFlow Serving serves."""
    model = upload("doubler", container_spec=CONTAINER, artifact_uri=numbered_uri).model
    made = api.endpoints.create_endpoint(parent=api.parent, endpoint={"display_name": "doubler"}, endpoint_id="doubler")
    name = made.result(timeout=10).name
    deploy(api, name, model, {"0": 100}, id="1")
    yield name
    api.endpoints.undeploy_model(endpoint=name, deployed_model_id="1").result(timeout=30)
    api.endpoints.delete_endpoint(name=name).result(timeout=10)


def test_all_clients_get_the_same_answer(api, rest, endpoint, local_cloud):
    row = {"carrier": "UA", "distance": 2.5}
    assert list(api.predictions.predict(endpoint=endpoint, instances=instances(row)).predictions) == [5.0]
    assert rest("POST", f"/v1/{endpoint}:predict", {"instances": [row]}).json()["predictions"] == [5]
    aiplatform.init(project=local_cloud.project, location=local_cloud.region)
    assert aiplatform.Endpoint(endpoint).predict([row]).predictions == [5.0]
    body = httpbody_pb2.HttpBody(data=json.dumps({"instances": [row]}).encode(), content_type="application/json")
    assert json.loads(api.predictions.raw_predict(endpoint=endpoint, http_body=body).data) == {"predictions": [5.0]}


def test_instances_that_do_not_fit_are_refused_as_it_words_it(api, endpoint):
    with pytest.raises(exceptions.InvalidArgument, match="keys must be equal to: carrier,distance"):
        api.predictions.predict(endpoint=endpoint, instances=instances({"carrier": "UA"}))


def test_its_rest_api(endpoint, local_cloud):
    """State, metadata, predictions by version and signature; what it does not have, with its statuses."""
    (variables,) = [
        found
        for found in map(environment_of, serving_pids(local_cloud.state_path))
        if found["AIP_ENDPOINT_ID"] == "doubler"
    ]
    headers = {"X-Serving-Secret": variables["LOCALCLOUD_SERVING_SECRET"]}
    place = f"http://127.0.0.1:{variables['AIP_HTTP_PORT']}/v1/models"

    def ask(path: str, body: object = None) -> tuple[int, dict]:
        verb = "GET" if body is None else "POST"
        answer = requests.request(verb, f"{place}/{path}", json=body, headers=headers, timeout=10)
        return answer.status_code, answer.json()

    available = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    assert ask("doubler") == ask("doubler/versions/1") == (200, {"model_version_status": [available]})
    status, metadata = ask("doubler/metadata")
    signature = metadata["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert (status, metadata["model_spec"]) == (200, {"name": "doubler", "signature_name": "", "version": "1"})
    assert {name: each["dtype"] for name, each in signature["inputs"].items()} == {
        "carrier": "DT_STRING",
        "distance": "DT_FLOAT",
    }
    assert signature["outputs"]["score"]["tensor_shape"] == {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    body = {"instances": [{"carrier": "AA", "distance": 3}], "signature_name": "serving_default"}
    assert ask("doubler/versions/1:predict", body) == (200, {"predictions": [3.0]})
    assert ask("doubler:predict", {"inputs": {"carrier": ["AA"], "distance": [3]}}) == (200, {"outputs": [3.0]})
    assert ask("nobody") == (404, {"error": "Could not find any versions of model nobody"})
    assert ask("doubler/versions/2") == (404, {"error": "Could not find version 2 of model doubler"})
    assert ask("nobody:predict", body) == (404, {"error": "Servable not found for request: Latest(nobody)"})
    assert ask("doubler/versions/2:predict", body)[1]["error"].endswith("Specific(doubler, 2)")
    assert ask("doubler:guess", body) == (400, {"error": "Malformed request: POST /v1/models/doubler:guess"})
    status, answer = ask("doubler:predict", {**body, "signature_name": "other"})
    assert (status, "not found in signature def" in answer["error"]) == (400, True)


def test_a_model_without_a_numbered_folder_is_not_served(api, upload, saved_model_uri, empty_endpoint):
    """TensorFlow Serving finds no version of it: the deployment says so."""
    model = upload("unnumbered", container_spec=CONTAINER, artifact_uri=saved_model_uri).model
    with pytest.raises(exceptions.FailedPrecondition, match="No versions of servable doubler found under base path"):
        deploy(api, empty_endpoint, model)


def test_a_predict_route_that_the_container_does_not_have(api, upload, numbered_uri, empty_endpoint):
    """The endpoint answers with what the container said of it."""
    wrong = {**CONTAINER, "predict_route": "/v1/models/nobody:predict"}
    model = upload("wrong_route", container_spec=wrong, artifact_uri=numbered_uri).model
    deploy(api, empty_endpoint, model, {"0": 100})
    with pytest.raises(exceptions.FailedPrecondition, match="answered 404 at its predict route /v1/models/nobody"):
        api.predictions.predict(endpoint=empty_endpoint, instances=instances({"carrier": "UA", "distance": 2}))


def test_its_answers_are_explained(api, rest, upload, numbered_uri, empty_endpoint, local_cloud):
    """By the same attributions to all clients, a text's too: carrier AA at 4 beside UA at 1 is 4 beside 2."""
    described = {
        "parameters": {"sampledShapleyAttribution": {"pathCount": 50}},
        "metadata": {
            "inputs": {"carrier": {"inputBaselines": ["UA"]}, "distance": {"inputBaselines": [1]}},
            "outputs": {"score": {}},
        },
    }
    spec = v1.ExplanationSpec.from_json(json.dumps(described))
    model = upload("explained", container_spec=CONTAINER, artifact_uri=numbered_uri, explanation_spec=spec).model
    deployed = deploy(api, empty_endpoint, model, {"0": 100})
    assert deployed.explanation_spec == spec
    row = {"carrier": "AA", "distance": 4.0}
    by_client = api.predictions.explain(endpoint=empty_endpoint, instances=instances(row))
    aiplatform.init(project=local_cloud.project, location=local_cloud.region)
    by_sdk = aiplatform.Endpoint(empty_endpoint).explain([row])
    for answer in (by_client, by_sdk):
        (attribution,) = answer.explanations[0].attributions
        added = dict(attribution.feature_attributions)
        assert (list(answer.predictions), answer.deployed_model_id) == ([4.0], deployed.id)
        assert (attribution.baseline_output_value, attribution.instance_output_value) == (2.0, 4.0)
        assert sum(added.values()) == pytest.approx(2.0)
        assert -4 <= added["carrier"] <= -1
        assert 3 <= added["distance"] <= 6
    told = rest("POST", f"/v1/{empty_endpoint}:explain", {"instances": [row]}).json()
    (attribution,) = told["explanations"][0]["attributions"]
    assert (told["predictions"], attribution["outputName"], attribution["baselineOutputValue"]) == ([4], "score", 2)
