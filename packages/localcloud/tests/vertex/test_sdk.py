"""The high-level SDK, unmodified, against the local Vertex AI."""

from __future__ import annotations

import pytest

from packages.localcloud.tests.vertex.conftest import SERVING_IMAGE, make_pool


@pytest.fixture(scope="module")
def aiplatform(local_cloud):
    """The SDK, pointed at the local cloud by environment alone."""
    from google.cloud import aiplatform

    aiplatform.init(
        project=local_cloud.project, location=local_cloud.region, staging_bucket=f"gs://{local_cloud.bucket}"
    )
    return aiplatform


def test_custom_job_runs_to_its_end(aiplatform, local_cloud):
    job = aiplatform.CustomJob(display_name="sdk", worker_pool_specs=[make_pool("print('hi')")], labels={"by": "sdk"})
    job.run(sync=True)
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    found = aiplatform.CustomJob.list(filter='labels.by=sdk AND display_name="sdk"')
    assert [seen.resource_name for seen in found] == [job.resource_name]
    failing = aiplatform.CustomJob(display_name="sdk", worker_pool_specs=[make_pool("raise SystemExit(1)")])
    with pytest.raises(RuntimeError, match="non-zero status of 1"):
        failing.run(sync=True)
    job.delete()


def test_an_experiment_of_the_sdk_is_read_by_the_sdk(aiplatform):
    """Made, logged to, listed, shown as a table, deleted."""
    aiplatform.init(experiment="sdk-experiment", experiment_tensorboard=False)
    with aiplatform.start_run("first"):
        aiplatform.log_params({"layers": 2, "activation": "relu"})
        aiplatform.log_metrics({"auc": 0.7})
    table = aiplatform.get_experiment_df("sdk-experiment")
    columns = ["run_name", "state", "param.layers", "param.activation", "metric.auc"]
    assert table[columns].values.tolist() == [["first", "COMPLETE", 2.0, "relu", 0.7]]
    run = aiplatform.ExperimentRun("first", experiment="sdk-experiment")
    assert (run.get_params()["activation"], run.get_metrics()) == ("relu", {"auc": 0.7})
    experiment = aiplatform.Experiment("sdk-experiment")
    assert [each.name for each in aiplatform.ExperimentRun.list(experiment=experiment)] == ["first"]
    experiment.delete()
    assert aiplatform.Experiment.get("sdk-experiment") is None


def test_curves_of_an_experiment_of_the_sdk(aiplatform):
    """In a TensorBoard: logged step by step, shown in the table, read as a frame, gone with the experiment."""
    board = aiplatform.Tensorboard.create(display_name="sdk-board")
    aiplatform.init(experiment="sdk-curves", experiment_tensorboard=board)
    with aiplatform.start_run("first") as run:
        for step in (1, 2, 3):
            aiplatform.log_time_series_metrics({"loss": 1 / step, "lr": 0.1}, step=step)
    table = aiplatform.get_experiment_df("sdk-curves")
    assert table[["run_name", "time_series_metric.loss"]].values.tolist() == [["first", 1 / 3]]
    run = aiplatform.ExperimentRun("first", experiment="sdk-curves")
    frame = run.get_time_series_data_frame()
    assert frame[["step", "loss", "lr"]].values.tolist() == [[step, 1 / step, 0.1] for step in (1, 2, 3)]
    aiplatform.Experiment("sdk-curves").delete(delete_backing_tensorboard_runs=True)
    assert aiplatform.TensorboardRun.list(f"{board.resource_name}/experiments/sdk-curves") == []
    board.delete()


def test_model_from_upload_to_prediction(aiplatform, saved_model_uri):
    fields = {"serving_container_image_uri": SERVING_IMAGE, "artifact_uri": saved_model_uri}
    model = aiplatform.Model.upload(
        display_name="sdk model", model_id="sdk_model", version_aliases=["champion"], **fields
    )
    second = aiplatform.Model.upload(
        display_name="sdk model", parent_model=model.resource_name, is_default_version=False, **fields
    )
    assert (model.version_id, second.version_id) == ("1", "2")
    assert [version.version_id for version in model.versioning_registry.list_versions()] == ["1", "2"]
    second.versioning_registry.add_version_aliases(["champion"], "2")
    assert aiplatform.Model("sdk_model@champion").version_id == "2"

    endpoint = aiplatform.Endpoint.create(display_name="sdk endpoint", endpoint_id="sdk-endpoint")
    endpoint.deploy(aiplatform.Model("sdk_model@champion"), machine_type="n1-standard-2", traffic_percentage=100)
    prediction = endpoint.predict(instances=[{"carrier": "UA", "distance": 4}])
    assert prediction.predictions == [8.0]
    assert prediction.model_version_id == "2"
    assert endpoint.raw_predict(
        b'{"instances": [{"carrier": "AA", "distance": 4}]}', {"Content-Type": "application/json"}
    ).json() == {"predictions": [4.0]}
    raw = endpoint.predict(instances=[{"carrier": "UA", "distance": 4}], use_raw_predict=True)
    assert (raw.predictions, raw.deployed_model_id) == ([8.0], prediction.deployed_model_id)
    assert (raw.model_resource_name, raw.model_version_id) == (prediction.model_resource_name, "2")
    endpoint.deploy(model, machine_type="n1-standard-2", traffic_percentage=30)
    assert sorted(endpoint.traffic_split.values()) == [30, 70]
    endpoint.undeploy_all()
    endpoint.delete()
    model.delete()
