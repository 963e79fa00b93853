"""Another release brings other images: what is there already serves on, and is a way back."""

from __future__ import annotations

import dataclasses

import pytest

from tests.support.scenes.deployed_runs import DeployedRuns

NEWER = "us-docker.pkg.dev/p/r/newer:2"


@pytest.mark.parametrize("name", ["trainer_image", "serving_image", "trainer_package"])
def test_a_version_of_before_is_a_way_back(make_run, name: str) -> None:
    """Nothing is made of an image, for the version is there."""
    it = DeployedRuns(make_run)
    it.cloud.settings = dataclasses.replace(it.cloud.settings, **{name: NEWER})
    assert it.go_back() == "Version 1 serves all requests as champion, after version 2."
    it.require_served("", "1", "2")


def test_a_deployment_under_way_goes_on(make_run) -> None:
    """A ramp may last for days, in which the release comes."""
    it = DeployedRuns(make_run, 1)
    scene = it.register()
    it.cloud.endpoints.ready = False
    assert it.deploy(scene, wakes=1) == "under way"
    it.cloud.endpoints.ready = True
    it.cloud.settings = dataclasses.replace(it.cloud.settings, trainer_image=NEWER)
    assert it.deploy(scene) == "deployed"
    it.require_served("", "2", "1")
