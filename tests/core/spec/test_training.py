"""How a training takes its steps: what the spec allows, and that all of it reaches the trainer."""

from __future__ import annotations

import pytest

from retraining.core.errors import PlanError, SpecError
from retraining.core.jobs import requests
from tests.support.refusals import refuses
from tests.support.small_model import make_plan, make_spec

STEPS = {
    "early_stopping_patience": 7,
    "strategy": "multi_worker",
    "loop": "custom",
    "precision": "mixed_bfloat16",
    "sharding": "files",
    "scale_learning_rate": False,
    "warmup_fraction": 0.1,
    "clip_norm": 1.0,
    "accumulate_steps": 2,
    "checkpoint": {"every_steps": 100, "every_seconds": None},
    "augmentation": {
        "flip": "horizontal",
        "rotate": 0.05,
        "zoom": 0.1,
        "crop": 0.1,
        "brightness": 0.1,
        "contrast": 0.1,
        "noise": 0.02,
        "strength": 0.5,
        "contact_sheet": False,
    },
    "callbacks": {"reduce_lr": {"patience": 1, "factor": 0.5}, "tensorboard": {"histograms": True, "profile": True}},
}
IMAGE = {"name": "photo", "kind": "image", "height": 32, "width": 32}
OTHER = {"data": {"query": "q.sql", "key": "id", "event_time": "at"}, "evaluation": {"min_value": 0.6}}
CHIEF = {"machine": "n1-standard-4"}
SERVERS = {
    "tier": "CUSTOM",
    "chief": CHIEF,
    "workers": {**CHIEF, "count": 1},
    "parameter_servers": {**CHIEF, "count": 1},
}
OWN = {"image": "host/own-trainer:1", "models": "own"}
WORKERS = {"tier": "CUSTOM", "chief": CHIEF, "workers": {**CHIEF, "count": 1}}


def test_everything_reaches_the_trainer():
    spec = make_spec(features=[IMAGE], training={"model": "cnn", "cluster": WORKERS, **STEPS}, **OTHER)
    order = requests.training_job(make_plan(spec)).request.training
    assert order.model_dump(include=set(STEPS)) == STEPS


@pytest.mark.parametrize(
    ("training", "words"),
    [
        pytest.param(
            {"precision": "mixed_float16", "cluster": {"tier": "BASIC_TPU"}},
            "a TPU has no float16: use precision mixed_bfloat16",
            id="float16-on-tpu",
        ),
        pytest.param({"accumulate_steps": 2}, "accumulate_steps 2 needs loop custom", id="accumulate-in-fit"),
        pytest.param({"loop": "custom", "cluster": SERVERS}, "remove parameter_servers", id="custom-asynchronous"),
        pytest.param({"warmup_fraction": 0.6}, "less than or equal to 0.5", id="warmup"),
        pytest.param({"clip_norm": 0}, "greater than 0", id="clip"),
        pytest.param({"callbacks": {"reduce_lr": {"factor": 0.5}}}, "patience", id="patience"),
        pytest.param({"augmentation": {}}, "it changes nothing: give flip, rotate", id="nothing"),
        pytest.param({"augmentation": {"zoom": 0.6}}, "less than or equal to 0.5", id="zoom"),
        pytest.param({"augmentation": {"zoom": -0.1}}, "greater than or equal to 0", id="zoom-below"),
        pytest.param({"augmentation": {"zoom": 0.1}}, "changes images, and no feature is one", id="no-images"),
        pytest.param(
            {"hyperparameters": {"augmentation_strength": 1}},
            "nothing to multiply: add augmentation",
            id="strength",
        ),
        pytest.param({"checkpoint": {"every_step": 5}}, "every_step", id="unknown-key"),
    ],
)
def test_what_cannot_be_is_refused(training, words):
    with pytest.raises((SpecError, ValueError), match=words):
        make_spec(training={"model": "dense", **training})


TPU = {"tier": "BASIC_TPU"}
GPU_EVALUATOR = {**WORKERS, "evaluator": {**CHIEF, "accelerator": {"type": "NVIDIA_TESLA_T4"}}}


@pytest.mark.parametrize(
    ("training", "words"),
    [
        pytest.param({"cluster": {"tier": "BASIC_GPU"}}, "paid for and not used", id="gpu-in-our-image"),
        pytest.param({"cluster": GPU_EVALUATOR}, "runtime.image", id="gpu-of-the-evaluator"),
        pytest.param({"runtime": {"models": "own"}}, "name it in image", id="own-models-without-image"),
        pytest.param({"runtime": OWN, "export_lite": ["int8"]}, "export_lite converts SavedModels", id="own-lite"),
        pytest.param({"cluster": TPU}, "own image with a TensorFlow for TPUs", id="tpu-in-our-image"),
        pytest.param({"cluster": {"flex_start_hours": 1}}, "the chief has none", id="waits-for-no-gpu"),
        pytest.param(
            {"cluster": {"spot": True, "reservation": "projects/p-1/zones/us-central1-a/reservations/r"}},
            "spot and reservation are different ways",
            id="two-ways-to-machines",
        ),
        pytest.param({"cluster": TPU, "runtime": {"framework": "2.15"}}, "for CPUs and GPUs", id="tpu-pre-built"),
        pytest.param({"reader": "tensorflow_io"}, "replace input tfrecord by bigquery", id="io-of-files"),
        pytest.param(
            {"input": "bigquery", "reader": "tensorflow_io"}, "name one in runtime.image", id="io-in-our-image"
        ),
        pytest.param(
            {"input": "bigquery", "reader": "tensorflow_io", "runtime": {"framework": "2.15"}},
            "nor pre-built ones",
            id="io-pre-built",
        ),
        pytest.param({"input": "bigquery", "cluster": SERVERS}, "remove them", id="bigquery-asynchronous"),
    ],
)
def test_what_a_job_runs_in_fits_its_machines_and_its_input(training, words):
    with pytest.raises(ValueError, match=words):
        make_spec(training={"model": "dense", **training})


@pytest.mark.parametrize(
    "training",
    [
        pytest.param({"cluster": {"tier": "BASIC_GPU"}, "runtime": {"framework": "2.15"}}, id="gpu-pre-built"),
        pytest.param({"cluster": TPU, "runtime": {"image": "host/own-trainer:1"}}, id="tpu-own-image"),
        pytest.param({"input": "bigquery", "cluster": WORKERS}, id="bigquery-in-lockstep"),
        pytest.param({"input": "bigquery", "runtime": {"framework": "2.15"}}, id="bigquery-pre-built"),
        pytest.param(
            {"input": "bigquery", "reader": "tensorflow_io", "runtime": {"image": "host/own-trainer:1"}},
            id="io-own-image",
        ),
    ],
)
def test_what_fits_is_accepted(training):
    assert make_spec(training={"model": "dense", **training})


PREBUILT = {"model": "dense", "runtime": {"framework": "2.15"}}


@pytest.mark.parametrize(
    ("chief", "processor"),
    [
        pytest.param(CHIEF, "cpu", id="cpu"),
        pytest.param({**CHIEF, "accelerator": {"type": "NVIDIA_TESLA_T4"}}, "gpu", id="gpu"),
    ],
)
def test_a_framework_is_a_pre_built_container_with_the_trainer_for_it(chief, processor):
    """Every pool of the training, and only the training: export and evaluation stay in the image."""
    cluster = {**WORKERS, "chief": chief, "workers": {**chief, "count": 1}}
    plan = make_plan(make_spec(training={**PREBUILT, "cluster": cluster}))
    plan = plan.model_copy(update={"trainer_package": "gs://bucket/trainer-0.1.0+tf{framework}.tar.gz"})
    order = requests.training_job(plan)
    for pool in order.custom_job["job_spec"]["worker_pool_specs"]:
        package = pool["python_package_spec"]
        image = f"us-docker.pkg.dev/vertex-ai/training/tf-{processor}.2-15.py310:latest"
        assert package["executor_image_uri"] == image
        assert package["package_uris"] == ["gs://bucket/trainer-0.1.0+tf2.15.tar.gz"]
        assert (package["python_module"], package["args"][0]) == ("trainer.task", "train")
        assert "container_spec" not in pool


def test_a_framework_without_a_package_is_refused_with_the_way_out():
    with refuses(PlanError, expected="RETRAINING_TRAINER_PACKAGE", way_out="make sdist"):
        requests.training_job(make_plan(make_spec(training=PREBUILT)))


def test_models_of_another_framework_need_a_container_that_serves_them():
    """TensorFlow's own cannot."""
    with pytest.raises(ValueError, match=r"deployment\.container"):
        make_spec(training={"model": "trees", "runtime": OWN})
    container = {"image": OWN["image"], "predict_route": "/predict", "health_route": "/health"}
    spec = make_spec(training={"model": "trees", "runtime": OWN}, deployment={"container": container})
    assert spec.training.runtime.scoring_image == OWN["image"]
