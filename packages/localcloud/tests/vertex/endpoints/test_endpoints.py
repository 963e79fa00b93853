"""Endpoints through Google's client: deployments, traffic, and predictions of a real SavedModel."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from google.api import httpbody_pb2
from google.api_core import exceptions
from google.cloud import bigquery, monitoring_v3
from google.protobuf import field_mask_pb2, json_format, struct_pb2

from localcloud.supervision.processes import is_port_free
from packages.localcloud.tests.vertex.conftest import deploy, poll


def value(document: Any) -> struct_pb2.Value:
    return json_format.ParseDict(document, struct_pb2.Value())


def instances(*rows: dict[str, Any]) -> list[struct_pb2.Value]:
    return [value(row) for row in rows]


@pytest.fixture(scope="module")
def model(upload) -> str:
    """Name of a model with two versions."""
    name = upload("served").model
    upload("served", parent_model=name, version_aliases=["challenger"])
    return name


@pytest.fixture(scope="module")
def endpoint(api, local_cloud, model) -> Iterator[str]:
    """Name of an endpoint that logs to BigQuery and serves two versions of the model, half and half."""
    logging = {
        "enabled": True,
        "sampling_rate": 1.0,
        "bigquery_destination": {"output_uri": f"bq://{local_cloud.project}.vertex_tests.requests_served"},
    }
    made = api.endpoints.create_endpoint(
        parent=api.parent,
        endpoint={"display_name": "served", "predict_request_response_logging_config": logging},
        endpoint_id="served",
    ).result(timeout=10)
    deploy(api, made.name, model, {"0": 100}, id="1")
    begun = time.monotonic()
    deploy(api, made.name, f"{model}@challenger", {"1": 50, "0": 50}, id="2", display_name="two")
    print(f"deploy: {time.monotonic() - begun:.1f} s")
    yield made.name
    for deployed_id in ("1", "2"):
        others = {other: 100 for other in {"1", "2"} - {deployed_id} if other > deployed_id}
        api.endpoints.undeploy_model(endpoint=made.name, deployed_model_id=deployed_id, traffic_split=others).result(
            timeout=30
        )


def test_deployed_models_are_described(api, endpoint, model):
    seen = api.endpoints.get_endpoint(name=endpoint)
    assert dict(seen.traffic_split) == {"1": 50, "2": 50}
    assert [
        (deployed.id, deployed.model, deployed.model_version_id, deployed.display_name)
        for deployed in seen.deployed_models
    ] == [
        ("1", model, "1", "served"),
        ("2", model, "2", "two"),
    ]
    assert [ref.deployed_model_id for ref in api.models.get_model(name=f"{model}@2").deployed_models] == ["2"]


def test_predictions_are_the_models_own_and_follow_the_split(api, endpoint, model):
    seen = set()
    for _ in range(40):
        response = api.predictions.predict(
            endpoint=endpoint, instances=instances({"carrier": "UA", "distance": 3}, {"carrier": "ZZ", "distance": 8.0})
        )
        assert list(response.predictions) == [6.0, 4.0]
        assert (response.model, response.model_version_id) == (model, response.deployed_model_id)
        assert response.model_display_name == {"1": "served", "2": "two"}[response.deployed_model_id]
        seen.add(response.deployed_model_id)
    assert seen == {"1", "2"}


def test_nan_goes_in_and_comes_out(api, endpoint, rest):
    row = struct_pb2.Value(
        struct_value=struct_pb2.Struct(
            fields={"carrier": value("UA"), "distance": struct_pb2.Value(number_value=math.nan)}
        )
    )
    assert math.isnan(api.predictions.predict(endpoint=endpoint, instances=[row]).predictions[0])
    answer = rest("POST", f"/v1/{endpoint}:predict", data=b'{"instances": [{"carrier": "UA", "distance": NaN}]}')
    assert answer.json()["predictions"] == ["NaN"]


def test_predictions_over_rest(endpoint, model, rest):
    answer = rest("POST", f"/v1/{endpoint}:predict", {"instances": [{"carrier": "AA", "distance": 7}]}).json()
    assert answer["predictions"] == [7]
    assert answer["deployedModelId"] in ("1", "2")
    assert (answer["model"], answer["modelVersionId"]) == (model, answer["deployedModelId"])
    assert answer["modelDisplayName"] in ("served", "two")


def test_raw_predictions_pass_the_containers_own_bodies(api, endpoint, rest):
    body = json.dumps({"instances": [{"carrier": "UA", "distance": 5.5}]}).encode()
    raw = api.predictions.raw_predict(
        endpoint=endpoint, http_body=httpbody_pb2.HttpBody(data=body, content_type="application/json")
    )
    assert json.loads(raw.data) == {"predictions": [11.0]}
    answer = rest("POST", f"/v1/{endpoint}:rawPredict", {"inputs": {"carrier": ["UA", "AA"], "distance": [1, 1]}})
    assert answer.json() == {"outputs": [2.0, 1.0]}
    assert answer.headers["X-Vertex-AI-Deployed-Model-Id"] in ("1", "2")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        pytest.param({"carrier": "UA"}, r"missing: \['distance'\]", id="missing key"),
        pytest.param({"carrier": "UA", "distance": 1, "colour": 2}, r"unknown: \['colour'\]", id="unknown key"),
        pytest.param(
            {"carrier": 1, "distance": 1}, "'carrier' is not of expected type: string", id="number for a string"
        ),
        pytest.param(
            {"carrier": "UA", "distance": "far"},
            "'distance' is not of expected type: float32",
            id="string for a number",
        ),
        pytest.param({"carrier": "UA", "distance": None}, "'distance' is not of expected type: float32", id="null"),
        pytest.param({"carrier": "UA", "distance": [1, 2]}, "have the shape", id="shape"),
        pytest.param("UA", "Expected an object with the keys", id="no object"),
        pytest.param(
            {"carrier": {"b64": "U"}, "distance": 1}, "Unable to base64 decode the value of 'carrier'", id="b64"
        ),
        pytest.param({"carrier": {"b64": 1}, "distance": 1}, "Unable to base64 decode", id="b64 of a number"),
        pytest.param({"carrier": {"b64": "VUE=", "x": 1}, "distance": 1}, "expected type: string", id="more than b64"),
    ],
)
def test_instances_that_do_not_fit_are_refused(api, endpoint, row, words):
    with pytest.raises(exceptions.InvalidArgument, match=words):
        api.predictions.predict(endpoint=endpoint, instances=[value(row)])


def test_a_deployed_models_process_may_err_be_slow_or_wrong(api, endpoint, add_fault):
    """One model alone; what it does is measured as its own."""

    def ask() -> dict[str, Any]:
        """What each of both says."""
        found, _asked = {}, instances({"carrier": "UA", "distance": 4})
        while len(found) < 2:
            with contextlib.suppress(exceptions.InternalServerError):
                answer = api.predictions.predict(
                    endpoint=endpoint, instances=instances({"carrier": "UA", "distance": 4})
                )
                found[answer.deployed_model_id] = answer.predictions[0]
        return found

    add_fault("DeployedModel.Predict served/2", "skew", count=0, by=0.5)
    assert ask() == {"1": 8.0, "2": 8.5}
    add_fault("DeployedModel.Predict served/1", "delay", count=1, seconds=0.3)
    add_fault("DeployedModel.Predict served/1", "error", count=1, code="INTERNAL")
    begun = time.time()
    for _ in range(3):
        ask()
    interval = {"start_time": {"seconds": int(begun - 60)}, "end_time": {"seconds": int(time.time()) + 1}}
    measured = {}
    for name in ("error_count", "prediction_latencies"):
        request = {
            "name": f"projects/{endpoint.split('/')[1]}",
            "filter": f'metric.type = "aiplatform.googleapis.com/prediction/online/{name}"'
            ' AND resource.labels.endpoint_id = "served" AND metric.labels.latency_type != "overhead"',
            "interval": interval,
            "aggregation": {"alignment_period": {"seconds": 120}, "per_series_aligner": "ALIGN_DELTA"},
        }
        found = monitoring_v3.MetricServiceClient().list_time_series(request=request)
        measured[name] = {one.metric.labels["deployed_model_id"]: one.points[0].value for one in found}
    errors = {key: value.int64_value for key, value in measured["error_count"].items()}
    assert errors["1"] >= 1
    latencies = {key: value.distribution_value for key, value in measured["prediction_latencies"].items()}
    assert latencies["1"].mean * latencies["1"].count >= 300
    assert latencies["2"].count >= 3


def test_bytes_come_in_base64(api, endpoint, rest):
    """As TensorFlow Serving and Vertex AI take them, over both protocols."""
    row = {"carrier": {"b64": "VUE="}, "distance": 1.5}
    assert list(api.predictions.predict(endpoint=endpoint, instances=[value(row)]).predictions) == [3.0]
    assert rest("POST", f"/v1/{endpoint}:predict", {"instances": [row]}).json()["predictions"] == [3]


def test_requests_beyond_the_limit_are_refused(api, endpoint):
    rows = instances({"carrier": "UA" * 800_000, "distance": 1})
    with pytest.raises(exceptions.InvalidArgument, match="at most 1572864"):
        api.predictions.predict(endpoint=endpoint, instances=rows)


def test_no_instances_are_refused(api, endpoint):
    with pytest.raises(exceptions.InvalidArgument, match="instances; Message: Required"):
        api.predictions.predict(endpoint=endpoint, instances=[])


def test_requests_are_logged_to_bigquery_in_vertex_schema(api, endpoint, local_cloud):
    client = bigquery.Client(project=local_cloud.project)
    mark = float(time.time_ns() % 10**9)
    rows = instances({"carrier": "UA", "distance": mark}, {"carrier": "AA", "distance": 1.5})
    begun = time.monotonic()
    response = api.predictions.predict(endpoint=endpoint, instances=rows)
    table = f"{local_cloud.project}.vertex_tests.requests_served"

    def look() -> list[bigquery.Row]:
        with contextlib.suppress(exceptions.NotFound):  # the table comes with the first row
            return [row for row in client.list_rows(table) if f'"distance":{mark:.0f}' in "".join(row.request_payload)]
        return []

    found = poll(look, bool, 20)
    print(f"logged after {time.monotonic() - begun:.1f} s")
    assert len(found) == 1
    assert [json.loads(text) for text in found[0].request_payload] == [
        {"carrier": "UA", "distance": mark},
        {"carrier": "AA", "distance": 1.5},
    ]
    assert [json.loads(text) for text in found[0].response_payload] == [pytest.approx(2 * mark), 1.5]
    assert (found[0].endpoint, found[0].deployed_model_id) == ("served", response.deployed_model_id)
    schema = {field.name: (field.field_type, field.mode) for field in client.get_table(table).schema}
    assert schema == {
        "endpoint": ("STRING", "NULLABLE"),
        "deployed_model_id": ("STRING", "NULLABLE"),
        "logging_time": ("TIMESTAMP", "NULLABLE"),
        "request_id": ("NUMERIC", "NULLABLE"),
        "request_payload": ("STRING", "REPEATED"),
        "response_payload": ("STRING", "REPEATED"),
    }


def test_model_that_is_deployed_cannot_be_deleted(api, endpoint, model):
    with pytest.raises(exceptions.FailedPrecondition, match="is deployed to"):
        api.models.delete_model(name=model)
    with pytest.raises(exceptions.FailedPrecondition, match="is deployed to"):
        api.models.delete_model_version(name=f"{model}@2")
    with pytest.raises(exceptions.FailedPrecondition, match="has deployed models"):
        api.endpoints.delete_endpoint(name=endpoint)


def test_traffic_moves_by_update_and_then_the_model_may_go(api, endpoint, model):
    def set_split(split: dict[str, int]) -> None:
        api.endpoints.update_endpoint(
            endpoint={"name": endpoint, "traffic_split": split},
            update_mask=field_mask_pb2.FieldMask(paths=["traffic_split"]),
        )

    with pytest.raises(exceptions.FailedPrecondition, match="50 percent of the traffic"):
        api.endpoints.undeploy_model(endpoint=endpoint, deployed_model_id="2")
    with pytest.raises(exceptions.InvalidArgument, match="adds up to 99"):
        set_split({"1": 99})
    set_split({"1": 100})
    asked = [
        api.predictions.predict(endpoint=endpoint, instances=instances({"carrier": "AA", "distance": 1}))
        for _ in range(10)
    ]
    assert {response.deployed_model_id for response in asked} == {"1"}
    api.endpoints.undeploy_model(endpoint=endpoint, deployed_model_id="2").result(timeout=30)
    assert [deployed.id for deployed in api.endpoints.get_endpoint(name=endpoint).deployed_models] == ["1"]
    with pytest.raises(exceptions.NotFound):
        api.endpoints.undeploy_model(endpoint=endpoint, deployed_model_id="2")
    deploy(api, endpoint, f"{model}@2", {"1": 50, "0": 50}, id="2", display_name="two")


def test_deployed_model_is_mutated_by_mask(api, endpoint):
    deployed = {"id": "1", "dedicated_resources": {"max_replica_count": 3}}
    mask = field_mask_pb2.FieldMask(paths=["dedicated_resources.max_replica_count"])
    api.endpoints.mutate_deployed_model(endpoint=endpoint, deployed_model=deployed, update_mask=mask).result(timeout=10)
    seen = api.endpoints.get_endpoint(name=endpoint).deployed_models[0].dedicated_resources
    assert (seen.min_replica_count, seen.max_replica_count, seen.machine_spec.machine_type) == (1, 3, "n1-standard-2")
    with pytest.raises(exceptions.InvalidArgument, match="update_mask"):
        api.endpoints.mutate_deployed_model(
            endpoint=endpoint, deployed_model=deployed, update_mask=field_mask_pb2.FieldMask(paths=["model"])
        )


def test_served_process_that_dies_is_started_again(api, endpoint, local_cloud):
    pids = serving_pids(local_cloud.state_path)
    assert len(pids) == 2
    for pid in pids:
        os.kill(pid, 9)
    response = api.predictions.predict(
        endpoint=endpoint, instances=instances({"carrier": "UA", "distance": 2}), timeout=60
    )
    assert list(response.predictions) == [4.0]
    assert not set(serving_pids(local_cloud.state_path)) & set(pids)


@pytest.mark.parametrize("secret", [None, "", "wrong"])
def test_the_process_of_a_model_answers_the_service_only(endpoint, local_cloud, secret):
    """Its port is open to every user of this machine; the secret in its environment is its owner's alone."""
    variables = environment_of(serving_pids(local_cloud.state_path)[0])
    poll(
        lambda: is_port_free(int(variables["AIP_HTTP_PORT"])), lambda free: not free
    )  # it may just have been restarted
    address = f"http://127.0.0.1:{variables['AIP_HTTP_PORT']}{variables['AIP_PREDICT_ROUTE']}"
    body = {"instances": [{"carrier": "UA", "distance": 2}]}
    headers = {} if secret is None else {"X-Serving-Secret": secret}
    asked = requests.post(address, json=body, headers=headers, timeout=10)
    assert (asked.status_code, "predictions" in asked.text) == (401, False)
    right = {"X-Serving-Secret": variables["LOCALCLOUD_SERVING_SECRET"]}
    assert requests.post(address, json=body, headers=right, timeout=10).json() == {"predictions": [4.0]}


def test_undeployed_process_ends(api, local_cloud, empty_endpoint, model):
    before = set(serving_pids(local_cloud.state_path))
    deployed = deploy(api, empty_endpoint, model)
    assert re.fullmatch(r"[0-9]{1,19}", deployed.id)
    (new,) = set(serving_pids(local_cloud.state_path)) - before
    with pytest.raises(exceptions.FailedPrecondition, match="empty traffic split"):
        api.predictions.predict(endpoint=empty_endpoint, instances=instances({"carrier": "UA", "distance": 2}))
    api.endpoints.undeploy_model(endpoint=empty_endpoint, deployed_model_id=deployed.id).result(timeout=30)
    poll(lambda: new in serving_pids(local_cloud.state_path), lambda there: not there)


def serving_pids(state_path: Path) -> list[int]:
    """Processes that serve a model of this state directory."""
    place = str(state_path / "vertex/serving")
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if environment_of(pid).get("LOCALCLOUD_ARTIFACTS", "").startswith(place)]


def environment_of(pid: int) -> dict[str, str]:
    """Variables that a process was started with; none of another user's."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
