"""How a new version comes to its traffic: little of it until its own answers are right; the one before stays."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from retraining.core.errors import JobError
from retraining.operators.deployment.rollout_state import RolloutState
from tests.support.airflow_release import AirflowFailException
from tests.support.scenes.deployment import Scene, deploy, deploy_at_last, register


@pytest.fixture
def scene() -> Scene:
    """The scene that the operators meet."""
    return Scene()


@pytest.mark.parametrize("hours", [24, 0], ids=["kept", "not kept"])
def test_the_old_champion_becomes_previous_and_stays_or_leaves(scene, make_run, hours: int) -> None:
    """It stays without traffic for the way back, or goes after the new one answered; one that is older goes always."""
    old = scene.old_champion()
    deployed = {**scene.endpoint.deployed, "77": "projects/p/locations/r/models/flight_delays@older"}
    scene.cloud.endpoints.endpoint = dataclasses.replace(scene.endpoint, deployed=deployed)
    scene.deployment(keep_previous_hours=hours)
    run = make_run()
    register(scene, run)
    words = deploy(scene, run)["words"]
    assert ("after version 1, which stays deployed without traffic until 2026-" in words) == bool(hours)
    assert scene.cloud.registry.versions["1"].aliases == ("previous",)
    assert scene.cloud.registry.versions["2"].aliases == ("champion", "default")
    assert scene.cloud.endpoints.undeployed == (["77"] if hours else [old, "77"])
    assert scene.endpoint.traffic == {scene.mine: 100}
    assert scene.read("deployment")["previous_version_name"].endswith("@1")


def test_an_untested_version_never_has_more_than_one_percent_of_a_champions_traffic(scene, make_run) -> None:
    """Until three of its own answers are right; each request may be the champion's, and the monitor counts none."""
    old = scene.old_champion()
    run = make_run()
    register(scene, run)
    real, seen = scene.cloud.endpoints.predict, []

    def predict(endpoint: Any, instances: Any) -> Any:
        seen.append(real(endpoint, instances).deployed_model_id)
        assert scene.endpoint.traffic == {scene.mine: 1, old: 99}
        return dataclasses.replace(real(endpoint, instances), deployed_model_id=seen[-1])

    scene.cloud.endpoints.predict = predict
    deploy(scene, run)
    assert seen.count(scene.mine) == 3
    assert seen[-1] == scene.mine
    smoke_test = scene.read("deployment")["smoke_test"]
    assert (smoke_test["answers"], smoke_test["asked"]) == (3, len(seen))
    known = RolloutState(scene.cloud, "flight_delays").read_rollout().smoke_requests
    assert {item.deployed_model_id for item in known} == {scene.mine, old}


def test_a_version_that_is_never_asked_gives_the_traffic_back(scene, make_run) -> None:
    """The requests are bounded: the endpoint sends all of them to the champion."""
    old = scene.old_champion()
    run = make_run()
    register(scene, run)
    real = scene.cloud.endpoints.predict
    scene.cloud.endpoints.predict = lambda *args: dataclasses.replace(real(*args), deployed_model_id=old)
    with pytest.raises(
        JobError, match=f"0 of 2000 requests were answered by deployed model {scene.mine}, which has 1 %"
    ):
        deploy(scene, run)
    assert scene.endpoint.traffic == {old: 100}
    assert scene.endpoint.deployed.keys() == {old}


def test_the_old_version_may_answer_for_a_moment(scene, make_run) -> None:
    """The service sends requests another way a little later; the smoke test asks until its own version answers."""
    run = make_run()
    register(scene, run)
    real, answers = scene.cloud.endpoints.predict, []

    def slowly(endpoint: Any, instances: Any) -> Any:
        answers.append(real(endpoint, instances))
        return dataclasses.replace(answers[-1], deployed_model_id="77" if len(answers) < 3 else scene.mine)

    scene.cloud.endpoints.predict = slowly
    assert deploy(scene, run)["deployed"]
    assert len(answers) == 5


def test_smoke_requests_are_written_down_before_they_are_sent(scene, make_run) -> None:
    """Of a test that passed, of one that failed, and of one that nobody ended: the monitor leaves all of them out."""
    run = make_run()
    register(scene, run)
    known: list[Any] = []
    real = scene.cloud.endpoints.predict

    def predict(endpoint: Any, instances: Any) -> Any:
        known.extend(RolloutState(scene.cloud, "flight_delays").read_rollout().smoke_requests)
        scene.cloud.clock.sleep(3)
        return real(endpoint, instances)

    scene.cloud.endpoints.predict = predict
    scene.wrong_answers()
    asked = scene.cloud.clock.now()
    with pytest.raises(AirflowFailException):
        deploy(scene, run)
    assert [(item.deployed_model_id, item.instances) for item in known] == [(scene.mine, len(scene.report["golden"]))]
    assert known[0].start < asked
    assert known[0].end >= asked + timedelta(minutes=4)
    scene.right_answers()
    scene.cloud.clock.sleep(3600)
    assert deploy_at_last(scene, run)["deployed"]
    first, second = RolloutState(scene.cloud, "flight_delays").read_rollout().smoke_requests
    assert first == known[0]
    assert second.end - second.start == timedelta(seconds=3 * 3 + 2 * 10)
