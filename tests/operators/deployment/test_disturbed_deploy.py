"""What others do to the endpoint, and what a quota refuses, while a version comes to it: nothing stays half done."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from google.api_core.exceptions import ResourceExhausted

from retraining.core.errors import ConflictError, JobError
from tests.support.refusals import refuses
from tests.support.scenes.deployment import Scene, deploy_at_last, register
from tests.support.scenes.whole_run import load_dags

QUOTA = "Quota exceeded for aiplatform.googleapis.com/custom_model_serving_cpus"


RETRIES = load_dags("retrain").RETRIES


@pytest.fixture
def scene() -> Scene:
    """The scene that the operators meet."""
    return Scene()


def before(scene: Scene, name: str, disturb: Any) -> None:
    """Let something happen just before the next call of a method of the endpoints, once."""
    real = getattr(scene.cloud.endpoints, name)

    def disturbed(*args: Any) -> Any:
        setattr(scene.cloud.endpoints, name, real)
        disturb()
        return real(*args)

    setattr(scene.cloud.endpoints, name, disturbed)


def refuse() -> None:
    """As Vertex AI."""
    raise ResourceExhausted(QUOTA)


@pytest.mark.parametrize("call", ["ensure", "start_deploy", "set_traffic", "predict"])
def test_a_quota_that_is_refused_leaves_the_champion_alone(scene, make_run, call: str) -> None:
    """At whatever call: the task's try fails with Vertex AI's words, and the next one deploys."""
    old = scene.old_champion()
    run = make_run()
    register(scene, run)
    before(scene, call, refuse)
    with pytest.raises(ResourceExhausted, match=QUOTA):
        deploy_at_last(scene, run)
    assert scene.endpoint.traffic == {old: 100}
    assert scene.holder("champion") == "1"
    scene.cloud.clock.sleep(300)
    assert deploy_at_last(scene, run)["deployed"]
    assert scene.endpoint.traffic == {scene.mine: 100}


@pytest.mark.parametrize("call", ["start_deploy", "set_traffic", "predict"])
def test_an_endpoint_that_somebody_deletes_is_made_anew(scene, make_run, call: str) -> None:
    """Between the reading and the change: a try fails and names it, and one of Airflow's three deploys on a new one."""
    scene.old_champion()
    run = make_run()
    register(scene, run)
    before(scene, call, scene.cloud.endpoints.by_name.clear)
    failures: list[str] = []
    for _ in range(RETRIES["retries"]):
        try:
            done = deploy_at_last(scene, run)
            break
        except ConflictError as error:
            failures.append(str(error))
            scene.cloud.clock.sleep(300)
    gone = "flight_delays: the endpoint is gone. Expected it to be there. The next try makes it."
    assert set(failures) == {gone}
    assert done["deployed"]
    assert scene.endpoint.traffic == {scene.mine: 100}
    assert scene.holder("champion") == "2"


def test_traffic_that_somebody_sets_while_the_version_is_tried_stays(scene, make_run) -> None:
    """The version is asked and never answers: it leaves, and what the person set is not overwritten."""
    old = scene.old_champion()
    deployed = {**scene.endpoint.deployed, "77": "projects/p/locations/r/models/other@1"}
    scene.cloud.endpoints.endpoint = dataclasses.replace(scene.endpoint, deployed=deployed)
    run = make_run()
    register(scene, run)
    share = {old: 70, "77": 30}
    before(scene, "predict", lambda: scene.cloud.endpoints.set_traffic(scene.endpoint, share))
    with refuses(JobError, found="0 of 2000"):
        deploy_at_last(scene, run)
    assert scene.endpoint.traffic == share
    assert scene.mine not in scene.endpoint.deployed
    assert scene.holder("champion") == "1"
    assert deploy_at_last(scene, run)["deployed"]
