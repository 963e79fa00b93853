"""No field is dropped: what is kept comes back, what the service sets cannot be set, the rest is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1

from localcloud.fields import Fate
from localcloud.vertex.wire.methods import raw
from packages.localcloud.tests.google_messages import Place, put
from packages.localcloud.tests.vertex.conftest import TRAINER_IMAGE, Api, make_job, make_pool
from packages.localcloud.tests.vertex.kept_fields import METHODS, REQUESTS, assert_returned, fill, kept
from packages.localcloud.tests.vertex.studies import tuning_job

CUSTOM_TASK = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"


@pytest.fixture(scope="module")
def send(api) -> Callable[[str, Any], Any]:
    """Sends a request's message to a method, by its name; gives the response in plain protobuf."""
    channel = api.jobs.transport.grpc_channel

    def call(method: str, request: Any) -> Any:
        known = METHODS[method]
        return channel.unary_unary(known.path)(request.SerializeToString(), timeout=60)

    return call


def refusal(send, method: str, request: Any) -> grpc.RpcError:
    """Return the error that a request gets."""
    with pytest.raises(grpc.RpcError) as raised:
        send(method, request)
    return raised.value


def test_every_method_that_is_offered_has_a_table(send):
    """And no other: what it says of fields is of something that is there."""

    def is_offered(name: str) -> bool:
        try:
            send(name, raw(METHODS[name].request_type()))
        except grpc.RpcError as error:
            return bool(error.details() != f"The local cloud does not offer {name}.")
        return True

    assert {name for name in METHODS if is_offered(name)} == set(REQUESTS.types)


def refused() -> list[tuple[str, Place]]:
    return [(method, place) for method in REQUESTS.types for place in REQUESTS.places(method, Fate.REFUSED)]


def test_what_is_refused_is_refused_by_its_name(send):
    """Alone in a request of each method that would take it: before anything else is looked at."""
    assert len(refused()) > 100
    for method, place in refused():
        request = raw(METHODS[method].request_type())
        put(request, place)
        error = refusal(send, method, request)
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED, place.shown()
        assert f"does not offer {place.shown()}: {place.rule.reason}. Leave it out." in error.details()


def test_of_a_custom_job(api: Api):
    request = v1.CreateCustomJobRequest(parent=api.parent, custom_job=make_job())
    given = fill(raw(request), kept("JobService.CreateCustomJob", "custom_job"))
    made = api.jobs.create_custom_job(request)
    assert_returned(raw(api.jobs.get_custom_job(name=made.name)), given)
    api.jobs.cancel_custom_job(name=made.name)


def test_of_a_tuning_job(api: Api):
    request = v1.CreateHyperparameterTuningJobRequest(parent=api.parent, hyperparameter_tuning_job=tuning_job())
    given = fill(raw(request), kept("JobService.CreateHyperparameterTuningJob", "hyperparameter_tuning_job"))
    made = api.jobs.create_hyperparameter_tuning_job(request)
    assert_returned(raw(api.jobs.get_hyperparameter_tuning_job(name=made.name)), given)
    api.jobs.cancel_hyperparameter_tuning_job(name=made.name)


def test_of_a_persistent_resource(api: Api):
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1}
    resource = {"resource_pools": [pool]}
    request = v1.CreatePersistentResourceRequest(
        parent=api.parent, persistent_resource_id="all-kept", persistent_resource=resource
    )
    method = "PersistentResourceService.CreatePersistentResource"
    given = fill(raw(request), kept(method, "persistent_resource"))
    made = api.persistent.create_persistent_resource(request).result(timeout=10)
    assert_returned(raw(api.persistent.get_persistent_resource(name=made.name)), given)
    api.persistent.delete_persistent_resource(name=made.name).result(timeout=10)


def test_of_a_metadata_store_and_a_context(api: Api):
    request = v1.CreateMetadataStoreRequest(parent=api.parent, metadata_store_id="all-kept")
    given = fill(raw(request), kept("MetadataService.CreateMetadataStore", "metadata_store"))
    store = api.metadata.create_metadata_store(request).result(timeout=10)
    assert_returned(raw(api.metadata.get_metadata_store(name=store.name)), given)
    schema = {"schema_title": "system.Experiment", "metadata": {"deep": {"n": 1}}}
    asked = v1.CreateContextRequest(parent=store.name, context_id="all-kept", context=schema)
    given = fill(raw(asked), kept("MetadataService.CreateContext", "context"))
    made = api.metadata.create_context(asked)
    assert_returned(raw(api.metadata.get_context(name=made.name)), given)


def test_of_an_artifact(api: Api):
    store = v1.CreateMetadataStoreRequest(parent=api.parent, metadata_store_id="artifacts-kept", metadata_store={})
    parent = api.metadata.create_metadata_store(store).result(timeout=10).name
    schema = {"schema_title": "system.Model", "metadata": {"deep": {"n": 1}}}
    asked = v1.CreateArtifactRequest(parent=parent, artifact_id="all-kept", artifact=schema)
    given = fill(raw(asked), kept("MetadataService.CreateArtifact", "artifact"))
    made = api.metadata.create_artifact(asked)
    assert_returned(raw(api.metadata.get_artifact(name=made.name)), given)


def test_of_tensorboards_and_what_is_in_them(api: Api):
    boards, of = api.boards, "TensorboardService.Create"
    board = v1.CreateTensorboardRequest(parent=api.parent, tensorboard={"display_name": "kept"})
    given = fill(raw(board), kept(f"{of}Tensorboard", "tensorboard"))
    name = boards.create_tensorboard(board).result(timeout=10).name
    assert_returned(raw(boards.get_tensorboard(name=name)), given)
    experiment = v1.CreateTensorboardExperimentRequest(parent=name, tensorboard_experiment_id="e")
    given = fill(raw(experiment), kept(f"{of}TensorboardExperiment", "tensorboard_experiment"))
    name = boards.create_tensorboard_experiment(experiment).name
    assert_returned(raw(boards.get_tensorboard_experiment(name=name)), given)
    run = v1.CreateTensorboardRunRequest(parent=name, tensorboard_run_id="r")
    given = fill(raw(run), kept(f"{of}TensorboardRun", "tensorboard_run"))
    name = boards.create_tensorboard_run(run).name
    assert_returned(raw(boards.get_tensorboard_run(name=name)), given)
    series = v1.CreateTensorboardTimeSeriesRequest(parent=name, tensorboard_time_series={"value_type": "SCALAR"})
    given = fill(raw(series), kept(f"{of}TensorboardTimeSeries", "tensorboard_time_series"))
    name = boards.create_tensorboard_time_series(series).name
    assert_returned(raw(boards.get_tensorboard_time_series(name=name)), given)


def test_of_an_endpoint(api: Api):
    request = v1.CreateEndpointRequest(parent=api.parent, endpoint={"display_name": "kept"})
    given = fill(raw(request), kept("EndpointService.CreateEndpoint", "endpoint"))
    made = api.endpoints.create_endpoint(request).result(timeout=10)
    assert_returned(raw(api.endpoints.get_endpoint(name=made.name)), given)
    api.endpoints.delete_endpoint(name=made.name).result(timeout=10)


@pytest.fixture(scope="module")
def model(api: Api, local_cloud) -> v1.Model:
    """A model in which everything is set that is kept."""
    request = v1.UploadModelRequest(
        parent=api.parent, model={"display_name": "kept", "container_spec": {"image_uri": "own/server:1"}}
    )
    schemata = ("instance_schema_uri", "parameters_schema_uri", "prediction_schema_uri")
    addresses = dict.fromkeys(schemata, f"gs://{local_cloud.bucket}/schema.yaml")
    given = fill(raw(request), kept("ModelService.UploadModel", "model"), addresses)
    name = api.models.upload_model(request).result(timeout=10).model
    found = api.models.get_model(name=name)
    assert_returned(raw(found), given)
    return found


def test_of_an_evaluation_and_its_slices(api: Api, model: v1.Model):
    """The fields of a slice too that are documented as the service's own."""
    request = v1.ImportModelEvaluationRequest(parent=model.name)
    given = fill(raw(request), kept("ModelService.ImportModelEvaluation", "model_evaluation"))
    evaluation = api.models.import_model_evaluation(request)
    assert_returned(raw(api.models.get_model_evaluation(name=evaluation.name)), given)
    slices = v1.BatchImportModelEvaluationSlicesRequest(parent=evaluation.name)
    method = "ModelService.BatchImportModelEvaluationSlices"
    given = fill(raw(slices), kept(method, "model_evaluation_slices[0]"))
    names = api.models.batch_import_model_evaluation_slices(slices).imported_model_evaluation_slices
    assert_returned(raw(api.models.get_model_evaluation_slice(name=names[0])), given)


def test_of_a_batch_prediction_job(api: Api, model: v1.Model, local_cloud):
    """It will fail: nothing stands for the model's image."""
    uri = f"gs://{local_cloud.bucket}/kept"
    job = v1.BatchPredictionJob(
        display_name="kept",
        model=model.name,
        input_config={"instances_format": "jsonl", "gcs_source": {"uris": [uri]}},
        output_config={"predictions_format": "jsonl", "gcs_destination": {"output_uri_prefix": uri}},
        dedicated_resources={"machine_spec": {"machine_type": "n1-standard-2"}},
    )
    request = v1.CreateBatchPredictionJobRequest(parent=api.parent, batch_prediction_job=job)
    given = fill(raw(request), kept("JobService.CreateBatchPredictionJob", "batch_prediction_job"))
    made = api.jobs.create_batch_prediction_job(request)
    assert_returned(raw(api.jobs.get_batch_prediction_job(name=made.name)), given)


def pipeline_client(api: Api) -> v1.PipelineServiceClient:
    from google.cloud.aiplatform_v1.services.pipeline_service.transports import PipelineServiceGrpcTransport

    return v1.PipelineServiceClient(transport=PipelineServiceGrpcTransport(channel=api.jobs.transport.grpc_channel))


def make_pipeline(**spec: Any) -> v1.TrainingPipeline:
    pool = {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": 1,
        "containerSpec": {"imageUri": TRAINER_IMAGE, "command": ["python", "-c", "pass"]},
    }
    inputs = {"workerPoolSpecs": [pool], **spec}
    return v1.TrainingPipeline(display_name="kept", training_task_definition=CUSTOM_TASK, training_task_inputs=inputs)


def test_of_a_training_pipeline(api: Api):
    """The model that it uploads is kept by the registry's rules."""
    request = v1.CreateTrainingPipelineRequest(parent=api.parent, training_pipeline=make_pipeline())
    method = "PipelineService.CreateTrainingPipeline"
    given = fill(raw(request), kept(method, "training_pipeline", "model_to_upload"))
    pipelines = pipeline_client(api)
    made = pipelines.create_training_pipeline(request)
    assert_returned(raw(pipelines.get_training_pipeline(name=made.name)), given)
    pipelines.cancel_training_pipeline(name=made.name)


def test_the_inputs_of_a_pipelines_task_are_held_against_the_table_of_custom_jobs(api: Api):
    """They come as a value of JSON, and name the spec of a job."""
    with pytest.raises(exceptions.MethodNotImplemented, match=r"training_task_inputs\.enable_web_access: there are no"):
        pipeline_client(api).create_training_pipeline(
            parent=api.parent, training_pipeline=make_pipeline(enableWebAccess=True)
        )


def test_what_the_service_sets_cannot_be_set(api: Api):
    """It is taken, as by the service, and is not looked at."""
    job = make_job()
    job.name, job.state, job.error = "mine", v1.JobState.JOB_STATE_FAILED, {"code": 3, "message": "mine"}
    job.web_access_uris = {"a": "b"}
    made = api.jobs.create_custom_job(parent=api.parent, custom_job=job)
    assert made.name.startswith(api.parent)
    assert (made.state, made.web_access_uris) == (v1.JobState.JOB_STATE_QUEUED, {})
    assert "error" not in made
    given = v1.Endpoint(display_name="x", name="mine", etag="mine", deployed_models=[{"model": "mine"}])
    endpoint = api.endpoints.create_endpoint(parent=api.parent, endpoint=given).result(timeout=10)
    assert endpoint.name.startswith(api.parent)
    assert (endpoint.etag != "mine", list(endpoint.deployed_models)) == (True, [])
    api.endpoints.delete_endpoint(name=endpoint.name).result(timeout=10)


def test_fields_that_say_nothing_are_no_wish(api: Api):
    """Google's own SDK sends false, and empty messages."""
    made = api.create_job(enable_web_access=False, psc_interface_config={}, models=[])
    assert api.wait(made).state.name == "JOB_STATE_SUCCEEDED"


def test_of_a_spec_what_trials_cannot_have(api: Api):
    """A rule of one place: jobs of their own have it."""
    job = tuning_job(job_spec={"worker_pool_specs": [make_pool("")], "persistent_resource_id": "warm"})
    with pytest.raises(exceptions.MethodNotImplemented, match=r"trial_job_spec\.persistent_resource_id: trials have"):
        api.jobs.create_hyperparameter_tuning_job(parent=api.parent, hyperparameter_tuning_job=job)


def test_over_rest(rest):
    """The same table, and the parameters that every address has."""
    answer = rest("POST", "customJobs", {"displayName": "x", "jobSpec": {"enableWebAccess": True}})
    assert answer.status_code == 501
    assert "custom_job.job_spec.enable_web_access" in answer.json()["error"]["message"]
    for query in ("callback=f", "alt=media", "$alt=proto", "$httpHeaders=a:b"):
        answer = rest("GET", f"customJobs?{query}")
        name = query.partition("=")[0]
        assert (answer.status_code, f"the parameter {name}:" in answer.text) == (501, True), query
    for query in ("alt=json", "$alt=json;enum-encoding=int", "prettyPrint=false", "quotaUser=me", "fields=customJobs"):
        assert rest("GET", f"customJobs?{query}").status_code == 200, query


def test_an_endpoint_is_not_changed_by_an_update_of_what_is_fixed(api: Api, empty_endpoint: str):
    """UpdateEndpointLongRunning has no mask: what is set is what is asked for."""
    fixed = {"encryption_spec": {"kms_key_name": "k"}, "dedicated_endpoint_enabled": True}
    for name, value in fixed.items():
        with pytest.raises(exceptions.MethodNotImplemented, match=f"endpoint.{name}"):
            api.endpoints.update_endpoint_long_running(endpoint={"name": empty_endpoint, name: value})
    config = {"inference_timeout": {"seconds": 7}}
    changed = {"name": empty_endpoint, "client_connection_config": config}
    api.endpoints.update_endpoint_long_running(endpoint=changed).result(timeout=10)
    found = api.endpoints.get_endpoint(name=empty_endpoint)
    assert found.client_connection_config.inference_timeout.total_seconds() == 7
