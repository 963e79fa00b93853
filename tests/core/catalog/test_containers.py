"""Pre-built containers are offered until their end, by the run's own day."""

from __future__ import annotations

from datetime import date

import pytest

from retraining.core import settings
from retraining.core.catalog.containers import load_containers, require_serving_container, require_training_container
from retraining.core.errors import SettingsError, SpecError
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
    with pytest.raises(SpecError, match=rf"late.yaml, training.runtime.framework: {framework}: .*ended on {end}"):
        require_training_container(with_framework(framework), CONTAINERS, end)


def test_those_that_are_left_are_named():
    with pytest.raises(SpecError, match=r"Expected one of 2.16, 2.17\. .*training.runtime.image"):
        require_training_container(with_framework("2.15"), CONTAINERS, date(2026, 1, 1))
    with pytest.raises(SpecError, match=r"Expected none: all have ended\. Train in the project's image"):
        require_training_container(with_framework("2.17"), CONTAINERS, date(2026, 11, 22))
    require_training_container(make_spec(), CONTAINERS, date(2100, 1, 1))


def test_a_version_without_a_container_is_refused_before_the_run():
    with pytest.raises(SpecError, match=r"'2.99' is not in include/containers/prebuilt.json.*2.15"):
        require_training_container(with_framework("2.99"), CONTAINERS)


def test_the_default_image_serves_until_its_end():
    assert settings.SETTINGS["serving_image"].default == SERVING
    require_serving_container(SERVING, CONTAINERS, date(2027, 1, 13))
    with pytest.raises(
        SettingsError, match=r"RETRAINING_SERVING_IMAGE: tf2-cpu.2-15: .*ended on 2027-01-14.*AIP_HTTP_PORT"
    ):
        require_serving_container(SERVING, CONTAINERS, date(2027, 1, 14))


@pytest.mark.parametrize("place", ["europe-docker.pkg.dev/vertex-ai", "gcr.io/cloud-aiplatform"])
def test_a_pre_built_container_that_serves_must_be_in_the_table(place):
    with pytest.raises(SettingsError, match=r"'tf2-cpu.2-3' is not in"):
        require_serving_container(f"{place}/prediction/tf2-cpu.2-3:latest", CONTAINERS, date(2026, 1, 1))


@pytest.mark.parametrize(
    "image", ["host/own-serving:1", "us-docker.pkg.dev/vertex-ai/prediction/sklearn-cpu.1-3:latest"]
)
def test_other_images_pass(image):
    require_serving_container(image, CONTAINERS, date(2100, 1, 1))
