"""Batch prediction jobs as resources: refusals, lists, cancelling, faults, REST, a restart."""

from __future__ import annotations

import contextlib

import pytest
from google.api_core import exceptions

from packages.localcloud.tests.vertex.conftest import ENDED, SERVING_IMAGE


def destination(uri: str) -> dict:
    return {"predictions_format": "bigquery", "bigquery_destination": {"output_uri": uri}}


def source(uri: str) -> dict:
    return {"instances_format": "bigquery", "bigquery_source": {"input_uri": uri}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"display_name": ""}, "display_name; Message: Required field", id="no name"),
        pytest.param({"labels": {"Run": "a"}}, "Label key 'Run' is invalid", id="label"),
        pytest.param({"dedicated_resources": None}, "supports only DEDICATED_RESOURCES", id="no machines"),
        pytest.param(
            {"dedicated_resources": {"machine_spec": {"machine_type": "n1-standard-3"}}},
            "'n1-standard-3' is not supported for prediction",
            id="machine",
        ),
        pytest.param(
            {
                "dedicated_resources": {
                    "machine_spec": {"machine_type": "n1-standard-2"},
                    "starting_replica_count": 3,
                    "max_replica_count": 2,
                }
            },
            "It is 3, more than max_replica_count 2",
            id="replicas",
        ),
        pytest.param({"manual_batch_tuning_parameters": {"batch_size": -1}}, "It is -1", id="batch size"),
        pytest.param({"instance_config": {"instance_type": "list"}}, "It is 'list'", id="instance type"),
        pytest.param(
            {"instance_config": {"included_fields": ["id"], "excluded_fields": ["id"]}},
            "excluded_fields must be empty",
            id="both kinds of fields",
        ),
        pytest.param({"instance_config": {"key_field": "none"}}, "has no column 'none'", id="no such column"),
        pytest.param({"input_config": source("bq://p.d")}, "'bq://p.d' is no BigQuery table", id="no table's address"),
        pytest.param(
            {"input_config": source("bq://local-project.batch.none")},
            "The BigQuery table 'bq://local-project.batch.none' does not exist",
            id="no such table",
        ),
        pytest.param({"output_config": destination("gs://x")}, "is no BigQuery address", id="destination"),
        pytest.param(
            {"output_config": destination("bq://local-project.nowhere")},
            "The BigQuery dataset of 'bq://local-project.nowhere' does not exist",
            id="no such dataset",
        ),
        pytest.param(
            {"output_config": destination("bq://local-project.batch.flights")},
            "The BigQuery table 'bq://local-project.batch.flights' exists",
            id="destination that exists",
        ),
        pytest.param(
            {"input_config": {"instances_format": "parquet", "gcs_source": {"uris": ["gs://a/b"]}}},
            'Instance format "parquet" is not supported for Model',
            id="instances' format",
        ),
        pytest.param(
            {"output_config": {**destination("bq://local-project.batch"), "predictions_format": "csv"}},
            r'Prediction format "csv" is not supported for Model .* Supported values are: \[jsonl, bigquery\]',
            id="predictions' format",
        ),
    ],
)
def test_refused_jobs(batches, changes, words):
    with pytest.raises(exceptions.InvalidArgument, match=words):
        batches.create(batches.table_job("flights", **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"generate_explanation": True}, "does not offer batch_prediction_job.generate_expl", id="explain"),
        pytest.param(
            {"output_config": {"predictions_format": "jsonl"}}, "from bigquery to jsonl", id="from tables to files"
        ),
    ],
)
def test_not_offered(batches, changes, words):
    with pytest.raises(exceptions.MethodNotImplemented, match=words):
        batches.create(batches.table_job("flights", **changes))


def test_a_column_that_cannot_be_written(batches, bq):
    bq.query_and_wait("CREATE OR REPLACE TABLE batch.spans AS SELECT INTERVAL 1 DAY AS span")
    with pytest.raises(exceptions.MethodNotImplemented, match="does not write columns of INTERVAL: 'span'"):
        batches.create(batches.table_job("spans"))


def test_buckets_that_do_not_exist(batches):
    with pytest.raises(exceptions.InvalidArgument, match="bucket of 'gs://no-such-bucket/in' does not exist"):
        batches.create(
            batches.line_job(
                input_config={"instances_format": "jsonl", "gcs_source": {"uris": ["gs://no-such-bucket/in"]}}
            )
        )


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        ("projects/local-project/locations/us-central1/models/none", exceptions.NotFound, "models/none does not exist"),
        ("projects/local-project/locations/us-east1/models/batched", exceptions.InvalidArgument, "another location"),
        ("publishers/google/models/gemini", exceptions.InvalidArgument, "Invalid resource name in field"),
    ],
)
def test_models_that_are_not_there(batches, model, error, words):
    with pytest.raises(error, match=words):
        batches.create(batches.table_job("flights", model=model))


def test_a_container_that_nothing_stands_for(batches, upload):
    model = upload("batch_own", container_spec={"image_uri": "gcr.io/nobody/server:1"}).model
    job = batches.run(batches.table_job("flights", model=model))
    assert job.state.name == "JOB_STATE_FAILED"
    assert "Failed to pull the serving image 'gcr.io/nobody/server:1'" in job.error.message


@contextlib.contextmanager
def fault(rest, target: str, **action):
    """A fault for jobs that are named `faulty`."""
    made = rest("POST", "/faults", {"target": target, "filter": 'display_name="faulty"', "action": action}).json()
    yield
    rest("DELETE", f"/faults/{made['id']}")


def test_a_stockout(batches, rest):
    with fault(rest, "Job.Start", kind="error", code="RESOURCE_EXHAUSTED"):
        job = batches.run(batches.table_job("flights", display_name="faulty"))
    assert (job.state.name, job.error.code) == ("JOB_STATE_FAILED", 8)


def test_cancelled_before_it_runs(batches, rest, api):
    with fault(rest, "Job.Start", kind="delay", seconds=60):
        job = batches.create(batches.table_job("flights", display_name="faulty"))
        assert job.state.name == "JOB_STATE_PENDING"
        with pytest.raises(exceptions.FailedPrecondition, match="JOB_STATE_PENDING and cannot be deleted"):
            api.jobs.delete_batch_prediction_job(name=job.name)
        api.jobs.cancel_batch_prediction_job(name=job.name)
        job = batches.wait(job)
    assert (job.state.name, job.error.code) == ("JOB_STATE_CANCELLED", 1)
    assert not job.output_info.bigquery_output_table


def test_rest_and_lists(batches, rest):
    body = {
        "displayName": "over rest",
        "model": batches.model,
        "inputConfig": {
            "instancesFormat": "bigquery",
            "bigquerySource": {"inputUri": "bq://local-project.batch.flights"},
        },
        "outputConfig": {
            "predictionsFormat": "bigquery",
            "bigqueryDestination": {"outputUri": "bq://local-project.batch"},
        },
        "instanceConfig": {"instanceType": "object", "keyField": "id"},
        "dedicatedResources": {"machineSpec": {"machineType": "n1-standard-2"}},
        "labels": {"over": "rest"},
    }
    made = rest("POST", "batchPredictionJobs", body).json()
    assert made["state"] == "JOB_STATE_PENDING"
    batches.api.jobs.cancel_batch_prediction_job(name=made["name"])
    listed = rest(
        "GET", "batchPredictionJobs", params={"filter": 'labels.over=rest AND display_name="over rest"'}
    ).json()
    assert [job["name"] for job in listed["batchPredictionJobs"]] == [made["name"]]
    assert rest("GET", f"/v1/{made['name']}").json()["modelVersionId"] == "1"
    ended = batches.wait(batches.api.jobs.get_batch_prediction_job(name=made["name"]))
    assert ended.state.name in ENDED
    assert rest("DELETE", f"/v1/{made['name']}").json()["done"]
    assert rest("GET", f"/v1/{made['name']}").status_code == 404


def test_a_stop_ends_it_as_failed(batches, solo, saved_model_uri):
    """A job that runs when the server stops is marked, with an error that may be tried again."""
    api = solo.start()
    model = {"display_name": "m", "container_spec": {"image_uri": SERVING_IMAGE}, "artifact_uri": saved_model_uri}
    name = api.models.upload_model(parent=api.parent, model=model).result(timeout=60).model
    assert solo.ask("POST", "/faults", {"target": "Job.Start", "action": {"kind": "delay", "seconds": 60}})[0] == 200
    job = batches.table_job("flights", model=name)
    made = api.jobs.create_batch_prediction_job(parent=api.parent, batch_prediction_job=job)
    assert solo.end() == 0
    seen = solo.start().jobs.get_batch_prediction_job(name=made.name)
    assert (seen.state.name, seen.error.code) == ("JOB_STATE_FAILED", 13)
