"""How a new version comes to its traffic: little of it until its own answers are right; the one before stays."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.api_core.exceptions import ResourceExhausted

from retraining.core.documents import Served
from retraining.core.errors import ConflictError, JobError
from retraining.core.naming.vertex import deployed_model_id
from retraining.operators.deployment.rollout_state import RolloutState
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.refusals import refuses
from tests.support.scenes.deployment import Scene, deploy, deploy_at_last, register


@pytest.fixture
def scene() -> Scene:
    """The scene that the operators meet."""
    return Scene()


@pytest.mark.parametrize("hours", [24, 0], ids=["kept", "not kept"])
def test_the_old_champion_becomes_previous_and_stays_or_leaves(scene, make_run, hours: int) -> None:
    """It stays without traffic for the way back, or goes after the new one answered; one that is older goes always."""
    old = scene.old_champion()
    older = scene.cloud.registry.add("20121201t000000z-000000000000")
    oldest = deployed_model_id(older.run_key)
    deployed = {**scene.endpoint.deployed, oldest: older.version_name, "77": "projects/p/locations/r/models/other@1"}
    scene.cloud.endpoints.endpoint = dataclasses.replace(scene.endpoint, deployed=deployed)
    scene.deployment(keep_previous_hours=hours)
    run = make_run()
    register(scene, run)
    words = deploy(scene, run)["words"]
    assert ("after version 1, which stays deployed without traffic until 2026-" in words) == bool(hours)
    assert scene.cloud.registry.versions["1"].aliases == ("previous",)
    assert scene.cloud.registry.versions["3"].aliases == ("champion", "default")
    assert scene.cloud.endpoints.undeployed == ([oldest] if hours else [old, oldest])
    assert "77" in scene.endpoint.deployed, "a person's stays"
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
    with refuses(JobError, found=("0 of 2000", scene.mine, "1 %")):
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


def ramp_up(scene: Scene, run: Any, *, wakes: int = 60) -> Any:
    """Wake the deploy task each minute until it ends."""
    for _ in range(wakes):
        scene.cloud.clock.sleep(60)
        with contextlib.suppress(AirflowRescheduleException):
            return deploy(scene, run)
    raise AssertionError("it never ends")


@pytest.fixture
def canary(scene, make_run) -> Any:
    """A run after a champion with steps of traffic: 200 requests to each a minute, as quick and right as each other."""
    old = scene.old_champion()
    scene.deployment(canary={"percent": [1, 10, 100], "bake_minutes": 5, "max_error_increase": 0.02})
    for deployed_id in (old, scene.mine):
        scene.cloud.serving_metrics.by_id[deployed_id] = Served(requests=200, errors=0, latency_ms=10.0)
    scene.cloud.warehouse.schemas["local-project.retraining.requests_flight_delays"] = [{"name": "answer"}]
    scene.answers(old=old)
    run = make_run()
    register(scene, run)
    return run


def test_a_version_goes_up_step_by_step(scene, canary) -> None:
    """Each share is looked at for its minutes, asleep; the document has all steps with their numbers."""
    real, shares = scene.cloud.endpoints.set_traffic, []

    def set_traffic(endpoint: Any, traffic: Any, generation: Any) -> Any:
        shares.append((scene.cloud.clock.now(), traffic[scene.mine]))
        return real(endpoint, traffic, generation)

    scene.cloud.endpoints.set_traffic = set_traffic
    assert ramp_up(scene, canary)["deployed"]
    assert [share for _, share in shares] == [1, 1, 10, 100]
    lasted = [later[0] - earlier[0] for earlier, later in itertools.pairwise(shares[1:])]
    assert all(timedelta(minutes=8) <= one <= timedelta(minutes=10) for one in lasted)
    steps = scene.read("deployment")["steps"]
    assert [(step["percent"], step["new"]["requests"], step["old"]["requests"]) for step in steps] == [
        (1, 1000, 1000),
        (10, 1000, 1000),
    ]
    gates = {gate["name"]: gate["passed"] for gate in steps[1]["gates"]}
    assert gates == {"requests": True, "errors": True, "latency": True, "answers": True}
    assert scene.holder("champion") == "2"


def test_a_step_is_looked_at_twice_a_minute_at_most(scene, canary) -> None:
    """However short the task sleeps else."""
    scene.cloud.settings = dataclasses.replace(scene.cloud.settings, wake_interval_s=1)
    with pytest.raises(AirflowRescheduleException) as rescheduled:
        deploy(scene, canary)
    assert len(RolloutState(scene.cloud, "flight_delays").read_rollout().steps) == 1
    asleep = rescheduled.value.reschedule_date - datetime.now(UTC)
    assert timedelta(seconds=20) < asleep <= timedelta(seconds=30)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (
            {"errors": 20},
            r"at 10 % of the traffic errors: 10\.00% of \d+ requests, 0\.00% of .*; worse by more than 2 points \(",
        ),
        (
            {"latency_ms": 20.0},
            r"at 10 % of the traffic latency: 100\.00% of \d+ answers took over 10\.5 ms, 58\.\d+% of \d+ before over",
        ),
        ({"requests": 3}, r"at 10 % of the traffic requests: 60 requests in 20 min, fewer than 100"),
        ({}, r"at 10 % of the traffic answers: .*1\.000 from the answers of the version before"),
    ],
    ids=["errors", "slow", "nobody asks", "other answers"],
)
def test_a_failed_gate_gives_the_traffic_back(scene, canary, broken: dict[str, Any], words: str) -> None:
    """Nothing is deployed, the version is gone, the document has the gate with its numbers; clearing does nothing."""
    old = deployed_model_id("20130101t000000z-000000000000")
    real = scene.cloud.endpoints.set_traffic

    def break_at_ten(endpoint: Any, traffic: Any, generation: Any) -> Any:
        if traffic.get(scene.mine) == 10:
            served = scene.cloud.serving_metrics.by_id
            served[scene.mine] = served[scene.mine].model_copy(update=broken)
            if not broken:
                scene.answers(old=old, moved=0.5)
        return real(endpoint, traffic, generation)

    scene.cloud.endpoints.set_traffic = break_at_ten
    found = ramp_up(scene, canary)
    assert not found["deployed"]
    assert re.search(words, found["words"]), found["words"]
    assert scene.endpoint.traffic == {old: 100}
    assert scene.endpoint.deployed.keys() == {old}
    assert (scene.holder("champion"), scene.holder("challenger")) == ("1", "2")
    document = scene.read("deployment")
    assert [step["percent"] for step in document["steps"]] == [1, 10]
    assert [gate["passed"] for gate in document["steps"][0]["gates"]] == [True] * 4
    assert ramp_up(scene, canary) == found
    assert len(scene.cloud.endpoints.deploys) == 1


def test_low_traffic_may_go_on(scene, canary) -> None:
    """Four times the minutes, then the next step; what was not judged is not in the document."""
    scene.deployment(canary={"percent": [10, 100], "bake_minutes": 5, "on_low_traffic": "continue"})
    scene.cloud.serving_metrics.by_id[scene.mine] = Served(requests=0, errors=0, latency_ms=None)
    scene.cloud.warehouse.rows["answers"] = []
    assert ramp_up(scene, canary)["deployed"]
    (step,) = scene.read("deployment")["steps"]
    assert [(gate["name"], gate["words"].partition(",")[0]) for gate in step["gates"]] == [
        ("requests", "0 requests in 20 min")
    ]


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("series", "Cloud Monitoring has no request of any version, not even the smoke requests that it answered"),
        ("counts", r"Cloud Monitoring has a latency of it \(10 ms\), and no request"),
        ("requests", "the request log has 200 answers of it, and Cloud Monitoring no request"),
    ],
)
def test_measurements_that_are_missing_are_no_low_traffic(scene, canary, lost: str, words: str) -> None:
    """Also where a ramp goes on without customers: nobody knows how the version answered those that there were."""
    scene.deployment(canary={"percent": [10, 100], "bake_minutes": 5, "on_low_traffic": "continue"})
    metrics, latency = scene.cloud.serving_metrics, 10.0 if lost == "counts" else None
    metrics.by_id[scene.mine] = Served(requests=0, errors=0, latency_ms=latency)
    if lost != "requests":
        scene.cloud.warehouse.rows["answers"] = []
    if lost == "series":
        metrics.served = lambda *_: {}
    found = ramp_up(scene, canary)
    assert not found["deployed"]
    assert re.search(f"requests: not judged: {words} in 20 min", found["words"]), found["words"]
    assert list(scene.endpoint.traffic.values()) == [100]
    assert scene.mine not in scene.endpoint.deployed


def test_an_endpoint_that_nobody_asks_is_measured_by_its_smoke_requests(scene, canary) -> None:
    """No version has a request in the step's minutes, and Cloud Monitoring has those of the smoke test."""
    scene.deployment(canary={"percent": [10, 100], "bake_minutes": 5, "on_low_traffic": "continue"})
    scene.cloud.warehouse.rows["answers"] = []
    real, step = scene.cloud.serving_metrics.served, timedelta(minutes=21)
    scene.cloud.serving_metrics.served = lambda name, start, end: real(name, start, end) if end - start > step else {}
    assert ramp_up(scene, canary)["deployed"]


def until_ten(scene: Scene, run: Any) -> None:
    """Wake the task until the version has 10 %."""
    while scene.endpoint.traffic.get(scene.mine) != 10:
        with pytest.raises(AssertionError, match="never ends"):
            ramp_up(scene, run, wakes=1)


@pytest.mark.parametrize("what", ["traffic", "undeployed", "champion", "endpoint", "quota"])
def test_what_somebody_else_does_in_mid_ramp_is_named_and_keeps_the_champion(scene, canary, what: str) -> None:
    """No half of it stays, and the next try works."""
    old = deployed_model_id("20130101t000000z-000000000000")
    until_ten(scene, canary)
    endpoints, registry = scene.cloud.endpoints, scene.cloud.registry
    served = scene.cloud.serving_metrics.served
    if what == "traffic":
        endpoints.set_traffic(scene.endpoint, {old: 100})
        words = "somebody else changed it during the ramp"
    elif what == "undeployed":
        endpoints.set_traffic(scene.endpoint, {old: 100})
        endpoints.undeploy(scene.endpoint, scene.mine)
        words = "somebody undeployed it during the ramp"
    elif what == "champion":
        registry.merge_aliases(registry.add("20130102t000000z-000000000000"), ["champion"])
        words = "version 3: somebody else moved it during the ramp"
    elif what == "endpoint":
        endpoints.by_name.clear()
        words = "the endpoint is gone"
    else:
        words = "Quota exceeded for quota metric"

        def exhausted(*_: Any) -> Any:
            raise ResourceExhausted(words)

        scene.cloud.serving_metrics.served = exhausted
    with pytest.raises((ConflictError, ResourceExhausted), match=words):
        ramp_up(scene, canary)
    if what == "endpoint":
        assert scene.endpoint.deployed == {}
    else:
        assert scene.endpoint.traffic == {old: 100}
        assert scene.endpoint.deployed.keys() == {old}
    assert scene.holder("champion") == ("3" if what == "champion" else "1")
    scene.cloud.serving_metrics.served = served
    found = ramp_up(scene, canary)
    assert found["deployed"] == (what != "champion"), found


def test_a_deployed_model_that_nobody_knows_keeps_its_share(scene, canary) -> None:
    """A person's: the ramp goes on beside it, and so does the way back."""
    old = deployed_model_id("20130101t000000z-000000000000")
    deployed = {**scene.endpoint.deployed, "77": "projects/p/locations/r/models/other@1"}
    scene.cloud.endpoints.endpoint = dataclasses.replace(scene.endpoint, deployed=deployed, traffic={old: 80, "77": 20})
    until_ten(scene, canary)
    assert scene.endpoint.traffic == {scene.mine: 10, old: 70, "77": 20}
    scene.cloud.serving_metrics.by_id[scene.mine] = Served(requests=200, errors=200, latency_ms=10.0)
    assert not ramp_up(scene, canary)["deployed"]
    assert scene.endpoint.traffic == {old: 80, "77": 20}
