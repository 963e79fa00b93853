"""Pre-built containers are offered until their end, by the run's own day."""

from __future__ import annotations

from datetime import date

import pytest

from retraining.core import settings
from retraining.core.catalog.containers import load_containers, require_serving_container, require_training_container
from retraining.core.errors import SettingsError, SpecError
from tests.support.refusals import refuses
from tests.support.small_model import make_spec

SERVING = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
CONTAINERS = load_containers(settings.include_path())


def with_framework(framework: str):
    """Return a spec that trains in a pre-built container."""
    return make_spec(training={"model": "dense", "runtime": {"framework": framework}})


@pytest.mark.parametrize("framework", CONTAINERS.training)
def test_a_training_container_is_offered_until_the_day_before_its_end(framework):
    end = CONTAINERS.training[framework]
    require_training_container(with_framework(framework), CONTAINERS)
    require_training_container(with_framework(framework), CONTAINERS, date.fromordinal(end.toordinal() - 1))
    with refuses(SpecError, where=("late.yaml", "training.runtime.framework"), found=(framework, f"ended on {end}")):
        require_training_container(with_framework(framework), CONTAINERS, end)


def test_those_that_are_left_are_named():
    with refuses(SpecError, expected="one of 2.16, 2.17", way_out="training.runtime.image"):
        require_training_container(with_framework("2.15"), CONTAINERS, date(2026, 1, 1))
    with refuses(SpecError, expected="none", way_out="project's image"):
        require_training_container(with_framework("2.17"), CONTAINERS, date(2026, 11, 22))
    require_training_container(make_spec(), CONTAINERS, date(2100, 1, 1))


def test_a_version_without_a_container_is_refused_before_the_run():
    with refuses(SpecError, found="'2.99'", expected="2.15"):
        require_training_container(with_framework("2.99"), CONTAINERS)


def test_a_pre_built_image_serves_until_its_end():
    """Then the way out is the default, TensorFlow Serving."""
    require_serving_container(make_spec(), SERVING, CONTAINERS, date(2027, 1, 13))
    with refuses(
        SettingsError,
        where="RETRAINING_SERVING_IMAGE",
        found=("tf2-cpu.2-15", "ended on 2027-01-14"),
        way_out="TensorFlow Serving",
    ):
        require_serving_container(make_spec(), SERVING, CONTAINERS, date(2027, 1, 14))


def test_so_does_that_of_a_model():
    """The setting does not count then; a container that no table has is refused before any run."""
    spec = make_spec(deployment={"container": {"image": SERVING}})
    require_serving_container(spec, "host/x:1", CONTAINERS, date(2027, 1, 13))
    with refuses(
        SpecError, where="late.yaml, deployment.container.image", found=("tf2-cpu.2-15", "ended on 2027-01-14")
    ):
        require_serving_container(spec, "host/x:1", CONTAINERS, date(2027, 1, 14))
    unknown = make_spec(deployment={"container": {"image": SERVING.replace("tf2-cpu.2-15", "sklearn-cpu.9-9")}})
    with refuses(SpecError, found="'sklearn-cpu.9-9'"):
        require_serving_container(unknown, "", CONTAINERS)


@pytest.mark.parametrize("place", ["europe-docker.pkg.dev/vertex-ai", "gcr.io/cloud-aiplatform"])
def test_a_pre_built_container_that_serves_must_be_in_the_table(place):
    image = f"{place}/prediction/tf2-cpu.2-3:latest"
    with refuses(SettingsError, found="'tf2-cpu.2-3'"):
        require_serving_container(make_spec(), image, CONTAINERS, date(2026, 1, 1))


def with_package(module: str | None, **deployment):
    """Return a spec whose model has operations of a package."""
    package = {"wheel": "gs://b/own_ops-1.0-py3-none-any.whl", "sha256": ["ab" * 32], "imports": module}
    return make_spec(training={"model": "dense", "packages": [package]}, deployment=deployment)


@pytest.mark.parametrize("container", [{}, {"container": {"image": SERVING}}], ids=["default", "pre-built"])
def test_operations_of_a_package_need_a_container_that_has_them(container):
    """It would train for hours, and then neither serve nor score."""
    spec = with_package("own_ops", **container)
    with refuses(SpecError, where="late.yaml, training.packages", found="own_ops", way_out="deployment.container"):
        require_serving_container(spec, "host/tensorflow-serving:1", CONTAINERS)
    for module in (None, "tensorflow_text", "tensorflow_decision_forests"):
        require_serving_container(with_package(module, **container), "host/tensorflow-serving:1", CONTAINERS)


def test_which_operations_a_container_of_ones_own_has_is_its_own_affair():
    own = {"image": "host/own-serving:1", "predict_route": "/v1/models/late:predict", "health_route": "/v1/models/late"}
    require_serving_container(with_package("own_ops", container=own), "", CONTAINERS)


def test_the_default_image_is_a_mirror_in_the_projects_registry():
    """Of a pinned version; it has no end."""
    environ = {
        "RETRAINING_PROJECT": "example.com:shop",
        "RETRAINING_REGION": "europe-west4",
        "RETRAINING_BUCKET": "bucket",
        "RETRAINING_DATASET": "retraining",
        "RETRAINING_TRAINER_IMAGE": "host/trainer:1",
    }
    image = settings.load(environ).serving_image
    assert image == "europe-west4-docker.pkg.dev/example.com/shop/retraining/tensorflow-serving:2.19.1"
    require_serving_container(make_spec(), image, CONTAINERS, date(2100, 1, 1))
