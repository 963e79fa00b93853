"""Explanations through Google's client and REST: attributions, what may be overridden, and what is refused."""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1
from google.protobuf import json_format, struct_pb2

from packages.localcloud.tests.vertex.conftest import Api, SoloServer, deploy

IMAGE = "us-central1-docker.pkg.dev/local-project/mine/server:1"
# Answers with three numbers of an instance, as a variable says; counts the rows that it is asked.
SERVER = """
import http.server, json, os

form, asked, most = os.environ["FORM"], 0, 0

def answer_of(row):
    factor = {"AA": 1.0, "UA": 2.0}.get(row["carrier"], 0.5)
    late = factor * row["distance"] + row["hour"]
    scores = [1.0, late, 2.0 - late]
    forms = {"number": late, "named": {"score": late, "key": row.get("key"), "class": "late"}}
    forms["counted"] = {"asked": asked, "most": most}
    return {**forms, "scores": {"scores": scores, "names": ["zero", "one", "two"]}, "text": "late"}[form]

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def do_GET(self):
        self.answer({})

    def do_POST(self):
        global asked, most
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
        asked, most = asked + len(rows), max(most, len(rows))
        self.answer({"predictions": [answer_of(row) for row in rows]})

    def answer(self, document):
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["AIP_HTTP_PORT"])), Handler).serve_forever()
"""
BASELINES = {"carrier": "UA", "distance": 2.0, "hour": 1.0}
ROW = {"carrier": "AA", "distance": 10.0, "hour": 5.0, "key": "k1"}


def spec(output: str = "score", paths: int = 10, described: Any = None, **parameters: Any) -> dict[str, Any]:
    """An explanation_spec of the container's three inputs."""
    return {
        "parameters": {"sampled_shapley_attribution": {"path_count": paths}, **parameters},
        "metadata": {
            "inputs": {name: {"input_baselines": [value]} for name, value in BASELINES.items()},
            "outputs": {output: described or {}},
        },
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[SoloServer]:
    """A server that knows the image."""
    server = SoloServer(tmp_path_factory.mktemp("explanations") / "state")
    (server.state_path / "vertex").mkdir(parents=True)
    (server.state_path / "vertex/server.py").write_text(SERVER)
    entry = {"use": "serving", "environment": "own", "entrypoint": ["python", "./server.py"], "healthy_within_s": 20}
    table = {"images": [{"pattern": IMAGE, **entry}]}
    (server.state_path / "vertex/images.json").write_text(json.dumps(table))
    server.start()
    yield server
    server.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def cloud(server) -> Api:
    return server.api


@pytest.fixture
def endpoint(cloud) -> Iterator[str]:
    """An endpoint; what is deployed to it is taken off."""
    made = cloud.endpoints.create_endpoint(parent=cloud.parent, endpoint={"display_name": "own"}).result(timeout=10)
    yield made.name
    for deployed in reversed(cloud.endpoints.get_endpoint(name=made.name).deployed_models):  # without traffic first
        cloud.endpoints.undeploy_model(endpoint=made.name, deployed_model_id=deployed.id).result(timeout=30)
    cloud.endpoints.delete_endpoint(name=made.name).result(timeout=10)


def register(cloud: Api, form: str = "number", **fields: Any) -> str:
    """Keep a model whose container answers in a form; give its name."""
    container = {
        "image_uri": IMAGE,
        "predict_route": "/ask",
        "health_route": "/well",
        "env": [{"name": "FORM", "value": form}],
    }
    if "explanation_spec" in fields:
        fields["explanation_spec"] = message(v1.ExplanationSpec, fields["explanation_spec"])
    model = {"display_name": "own", "container_spec": container, **fields}
    return cloud.models.upload_model(parent=cloud.parent, model=model).result(timeout=10).model


def message(kind: Any, document: Any) -> Any:
    """By JSON: Google's messages take no plain values for baselines."""
    return kind.from_json(json.dumps(document))


def value(document: Any) -> struct_pb2.Value:
    return json_format.ParseDict(document, struct_pb2.Value())


def explain(cloud: Api, endpoint: str, *rows: Any, **fields: Any) -> v1.ExplainResponse:
    if override := fields.pop("explanation_spec_override", None):
        fields["explanation_spec_override"] = message(v1.ExplanationSpecOverride, override)
    request = v1.ExplainRequest(endpoint=endpoint, **fields)
    v1.ExplainRequest.pb(request).instances.extend(value(row) for row in rows)
    return cloud.predictions.explain(request)


def attributions(response: v1.ExplainResponse) -> list[dict[str, float]]:
    return [dict(each.attributions[0].feature_attributions) for each in response.explanations]


def test_attributions_of_each_input_add_up(cloud, endpoint):
    """Of two instances: the difference from the baseline is shared out, exactly where inputs do not meet."""
    deploy(cloud, endpoint, register(cloud, explanation_spec=spec()), {"0": 100}, id="7")
    near = {"carrier": "UA", "distance": 2.0, "hour": 4.0}
    response = explain(cloud, endpoint, ROW, near)
    assert (list(response.predictions), response.deployed_model_id) == ([15.0, 8.0], "7")
    first, second = (each.attributions[0] for each in response.explanations)
    assert (first.baseline_output_value, first.instance_output_value, first.output_name) == (5.0, 15.0, "score")
    assert (list(first.output_index), first.output_display_name) == ([], "")
    found, other = attributions(response)
    assert math.fsum(found.values()) == pytest.approx(10.0, abs=1e-12)
    assert found["hour"] == 4.0
    assert found["carrier"] <= 0 < found["distance"]
    assert 0 <= first.approximation_error < 1
    assert other == {"carrier": 0.0, "distance": 0.0, "hour": 3.0}
    assert second.approximation_error == 0.0


def test_rest_answers_the_same(server, cloud, endpoint):
    """By the address and the names of Google's JSON."""
    deploy(cloud, endpoint, register(cloud, explanation_spec=spec()), {"0": 100}, id="8")
    status, answer = server.ask("POST", f"/v1/{endpoint}:explain", {"instances": [ROW]})
    assert (status, answer["deployedModelId"], answer["predictions"]) == (200, "8", [15])
    ((attribution,),) = ([*each["attributions"]] for each in answer["explanations"])
    named = (attribution["baselineOutputValue"], attribution["instanceOutputValue"], attribution["outputName"])
    assert named == (5, 15, "score")
    assert attribution["featureAttributions"]["hour"] == 4
    asked = {"parameters": {"sampledShapleyAttribution": {"pathCount": 51}}}
    status, answer = server.ask(
        "POST", f"/v1/{endpoint}:explain", {"instances": [ROW], "explanationSpecOverride": asked}
    )
    assert (status, answer["error"]["status"]) == (400, "INVALID_ARGUMENT")


def test_model_and_endpoint_keep_the_specification(cloud, endpoint):
    """What a deployment leaves out is the model's; what it says comes before that; another deployment has none."""
    named = spec("score", described={"display_name_mapping_key": "class"})
    model = register(cloud, "named", explanation_spec=named)
    kept = cloud.models.get_model(name=model).explanation_spec
    assert kept.parameters.sampled_shapley_attribution.path_count == 10
    assert dict(kept.metadata.inputs)["distance"].input_baselines == [2.0]
    fewer = {"parameters": {"sampled_shapley_attribution": {"path_count": 3}}}
    deploy(cloud, endpoint, model, {"0": 100}, id="1", explanation_spec=message(v1.ExplanationSpec, fewer))
    deploy(cloud, endpoint, model, id="2", disable_explanations=True)
    first, second = cloud.endpoints.get_endpoint(name=endpoint).deployed_models
    assert first.explanation_spec.parameters.sampled_shapley_attribution.path_count == 3
    assert set(first.explanation_spec.metadata.inputs) == set(BASELINES)
    assert second.disable_explanations
    assert "explanation_spec" not in second
    with pytest.raises(exceptions.FailedPrecondition, match="Deployed model 2 does not support explanation"):
        explain(cloud, endpoint, ROW)
    response = explain(cloud, endpoint, ROW, deployed_model_id="1")
    (attribution,) = response.explanations[0].attributions
    assert (attribution.output_display_name, attribution.instance_output_value) == ("late", 15.0)
    assert dict(response.predictions[0])["key"] == "k1"


def test_a_model_without_specification_is_not_explained(server, cloud, endpoint):
    """By the service's error; with a specification of the deployment alone it is, without any traffic too."""
    model = register(cloud)
    deploy(cloud, endpoint, model, {"0": 100}, id="1")
    with pytest.raises(exceptions.FailedPrecondition, match="Deployed model 1 does not support explanation"):
        explain(cloud, endpoint, ROW)
    status, answer = server.ask("POST", f"/v1/{endpoint}:explain", {"instances": [ROW]})
    assert (status, answer["error"]["status"]) == (400, "FAILED_PRECONDITION")
    alone = message(v1.ExplanationSpec, {"parameters": spec()["parameters"]})
    with pytest.raises(exceptions.InvalidArgument, match=r"metadata\.inputs; Message: A custom container needs"):
        deploy(cloud, endpoint, model, id="2", explanation_spec=alone)
    deploy(cloud, endpoint, model, id="2", explanation_spec=message(v1.ExplanationSpec, spec()))
    assert explain(cloud, endpoint, ROW, deployed_model_id="2").deployed_model_id == "2"
    with pytest.raises(exceptions.NotFound, match=r"'3' does not exist.*\['1', '2'\]"):
        explain(cloud, endpoint, ROW, deployed_model_id="3")


def test_one_of_several_outputs_is_the_greatest_or_those_that_are_asked_for(cloud, endpoint):
    """By top_k in descending order, by output_indices in the order that is given, with their names."""
    described = {"index_display_name_mapping": ["none", "late", "early"]}
    deploy(cloud, endpoint, register(cloud, "scores", explanation_spec=spec("scores", described=described)), {"0": 100})

    def outputs(**parameters: Any) -> list[tuple[int, str, float]]:
        override = {"parameters": parameters} if parameters else None
        (explanation,) = explain(cloud, endpoint, ROW, explanation_spec_override=override).explanations
        found = explanation.attributions
        assert all(each.output_name == "scores" for each in found)
        return [(each.output_index[0], each.output_display_name, each.instance_output_value) for each in found]

    assert outputs() == [(1, "late", 15.0)]
    assert outputs(top_k=2) == [(1, "late", 15.0), (0, "none", 1.0)]
    assert [index for index, _, _ in outputs(top_k=-1)] == [1, 0, 2]
    assert outputs(output_indices=[2, 0]) == [(2, "early", -13.0), (0, "none", 1.0)]
    with pytest.raises(exceptions.InvalidArgument, match=r"output_indices names \[3\].*3 numbers"):
        outputs(output_indices=[3])


def test_a_request_may_change_paths_and_baselines_and_not_the_method(cloud, endpoint):
    """An input that is not there is refused, and what the local cloud does not have."""
    deploy(cloud, endpoint, register(cloud, explanation_spec=spec(paths=1)), {"0": 100})

    def override(**fields: Any) -> Any:
        return explain(cloud, endpoint, ROW, explanation_spec_override=fields).explanations[0].attributions[0]

    assert math.isnan(override().approximation_error)
    more = {"sampled_shapley_attribution": {"path_count": 50}}
    assert override(parameters=more).approximation_error < 0.5
    changed = override(metadata={"inputs": {"hour": {"input_baselines": [5.0]}}})
    assert (dict(changed.feature_attributions)["hour"], changed.baseline_output_value) == (0.0, 9.0)
    gradients = {"integrated_gradients_attribution": {"step_count": 5}}
    with pytest.raises(exceptions.InvalidArgument, match="method cannot be overridden"):
        override(parameters=gradients)
    with pytest.raises(exceptions.InvalidArgument, match="There is no input 'colour'"):
        override(metadata={"inputs": {"colour": {"input_baselines": [5.0]}}})
    with pytest.raises(exceptions.MethodNotImplemented, match="examples_override"):
        override(examples_override={"neighbor_count": 2})


def test_it_costs_a_prediction_for_each_mixture(cloud, endpoint):
    """Of three inputs 7 beside the instance at most, however many paths; each batch has 256 rows at most."""
    deploy(cloud, endpoint, register(cloud, "counted", explanation_spec=spec("asked", paths=50)), {"0": 100}, id="5")
    (first,) = explain(cloud, endpoint, ROW).predictions
    (second,) = explain(cloud, endpoint, ROW).predictions
    assert (first["asked"], second["asked"] - first["asked"]) == (1, 8)
    many = explain(cloud, endpoint, *[ROW] * 40)
    (last,) = explain(cloud, endpoint, ROW).predictions
    assert last["asked"] - many.predictions[-1]["asked"] == 40 * 7 + 1
    assert (last["most"], len(many.explanations)) == (256, 40)


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        pytest.param({"carrier": "AA"}, exceptions.InvalidArgument, r"lacks \['distance', 'hour'\]", id="missing"),
        pytest.param([1, 2], exceptions.MethodNotImplemented, "instances that are objects", id="no object"),
        pytest.param({**ROW, "hour": [1, 2]}, exceptions.MethodNotImplemented, r"lists in \['hour'\]", id="list"),
    ],
)
def test_instances_that_cannot_be_taken_apart_are_refused(cloud, endpoint, row, error, message):
    deploy(cloud, endpoint, register(cloud, explanation_spec=spec()), {"0": 100})
    with pytest.raises(error, match=message):
        explain(cloud, endpoint, row)


@pytest.mark.parametrize(
    ("form", "output", "message"),
    [
        pytest.param("named", "scores", r"no output 'scores'. They have \['class', 'key', 'score'\]", id="name"),
        pytest.param("text", "score", "'score' is late. Expected a number", id="text"),
    ],
)
def test_outputs_that_are_no_numbers_are_named(cloud, endpoint, form, output, message):
    deploy(cloud, endpoint, register(cloud, form, explanation_spec=spec(output)), {"0": 100})
    with pytest.raises(exceptions.FailedPrecondition, match=message):
        explain(cloud, endpoint, ROW)


def without(*path: str, **changes: Any) -> dict[str, Any]:
    """The specification with something else at a path."""
    changed = spec()
    place = changed
    for key in path:
        place = place[key]
    place.update(changes)
    return changed


GRADIENTS = {"integrated_gradients_attribution": {"step_count": 5}}
UPLOADS = [
    pytest.param({**spec(), "parameters": GRADIENTS}, exceptions.MethodNotImplemented, "integrated_gr", id="gradients"),
    pytest.param(spec(paths=51), exceptions.InvalidArgument, "path_count; Message: It is 51", id="paths"),
    pytest.param({**spec(), "parameters": {"top_k": 2}}, exceptions.InvalidArgument, "no attribution meth", id="none"),
    pytest.param(spec(top_k=-2), exceptions.InvalidArgument, "top_k", id="top_k"),
    pytest.param(spec(output_indices=[0.5]), exceptions.InvalidArgument, "whole numbers", id="indices"),
    pytest.param(without("metadata", inputs={}), exceptions.InvalidArgument, "inputs; Message: Required", id="inputs"),
    pytest.param(without("metadata", outputs={"a": {}, "b": {}}), exceptions.InvalidArgument, "has 2 keys", id="two"),
    pytest.param(without("metadata", "inputs", hour={}), exceptions.MethodNotImplemented, "has 0", id="no baseline"),
    pytest.param(
        without("metadata", "inputs", hour={"input_baselines": [1.0, 2.0]}),
        exceptions.MethodNotImplemented,
        "one baseline",
        id="two baselines",
    ),
    pytest.param(
        without("metadata", "inputs", hour={"input_baselines": [1.0], "group_name": "g"}),
        exceptions.MethodNotImplemented,
        "group_name",
        id="group",
    ),
    pytest.param(
        spec(described={"output_tensor_name": "t"}), exceptions.MethodNotImplemented, "output_tensor_name", id="tensor"
    ),
    pytest.param(
        spec(described={"index_display_name_mapping": "late"}),
        exceptions.MethodNotImplemented,
        "as a list of texts",
        id="names",
    ),
]


@pytest.mark.parametrize(("explained", "error", "message"), UPLOADS)
def test_specifications_are_refused_when_the_model_is_uploaded(cloud, explained, error, message):
    with pytest.raises(error, match=message):
        register(cloud, explanation_spec=explained)


def test_a_pre_built_container_and_a_dedicated_endpoint_do_not_explain(cloud):
    """The first by the local cloud's refusal, the second by the service's own limits."""
    prebuilt = {"image_uri": "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"}
    with pytest.raises(exceptions.MethodNotImplemented, match="pre-built container"):
        register(cloud, container_spec=prebuilt, explanation_spec=spec())
    model = register(cloud, explanation_spec=spec())
    alone = {"display_name": "own", "dedicated_endpoint_enabled": True}
    endpoint = cloud.endpoints.create_endpoint(parent=cloud.parent, endpoint=alone).result(timeout=10).name
    deploy(cloud, endpoint, model, {"0": 100}, id="1")
    with pytest.raises(exceptions.FailedPrecondition, match="dedicated one"):
        explain(cloud, endpoint, ROW)
    cloud.endpoints.undeploy_model(endpoint=endpoint, deployed_model_id="1").result(timeout=30)
    cloud.endpoints.delete_endpoint(name=endpoint).result(timeout=10)
