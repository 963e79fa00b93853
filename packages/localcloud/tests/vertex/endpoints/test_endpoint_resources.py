"""Endpoints through Google's client: making, naming, refusing; nothing is served here."""

from __future__ import annotations

from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1
from google.protobuf import field_mask_pb2, json_format, struct_pb2

from packages.localcloud.tests.vertex.conftest import RESOURCES, SERVING_IMAGE, deploy


def instances(*rows: dict[str, Any]) -> list[struct_pb2.Value]:
    return [json_format.ParseDict(row, struct_pb2.Value()) for row in rows]


@pytest.fixture(scope="module")
def model(upload) -> str:
    """Name of a model with one version."""
    return str(upload("refused").model)


def test_endpoint_has_the_wished_id_and_only_once(api):
    made = api.endpoints.create_endpoint(
        parent=api.parent, endpoint={"display_name": "once", "labels": {"a": "b"}}, endpoint_id="only-once"
    ).result(timeout=10)
    assert made.name == f"{api.parent}/endpoints/only-once"
    with pytest.raises(exceptions.AlreadyExists):
        api.endpoints.create_endpoint(parent=api.parent, endpoint={"display_name": "once"}, endpoint_id="only-once")
    assert [
        seen.name for seen in api.endpoints.list_endpoints(request={"parent": api.parent, "filter": "labels.a=b"})
    ] == [made.name]
    assert [
        seen.name
        for seen in api.endpoints.list_endpoints(request={"parent": api.parent, "filter": "endpoint=only-once"})
    ] == [made.name]
    api.endpoints.delete_endpoint(name=made.name).result(timeout=10)
    with pytest.raises(exceptions.NotFound):
        api.endpoints.get_endpoint(name=made.name)


@pytest.mark.parametrize("endpoint_id", ["Upper", "under_score", "a" * 64, "ends-", "012", "1234567890"])
def test_malformed_endpoint_ids_are_refused(api, endpoint_id):
    with pytest.raises(exceptions.InvalidArgument, match="Invalid ID"):
        api.endpoints.create_endpoint(parent=api.parent, endpoint={"display_name": "x"}, endpoint_id=endpoint_id)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({}, "display_name; Message: Required", id="no name"),
        pytest.param(
            {"display_name": "x", "traffic_split": {"1": 100}}, "traffic_split names", id="traffic without models"
        ),
        pytest.param(
            {"display_name": "x", "predict_request_response_logging_config": {"enabled": True}},
            "sampling rate is 0",
            id="no sampling rate",
        ),
        pytest.param(
            {
                "display_name": "x",
                "predict_request_response_logging_config": {
                    "enabled": True,
                    "sampling_rate": 1,
                    "bigquery_destination": {"output_uri": "gs://x"},
                },
            },
            "no BigQuery address",
            id="no bq://",
        ),
    ],
)
def test_malformed_endpoints_are_refused(api, fields, words):
    with pytest.raises(exceptions.InvalidArgument, match=words):
        api.endpoints.create_endpoint(parent=api.parent, endpoint=fields)


def test_log_table_gets_a_name_when_only_the_project_is_given(api):
    logging = {"enabled": True, "sampling_rate": 0.5, "bigquery_destination": {"output_uri": "bq://local-project"}}
    made = api.endpoints.create_endpoint(
        parent=api.parent,
        endpoint={"display_name": "log me", "predict_request_response_logging_config": logging},
        endpoint_id="log-me",
    ).result(timeout=10)
    uri = made.predict_request_response_logging_config.bigquery_destination.output_uri
    assert uri == "bq://local-project.logging_log_me_log_me.request_response_logging"
    api.endpoints.delete_endpoint(name=made.name).result(timeout=10)


def test_endpoint_is_updated_by_mask(api, empty_endpoint):
    def update(*paths: str, **fields: Any) -> v1.Endpoint:
        return api.endpoints.update_endpoint(
            endpoint={"name": empty_endpoint, **fields}, update_mask=field_mask_pb2.FieldMask(paths=paths)
        )

    update("description", "labels", description="changed", labels={"a": "b"}, display_name="not in the mask")
    seen = api.endpoints.get_endpoint(name=empty_endpoint)
    assert (seen.display_name, seen.description, dict(seen.labels)) == ("empty", "changed", {"a": "b"})
    with pytest.raises(exceptions.InvalidArgument, match="update_mask"):
        update("deployed_models")
    with pytest.raises(exceptions.InvalidArgument, match="traffic_split names"):
        update("traffic_split", traffic_split={"1": 100})
    with pytest.raises(exceptions.Aborted, match="etag"):
        update("description", description="x", etag="old")


def test_an_unchanged_endpoint_keeps_its_etag(api, empty_endpoint):
    """However often it is read: maps have no order of their own on the wire."""
    labels = {f"label-{number}": str(number) for number in range(30)}
    changed = api.endpoints.update_endpoint(
        endpoint={"name": empty_endpoint, "labels": labels}, update_mask=field_mask_pb2.FieldMask(paths=["labels"])
    )
    assert {api.endpoints.get_endpoint(name=empty_endpoint).etag for _ in range(20)} == {changed.etag}


def test_nothing_deployed_means_no_predictions(api, empty_endpoint):
    with pytest.raises(exceptions.FailedPrecondition, match="no deployed model"):
        api.predictions.predict(endpoint=empty_endpoint, instances=instances({"carrier": "UA"}))
    with pytest.raises(exceptions.NotFound):
        api.predictions.predict(endpoint=f"{api.parent}/endpoints/nobody", instances=instances({"carrier": "UA"}))


@pytest.mark.parametrize(
    ("fields", "split", "words"),
    [
        pytest.param({"dedicated_resources": None}, {}, "dedicated_resources", id="no resources"),
        pytest.param({"dedicated_resources": {**RESOURCES, "machine_spec": {}}}, {}, "machine_spec", id="no machine"),
        pytest.param(
            {"dedicated_resources": {**RESOURCES, "machine_spec": {"machine_type": "z9"}}},
            {},
            "'z9' is not supported",
            id="machine",
        ),
        pytest.param({"id": "abc"}, {}, "1 to 10 digits", id="id"),
        pytest.param({"id": "0"}, {}, "is taken", id="id zero"),
        pytest.param({}, {"0": 90}, "adds up to 90", id="90 percent"),
        pytest.param({}, {"0": 50, "7": 50}, r"names \['7'\]", id="unknown model"),
        pytest.param({}, {"0": 101}, "adds up to 101", id="101 percent"),
    ],
)
def test_malformed_deployments_are_refused_at_once(api, empty_endpoint, model, fields, split, words):
    with pytest.raises(exceptions.InvalidArgument, match=words):
        deploy(api, empty_endpoint, model, split, **fields)
    assert not api.endpoints.get_endpoint(name=empty_endpoint).deployed_models


def test_model_that_cannot_be_loaded_fails_the_operation(api, empty_endpoint, bucket):
    bucket.blob("vertex-tests/broken/saved_model.pb").upload_from_string(b"not a SavedModel")
    spec = {
        "display_name": "broken",
        "container_spec": {"image_uri": SERVING_IMAGE},
        "artifact_uri": f"gs://{bucket.name}/vertex-tests/broken",
    }
    broken = api.models.upload_model(request={"parent": api.parent, "model": spec}).result(timeout=30)
    with pytest.raises(exceptions.FailedPrecondition, match="ended before it was healthy"):
        deploy(api, empty_endpoint, broken.model, {"0": 100})
    assert not api.endpoints.get_endpoint(name=empty_endpoint).deployed_models
    assert not api.endpoints.get_endpoint(name=empty_endpoint).traffic_split
