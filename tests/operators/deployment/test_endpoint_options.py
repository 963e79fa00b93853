"""Options of an endpoint: as the spec has them, changed where that can be, refused where it cannot."""

from __future__ import annotations

import pytest

from tests.support.airflow_release import AirflowFailException
from tests.support.refusals import refuses
from tests.support.scenes.deployment import Scene, deploy, register


@pytest.fixture
def scene() -> Scene:
    """The scene that the operators meet."""
    return Scene()


def test_an_endpoint_is_made_as_the_spec_says(scene, make_run) -> None:
    """With its accelerators, its own address and a sampled log."""
    gpus = {"type": "NVIDIA_TESLA_T4", "count": 1}
    container = {"image": "us-docker.pkg.dev/p/r/gpu:1", "predict_route": "/p", "health_route": "/h"}
    scene.deployment(dedicated_endpoint=True, request_log_sampling=0.1, accelerator=gpus, container=container)
    run = make_run()
    register(scene, run)
    assert deploy(scene, run)["deployed"]
    assert (scene.endpoint.dedicated, scene.endpoint.sampling) == (True, 0.1)
    (machine,) = scene.cloud.endpoints.machines
    assert (machine["accelerator_type"], machine["accelerator_count"]) == ("NVIDIA_TESLA_T4", 1)


def test_another_share_of_the_log_is_taken_over(scene, make_run) -> None:
    """By the endpoint as it is, with what is deployed there."""
    old = scene.old_champion()
    scene.cloud.endpoints.set_sampling(scene.endpoint, 1.0)
    scene.deployment(request_log_sampling=0.1)
    run = make_run()
    register(scene, run)
    assert deploy(scene, run)["deployed"]
    assert scene.endpoint.sampling == 0.1
    assert old in scene.endpoint.deployed


def test_an_endpoint_of_the_other_kind_is_refused_before_anything_changes(scene, make_run) -> None:
    """By name, with the way out."""
    old = scene.old_champion()
    scene.deployment(dedicated_endpoint=True)
    run = make_run()
    register(scene, run)
    with refuses(AirflowFailException, where="dedicated_endpoint", found=("true", "is shared"), way_out="Set it back"):
        deploy(scene, run)
    assert scene.endpoint.traffic == {old: 100}
    assert scene.cloud.endpoints.deploys == []
