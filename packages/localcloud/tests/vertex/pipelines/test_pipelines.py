"""Training pipelines of custom tasks, through Google's SDK and client."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform
from google.cloud import aiplatform_v1 as v1
from google.protobuf import json_format, struct_pb2

from localcloud.vertex.jobs.pipelines.checks import CUSTOM_TASK
from packages.localcloud.tests.vertex.conftest import SERVING_IMAGE, TRAINER_IMAGE, make_pool, poll

# Copies a SavedModel that is there to where the service wants the new one, as a training would write it.
TRAIN = """
    import os, sys
    from google.cloud import storage

    def parts(uri):
        bucket, _, path = uri.removeprefix("gs://").partition("/")
        return bucket, path.rstrip("/")

    (bucket, source), (_, target) = parts(sys.argv[1]), parts(os.environ["AIP_MODEL_DIR"])
    home = storage.Client().bucket(bucket)
    for blob in home.list_blobs(prefix=source + "/"):
        home.copy_blob(blob, home, target + blob.name.removeprefix(source))
"""
ENDED = {"PIPELINE_STATE_SUCCEEDED", "PIPELINE_STATE_FAILED", "PIPELINE_STATE_CANCELLED"}


@pytest.fixture(scope="module")
def pipelines(local_cloud) -> v1.PipelineServiceClient:
    """The service, over gRPC."""
    return v1.PipelineServiceClient(
        client_options={"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com:443"}
    )


@pytest.fixture
def sdk(local_cloud) -> Any:
    """The SDK, pointed at the local cloud by environment alone."""
    aiplatform.init(
        project=local_cloud.project, location=local_cloud.region, staging_bucket=f"gs://{local_cloud.bucket}"
    )
    return aiplatform


def inputs(code: str = "pass", base: str = "", **spec: Any) -> struct_pb2.Value:
    """The inputs of a custom task, as REST writes them."""
    document = {"workerPoolSpecs": [_camel(make_pool(code))], **spec}
    if base:
        document["baseOutputDirectory"] = {"outputUriPrefix": base}
    return json_format.ParseDict(document, struct_pb2.Value())


def _camel(pool: dict[str, Any]) -> dict[str, Any]:
    return json_format.MessageToDict(v1.WorkerPoolSpec.pb(v1.WorkerPoolSpec(pool)))


def make(**fields: Any) -> v1.TrainingPipeline:
    """A pipeline of one custom task."""
    return v1.TrainingPipeline(
        **{
            "display_name": "pipeline",
            "training_task_definition": CUSTOM_TASK,
            "training_task_inputs": inputs(),
            **fields,
        }
    )


def wait(pipelines, name: str, *states: str) -> v1.TrainingPipeline:
    return poll(
        lambda: pipelines.get_training_pipeline(name=name), lambda seen: seen.state.name in (set(states) or ENDED)
    )


def test_the_sdk_trains_a_script_and_gets_its_model(sdk, bucket, saved_model_uri, tmp_path: Path):
    """`CustomTrainingJob.run`: a script becomes a package, a pipeline, a custom job and a model."""
    script = tmp_path / "task.py"
    script.write_text("\n".join(line[4:] for line in TRAIN.splitlines()))
    job = sdk.CustomTrainingJob(
        display_name="sdk training",
        script_path=str(script),
        container_uri=TRAINER_IMAGE,
        model_serving_container_image_uri=SERVING_IMAGE,
        labels={"by": "sdk-pipeline"},
    )
    model = job.run(
        args=[saved_model_uri],
        replica_count=1,
        machine_type="n1-standard-4",
        base_output_dir=f"gs://{bucket.name}/vertex-tests/pipelines/sdk",
        model_display_name="sdk trained",
        model_id="sdk_trained",
        model_version_aliases=["fresh"],
        sync=True,
    )
    assert job.state.name == "PIPELINE_STATE_SUCCEEDED"
    assert (model.display_name, model.version_id, set(model.version_aliases)) == (
        "sdk trained",
        "1",
        {"default", "fresh"},
    )
    assert model.uri == f"gs://{bucket.name}/vertex-tests/pipelines/sdk/model"
    backing = sdk.CustomJob.get(job._gca_resource.training_task_metadata["backingCustomJob"])
    assert (backing.state.name, backing.display_name) == ("JOB_STATE_SUCCEEDED", "sdk training-custom-job")
    assert backing.labels == {"by": "sdk-pipeline"}
    assert [seen.resource_name for seen in sdk.CustomTrainingJob.list(filter="labels.by=sdk-pipeline")] == [
        job.resource_name
    ]
    job.delete()
    assert sdk.CustomTrainingJob.list(filter="labels.by=sdk-pipeline") == []


def test_a_container_job_adds_a_version(sdk, bucket, saved_model_uri, upload):
    parent = upload("pipelined").model
    job = sdk.CustomContainerTrainingJob(
        display_name="container",
        container_uri=TRAINER_IMAGE,
        command=make_pool(TRAIN)["container_spec"]["command"],
        model_serving_container_image_uri=SERVING_IMAGE,
    )
    model = job.run(
        args=[saved_model_uri],
        machine_type="n1-standard-4",
        parent_model=parent,
        is_default_version=False,
        base_output_dir=f"gs://{bucket.name}/vertex-tests/pipelines/container",
        sync=True,
    )
    assert (model.resource_name, model.version_id) == (parent, "2")


def test_a_failing_job_fails_the_pipeline(pipelines, api):
    made = pipelines.create_training_pipeline(
        parent=api.parent, training_pipeline=make(training_task_inputs=inputs("raise SystemExit(3)"))
    )
    assert made.state.name == "PIPELINE_STATE_PENDING"
    ended = wait(pipelines, made.name)
    assert (ended.state.name, ended.error.code) == ("PIPELINE_STATE_FAILED", 3)
    assert "non-zero status of 3" in ended.error.message
    assert ended.create_time <= ended.start_time <= ended.end_time


def test_a_job_that_leaves_no_model_fails_the_pipeline(pipelines, api, bucket):
    made = pipelines.create_training_pipeline(
        parent=api.parent,
        training_pipeline=make(
            training_task_inputs=inputs(base=f"gs://{bucket.name}/vertex-tests/pipelines/none"),
            model_to_upload={"display_name": "none", "container_spec": {"image_uri": SERVING_IMAGE}},
        ),
    )
    ended = wait(pipelines, made.name)
    assert (ended.state.name, ended.error.code) == ("PIPELINE_STATE_FAILED", 9)
    assert "pipelines/none/model is expected to contain a SavedModel" in ended.error.message


def test_cancelling_ends_the_job_too(pipelines, api):
    made = pipelines.create_training_pipeline(
        parent=api.parent, training_pipeline=make(training_task_inputs=inputs("import time; time.sleep(60)"))
    )
    seen = poll(
        lambda: pipelines.get_training_pipeline(name=made.name), lambda seen: seen.training_task_metadata is not None
    )
    job = api.jobs.get_custom_job(name=seen.training_task_metadata["backingCustomJob"])
    api.wait(job, "JOB_STATE_RUNNING")
    with pytest.raises(exceptions.FailedPrecondition, match="cannot be deleted"):
        pipelines.delete_training_pipeline(name=made.name)
    pipelines.cancel_training_pipeline(name=made.name)
    ended = wait(pipelines, made.name)
    assert (ended.state.name, ended.error.code) == ("PIPELINE_STATE_CANCELLED", 1)
    assert api.wait(job).state.name == "JOB_STATE_CANCELLED"


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        pytest.param({"display_name": ""}, exceptions.InvalidArgument, "display_name; Message: Required", id="no name"),
        pytest.param({"labels": {"A": "b"}}, exceptions.InvalidArgument, "Label key 'A' is invalid", id="label"),
        pytest.param(
            {"training_task_definition": "gs://mine/task.yaml"}, exceptions.InvalidArgument, "defines no", id="task"
        ),
        pytest.param(
            {"training_task_definition": CUSTOM_TASK.replace("custom_task", "automl_tables")},
            exceptions.MethodNotImplemented,
            "offers only",
            id="AutoML",
        ),
        pytest.param(
            {"input_data_config": {"dataset_id": "1"}},
            exceptions.MethodNotImplemented,
            "no managed datasets",
            id="dataset",
        ),
        pytest.param(
            {"training_task_inputs": json_format.ParseDict({"pools": 1}, struct_pb2.Value())},
            exceptions.InvalidArgument,
            'no field named "pools"',
            id="unknown input",
        ),
        pytest.param(
            {"training_task_inputs": json_format.ParseDict({"serviceAccount": "a@b"}, struct_pb2.Value())},
            exceptions.InvalidArgument,
            "training_task_inputs.worker_pool_specs; Message: Required field is not set",
            id="no pools",
        ),
        pytest.param(
            {"model_to_upload": {"display_name": "m"}}, exceptions.InvalidArgument, "serving container", id="no server"
        ),
        pytest.param(
            {"model_to_upload": {"display_name": "m", "container_spec": {"image_uri": SERVING_IMAGE}}},
            exceptions.InvalidArgument,
            "base_output_directory; Message: model_to_upload is uploaded from there",
            id="no output",
        ),
    ],
)
def test_refused_pipelines(pipelines, api, changes, error, words):
    with pytest.raises(error, match=words):
        pipelines.create_training_pipeline(parent=api.parent, training_pipeline=make(**changes))


@contextlib.contextmanager
def stockout(rest):
    made = rest(
        "POST",
        "/faults",
        {
            "target": "Job.Start",
            "filter": "labels.for=stockout",
            "action": {"kind": "error", "code": "RESOURCE_EXHAUSTED"},
        },
    ).json()
    yield
    rest("DELETE", f"/faults/{made['id']}")


def test_a_stockout_over_rest(rest):
    """A fault finds the custom job by the pipeline's labels."""
    body = {
        "displayName": "over rest",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": json_format.MessageToDict(inputs()),
        "labels": {"for": "stockout"},
    }
    with stockout(rest):
        made = rest("POST", "trainingPipelines", body).json()
        assert made["state"] == "PIPELINE_STATE_PENDING"
        ended = poll(
            lambda: rest("GET", f"/v1/{made['name']}").json(), lambda seen: seen["state"] in ENDED, timeout_s=30
        )
    assert (ended["state"], ended["error"]["code"]) == ("PIPELINE_STATE_FAILED", 8)
    listed = rest("GET", "trainingPipelines", params={"filter": "labels.for=stockout"}).json()["trainingPipelines"]
    assert [pipeline["name"] for pipeline in listed] == [made["name"]]
    assert rest("DELETE", f"/v1/{made['name']}").json()["done"]
