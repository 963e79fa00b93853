"""Models in containers of their own: Vertex AI's contract, and what is said of a container that does not keep it."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1
from google.cloud import storage
from google.protobuf import json_format, struct_pb2

from localcloud.vertex.wire.methods import raw
from packages.localcloud.tests.vertex.conftest import ENDED, RESOURCES, Api, SoloServer, deploy, poll
from packages.localcloud.tests.vertex.kept_fields import assert_returned, fill, kept

IMAGE = "us-central1-docker.pkg.dev/local-project/mine/server:1"
# Adds what its file of weights says; a variable tells it how to fail.
SERVER = """
import http.server, json, os, pathlib, sys, time

mode, health, predict = (os.environ.get(name, "") for name in ("MODE", "AIP_HEALTH_ROUTE", "AIP_PREDICT_ROUTE"))
if mode == "dies":
    sys.exit("there are no weights")

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def do_GET(self):
        self.answer(200 if self.path == health and mode != "ill" else 503, {})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        instances, parameters = request["instances"], request.get("parameters", {"add": 0})
        if mode.isdigit():
            self.answer(int(mode), {"error": "of the container"})
        elif mode == "tells":
            told = {name: value for name, value in os.environ.items() if name.startswith("AIP_")}
            told = {"argv": sys.argv[1:], "env": told, "type": self.headers["Content-Type"]}
            self.answer(200, {"predictions": [told]})
        elif mode == "text":
            self.answer(200, "hello")
        else:
            time.sleep(3 if mode == "slow" else 0)
            answers = [each + parameters["add"] for each in instances]
            self.answer(200 if self.path == predict else 404, {"predictions": answers[mode == "short":]})

    def answer(self, status, document):
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["AIP_HTTP_PORT"])), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def cloud(local_cloud, tmp_path_factory) -> Iterator[Api]:
    """A server that knows the image."""
    server = SoloServer(tmp_path_factory.mktemp("containers") / "state")
    (server.state_path / "vertex").mkdir(parents=True)
    (server.state_path / "vertex/server.py").write_text(SERVER)
    entry = {"use": "serving", "environment": "own", "entrypoint": ["python", "./server.py"], "healthy_within_s": 2}
    table = {"images": [{"pattern": IMAGE, **entry}]}
    (server.state_path / "vertex/images.json").write_text(json.dumps(table))
    yield server.start()
    server.end(signal.SIGTERM)


@pytest.fixture
def endpoint(cloud) -> Iterator[str]:
    """An endpoint; what is deployed to it is taken off."""
    made = cloud.endpoints.create_endpoint(parent=cloud.parent, endpoint={"display_name": "own"}).result(timeout=10)
    yield made.name
    for deployed in cloud.endpoints.get_endpoint(name=made.name).deployed_models:
        cloud.endpoints.undeploy_model(endpoint=made.name, deployed_model_id=deployed.id).result(timeout=30)
    cloud.endpoints.delete_endpoint(name=made.name).result(timeout=10)


def register(cloud: Api, mode: str = "", **fields: Any) -> str:
    """Keep a model whose container fails in a way; give its name."""
    container = {
        "image_uri": IMAGE,
        "predict_route": "/ask",
        "health_route": "/well",
        "ports": [{"container_port": 5000}],
        "env": [{"name": "MODE", "value": mode}],
        **fields.pop("container", {}),
    }
    model = {"display_name": "own", "container_spec": container, **fields}
    return cloud.models.upload_model(parent=cloud.parent, model=model).result(timeout=10).model


def ask(cloud: Api, endpoint: str, *instances: Any, parameters: Any = None) -> list[Any]:
    values = [struct_pb2.Value(number_value=each) for each in instances]
    given = None if parameters is None else json_format.ParseDict(parameters, struct_pb2.Value())
    answer = cloud.predictions.predict(endpoint=endpoint, instances=values, parameters=given)
    return [json_format.MessageToDict(each) for each in v1.PredictResponse.pb(answer).predictions]


def test_instances_and_parameters_reach_the_predict_route(cloud, endpoint):
    """Parameters only where the caller gives some."""
    deploy(cloud, endpoint, register(cloud), {"0": 100})
    assert ask(cloud, endpoint, 1, 2.5) == [1, 2.5]
    assert ask(cloud, endpoint, 1, parameters={"add": 4}) == [5]


def test_what_a_container_is_told(cloud, endpoint, bucket: storage.Bucket):
    """The variables of the contract, and arguments and variables of the spec with them in it."""
    bucket.blob("containers/weights.txt").upload_from_string(b"x")
    uri = f"gs://{bucket.name}/containers"
    env = [{"name": "MODE", "value": "tells"}, {"name": "WHERE", "value": "$(AIP_STORAGE_URI)/1"}]
    container = {"args": ["--port=$(AIP_HTTP_PORT)", "$(WHERE)", "$$(WHERE)", "$(NOTHING)"], "env": env}
    deployed = deploy(cloud, endpoint, register(cloud, container=container, artifact_uri=uri), {"0": 100})
    (told,) = ask(cloud, endpoint, 1)
    endpoint_id = endpoint.rpartition("/")[2]
    port = told["env"].pop("AIP_HTTP_PORT")
    assert told["argv"] == [f"--port={port}", f"{uri}/1", "$(WHERE)", "$(NOTHING)"]
    assert told["env"] == {
        "AIP_MODE": "PREDICTION",
        "AIP_MODE_VERSION": "1.0.0",
        "AIP_FRAMEWORK": "CUSTOM_CONTAINER",
        "AIP_PROJECT_NUMBER": "123456789012",
        "AIP_ENDPOINT_ID": endpoint_id,
        "AIP_MODEL_NAME": endpoint_id,
        "AIP_DEPLOYED_MODEL_ID": deployed.id,
        "AIP_VERSION_NAME": deployed.id,
        "AIP_MACHINE_TYPE": "n1-standard-2",
        "AIP_HEALTH_ROUTE": "/well",
        "AIP_PREDICT_ROUTE": "/ask",
        "AIP_STORAGE_URI": uri,
    }


def test_a_raw_request_says_what_it_is(cloud, endpoint):
    """A container may take more than JSON."""
    deploy(cloud, endpoint, register(cloud, "tells"), {"0": 100})
    body = {"data": b'{"instances": [1]}', "content_type": "text/csv"}
    answer = cloud.predictions.raw_predict({"endpoint": endpoint, "http_body": body})
    assert json.loads(answer.data)["predictions"][0]["type"] == "text/csv"
    assert ask(cloud, endpoint, 1)[0]["type"] == "application/json"


def test_an_endpoint_waits_as_long_as_it_says(cloud, endpoint):
    """`client_connection_config.inference_timeout`."""
    deploy(cloud, endpoint, register(cloud, "slow"), {"0": 100})
    config = {"inference_timeout": {"nanos": 500_000_000}}
    changed = {"name": endpoint, "client_connection_config": config}
    cloud.endpoints.update_endpoint(endpoint=changed, update_mask={"paths": ["client_connection_config"]})
    with pytest.raises(exceptions.DeadlineExceeded, match=r"did not answer within 0\.5 s"):
        ask(cloud, endpoint, 1)


def test_a_deployment_waits_as_long_as_its_model_says(cloud, endpoint):
    """`container_spec.deployment_timeout`, before the image's own time is up."""
    model = register(cloud, "ill", container={"deployment_timeout": {"nanos": 300_000_000}})
    with pytest.raises(exceptions.ServiceUnavailable, match=r"is not healthy \(yet\)"):
        deploy(cloud, endpoint, model)


def test_of_a_deployment(cloud, endpoint):
    """What is kept of it comes back with its endpoint."""
    deployed = {"model": register(cloud), "dedicated_resources": RESOURCES}
    request = v1.DeployModelRequest(endpoint=endpoint, deployed_model=deployed)
    given = fill(raw(request), kept("EndpointService.DeployModel", "deployed_model"))
    cloud.endpoints.deploy_model(request).result(timeout=60)
    (found,) = cloud.endpoints.get_endpoint(name=endpoint).deployed_models
    assert_returned(raw(found), given)


def test_routes_that_nobody_named(cloud, endpoint):
    """They are the service's own."""
    model = register(cloud, container={"predict_route": "", "health_route": ""})
    deployed = deploy(cloud, endpoint, model, {"0": 100})
    assert ask(cloud, endpoint, 7) == [7]
    env = [{"name": "MODE", "value": "tells"}]
    other = register(cloud, container={"predict_route": "", "health_route": "", "env": env})
    second = deploy(cloud, endpoint, other, {deployed.id: 0, "0": 100})
    (told,) = ask(cloud, endpoint, 7)
    route = f"/v1/endpoints/{endpoint.rpartition('/')[2]}/deployedModels/{second.id}"
    assert (told["env"]["AIP_HEALTH_ROUTE"], told["env"]["AIP_PREDICT_ROUTE"]) == (route, f"{route}:predict")


@pytest.mark.parametrize(
    ("mode", "error", "words"),
    [
        pytest.param("ill", exceptions.ServiceUnavailable, "its health route /well .* answered 503", id="unhealthy"),
        pytest.param("dies", exceptions.FailedPrecondition, "before it was healthy: there are no weights", id="dead"),
    ],
)
def test_a_container_that_does_not_come_up_is_not_deployed(cloud, endpoint, mode, error, words):
    with pytest.raises(error, match=words):
        deploy(cloud, endpoint, register(cloud, mode), {"0": 100})
    assert not cloud.endpoints.get_endpoint(name=endpoint).deployed_models


@pytest.mark.parametrize(
    ("mode", "error", "words"),
    [
        pytest.param("400", exceptions.InvalidArgument, "of the container", id="400"),
        pytest.param("404", exceptions.FailedPrecondition, "answered 404 at its predict route /ask", id="404"),
        pytest.param("429", exceptions.ResourceExhausted, "answered 429", id="429"),
        pytest.param("500", exceptions.InternalServerError, "answered 500 at its predict route /ask", id="500"),
        pytest.param("503", exceptions.ServiceUnavailable, "answered 503", id="503"),
        pytest.param("short", exceptions.InternalServerError, "each of 2 instances .* got 1", id="too few"),
        pytest.param("text", exceptions.InternalServerError, "each of 2 instances .* got none: .hello", id="no list"),
    ],
)
def test_what_a_container_answers_wrongly_is_named(cloud, endpoint, mode, error, words):
    deploy(cloud, endpoint, register(cloud, mode), {"0": 100})
    with pytest.raises(error, match=words):
        ask(cloud, endpoint, 1, 2)


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ({"predict_route": "ask"}, "predict_route; Message: The route 'ask' is no path"),
        ({"health_route": "well"}, "health_route; Message: The route 'well' is no path"),
        ({"ports": [{"container_port": 70000}]}, "The port is 70000. Expected 1 to 65535"),
        ({"env": [{"name": "AIP_MODE", "value": "x"}]}, "AIP_MODE is set by Vertex AI"),
    ],
    ids=["predict-route", "health-route", "port", "variable"],
)
def test_a_container_that_cannot_be_is_refused_at_its_registration(cloud, container, words):
    with pytest.raises(exceptions.InvalidArgument, match=words):
        register(cloud, container=container)


@pytest.mark.parametrize(
    ("mode", "counts", "words"),
    [
        pytest.param("", (3, 0), "", id="answers"),
        pytest.param("short", (0, 3), "each of 2 instances .* got 1", id="too few"),
        pytest.param("500", (0, 3), "answered 500 at its predict route /ask", id="500"),
        pytest.param("dies", (0, 0), "before it was healthy: there are no weights", id="dead"),
    ],
)
def test_batches_go_through_the_same_routes(cloud, bucket: storage.Bucket, mode, counts, words):
    bucket.blob("containers/batch.jsonl").upload_from_string(b"1\n2\n3\n")
    job = {
        "display_name": "own",
        "model": register(cloud, mode),
        "input_config": {
            "instances_format": "jsonl",
            "gcs_source": {"uris": [f"gs://{bucket.name}/containers/batch.jsonl"]},
        },
        "output_config": {
            "predictions_format": "jsonl",
            "gcs_destination": {"output_uri_prefix": f"gs://{bucket.name}/containers/out"},
        },
        "dedicated_resources": {"machine_spec": {"machine_type": "n1-standard-2"}, "starting_replica_count": 1},
        "manual_batch_tuning_parameters": {"batch_size": 2},
        "model_parameters": json_format.ParseDict({"add": 10}, struct_pb2.Value()),
    }
    made = cloud.jobs.create_batch_prediction_job(parent=cloud.parent, batch_prediction_job=job)
    seen = poll(lambda: cloud.jobs.get_batch_prediction_job(name=made.name), lambda each: each.state.name in ENDED)
    assert (seen.completion_stats.successful_count, seen.completion_stats.failed_count) == counts
    assert re.search(words, seen.error.message), seen.error.message
    if words:
        return
    (path,) = [each for each in bucket.list_blobs(prefix="containers/out/") if "results" in each.name][-1:]
    assert [json.loads(line)["prediction"] for line in path.download_as_text().splitlines()] == [11, 12, 13]
