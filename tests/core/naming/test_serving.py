"""What serves a model, what the registry is told of it, and where its SavedModel lies."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from retraining.core.errors import ContractError
from retraining.core.naming import serving, storage
from retraining.core.spec.deployment import Container
from tests.support.refusals import refuses
from tests.support.small_model import make_spec

PREBUILT = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
DIGEST = "d" * 64
OWN = {"image": "host/mine/server:1", "predict_route": "/ask", "health_route": "/well"}


def with_container(plan, **container):
    """Return the plan with a container of its own."""
    deployment = plan.spec.deployment.model_copy(update={"container": Container.model_validate(container)})
    return plan.model_copy(update={"spec": plan.spec.model_copy(update={"deployment": deployment})})


def test_tensorflow_serving_unless_told_otherwise(small_plan):
    """It reads the model from where Vertex AI copied it, on the port that it is told."""
    assert serving.container_spec(serving.container_of(small_plan), DIGEST) == {
        "image_uri": "us-central1-docker.pkg.dev/my-project/retraining/tensorflow-serving:2.19.1",
        "command": [],
        "args": [
            "--rest_api_port=$(AIP_HTTP_PORT)",
            "--model_name=late",
            "--model_base_path=$(AIP_STORAGE_URI)",
            "--file_system_poll_wait_seconds=0",
        ],
        "env": [{"name": "MODEL_DIGEST", "value": DIGEST}],
        "ports": [{"container_port": 8501}],
        "predict_route": "/v1/models/late:predict",
        "health_route": "/v1/models/late",
    }


def test_its_model_lies_in_a_numbered_folder(small_plan):
    """The registry is told the folder above."""
    folder = f"{small_plan.results_uri}/training/model"
    assert serving.trained_model_uri(small_plan) == f"{folder}/1"
    assert serving.registered_uri(small_plan, f"{folder}/1") == folder
    with refuses(ContractError, where="report.json", found=folder, expected="folder 1", way_out="model_uri"):
        serving.registered_uri(small_plan, folder)


def test_a_pre_built_container_reads_the_folder_itself(small_plan):
    """It has routes of its own."""
    plan = small_plan.model_copy(update={"serving_image": PREBUILT})
    assert serving.container_spec(serving.container_of(plan), DIGEST) == {"image_uri": PREBUILT}
    folder = f"{plan.results_uri}/training/model"
    assert serving.trained_model_uri(plan) == serving.registered_uri(plan, folder) == folder


def test_a_container_of_the_models_own(small_plan):
    """Whatever the setting names; its folder is the model's own unless it asks as TensorFlow Serving does."""
    described = {**OWN, "port": 5000, "args": ["--at", "$(AIP_STORAGE_URI)"], "environment": {"THREADS": "2"}}
    plan = with_container(small_plan, **described)
    assert serving.container_spec(serving.container_of(plan), DIGEST) == {
        "image_uri": "host/mine/server:1",
        "command": [],
        "args": ["--at", "$(AIP_STORAGE_URI)"],
        "env": [{"name": "THREADS", "value": "2"}, {"name": "MODEL_DIGEST", "value": DIGEST}],
        "ports": [{"container_port": 5000}],
        "predict_route": "/ask",
        "health_route": "/well",
    }
    assert serving.trained_model_uri(plan) == storage.model_uri(storage.training_uri(storage.results_uri(plan)))
    numbered = with_container(small_plan, **OWN, args=["--model_base_path=$(AIP_STORAGE_URI)"])
    assert serving.trained_model_uri(numbered).endswith("/model/1")


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ({"image": "host/mine:1"}, "host/mine:1 has no predict_route and no health_route"),
        ({**OWN, "health_route": None}, "has no health_route: name the paths"),
        ({**OWN, "predict_route": "ask"}, "deployment.container.predict_route"),
        ({**OWN, "port": 65536}, "deployment.container.port"),
        ({**OWN, "port": 0}, "deployment.container.port"),
        ({**OWN, "image": "mine:1"}, "deployment.container.image"),
        ({**OWN, "environment": {"AIP_MODE": "x"}}, "sets AIP_MODE: Vertex AI sets"),
        ({**OWN, "environment": {"A-B": "x"}}, "deployment.container.environment.A-B"),
        ({**OWN, "route": "/x"}, "Extra inputs are not permitted"),
    ],
    ids=["no-routes", "no-health", "no-path", "port", "no-port", "no-host", "reserved", "no-name", "unknown"],
)
def test_what_cannot_serve_is_refused_by_name(container, words):
    with pytest.raises(ValidationError, match=re.escape(words)):
        make_spec(deployment={"container": container})
