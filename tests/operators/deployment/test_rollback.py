"""Going back to an earlier version: once, in one order with what deploys, whatever dies."""

from __future__ import annotations

import contextlib
import copy
from datetime import timedelta
from typing import Any

import pytest

from retraining.core.documents import Rollback
from retraining.core.lineage.steps import STEPS, Documents
from retraining.core.naming import storage
from retraining.core.naming.vertex import deployed_model_id
from retraining.operators.deployment.rollback_end import EndRollbackOperator
from retraining.operators.deployment.version_rollback import RollBackOperator
from retraining.operators.retention.versions import end_deployment, find_deployments
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.dying import Death, DyingCloud
from tests.support.scenes.deployed_runs import MOST_WAKES, RUN_KEYS, SETTINGS_BUCKET, DeployedRuns
from tests.support.scenes.deployment import Scene


@pytest.fixture(scope="module")
def nights(make_run: Any) -> Any:
    """Makes the runs of some nights; played once each, and copied."""
    played: dict[int, DeployedRuns] = {}

    def make(deployed: int = 2) -> DeployedRuns:
        if deployed not in played:
            played[deployed] = DeployedRuns(make_run, deployed)
        return copy.deepcopy(played[deployed])

    return make


def test_the_version_before_has_all_traffic_by_one_call(nights) -> None:
    """It is still deployed: nothing is deployed; champion and previous change places."""
    it = nights()
    deploys = list(it.cloud.endpoints.deploys)
    assert it.go_back() == "Version 1 serves all requests as champion, after version 2."
    it.require_served("", "1", "2")
    assert it.calls.count("set_traffic") == 1
    assert it.cloud.endpoints.deploys == deploys
    assert len(it.scenes[0].endpoint.deployed) == 2
    (document,) = it.documents()
    assert (document.reason, document.stopped) == ("complaints", False)
    assert document.smoke_test is not None
    assert document.smoke_test.requests == len(it.scenes[0].report["golden"])


def test_a_rollback_takes_the_endpoint_as_it_is(nights) -> None:
    """Options in which the earlier version's spec differs do not stand in its way."""
    it = nights()
    it.scenes[0].deployment(dedicated_endpoint=True, request_log_sampling=0.1)
    assert it.go_back().startswith("Version 1 serves all")
    assert (it.scenes[0].endpoint.dedicated, it.scenes[0].endpoint.sampling) == (False, 1.0)


def test_the_way_forward_is_the_same_click_once_more(nights) -> None:
    """What was gone back from is the version before now."""
    it = nights()
    it.go_back()
    assert it.go_back(number=10**6).startswith("Version 2 serves all")
    it.require_served("", "2", "1")


def test_a_version_that_is_no_longer_deployed_is_deployed_first(nights) -> None:
    """Version 1 of three left the endpoint when version 3 came."""
    it = nights(3)
    assert deployed_model_id(RUN_KEYS[0]) not in it.scenes[0].endpoint.deployed
    it.go_back("1")
    it.require_served("", "1", "3")
    assert it.cloud.endpoints.deploys[-1].endswith("@1")


def test_a_version_that_has_served_is_not_tried_again(nights) -> None:
    """Its run wanted staging; the way back does not wait for it."""
    it = nights(3)
    it.scenes[0].deployment(staging=True)
    it.go_back("1")
    it.require_served("", "1", "3")
    assert len(it.cloud.endpoints.by_name) == 1


@pytest.mark.parametrize("report", [True, False], ids=["asked", "no report"])
def test_a_death_anywhere_ends_in_the_same_rollback(nights, report: bool) -> None:
    """Killed at each call, before and after it: one document, the same versions, nothing deployed twice."""
    for after in (False, True):
        for at in range(1, 200):
            it = nights(3)
            if not report:
                del it.cloud.artifacts.objects[f"{it.scenes[0].folder}/report.json"]
            it.go_back("1", at=at, after=after)
            if not it.died:
                assert at > 20
                break
            where = f"{'after' if after else 'before'} call {at} ({it.calls[at - 1]})"
            it.require_served(where, "1", "3")
            assert len(it.documents()) == 1, where
            assert [name[-2:] for name in it.cloud.endpoints.deploys] == ["@1", "@2", "@3", "@1"], where


def test_a_version_that_answers_wrongly_is_no_way_back(nights) -> None:
    """The traffic is where it was; the version stays deployed for another try."""
    it = nights()
    it.scenes[0].wrong_answers()
    assert "failed: " in it.go_back()
    it.require_served("", "2", "1")
    assert len(it.scenes[0].endpoint.deployed) == 2
    assert it.scenes[0].holder("challenger") is None
    it.scenes[0].right_answers()
    assert "Version 1" in it.go_back(number=2)


def test_a_deployment_under_way_is_stopped(nights) -> None:
    """What served before has all again; the run writes down why nothing is deployed, and does not begin anew."""
    for wakes in range(1, 4):
        it = nights()
        scene = it.register()
        it.cloud.endpoints.ready = False
        assert it.deploy(scene, wakes=wakes) == "under way"
        it.cloud.endpoints.ready = True
        assert it.go_back() == "The deployment of version 3 is stopped, version 2 serves as before."
        it.require_served("", "2", "1")
        assert "stopped its deployment (complaints)" in it.deploy(scene)
        it.require_served("", "2", "1")
        assert it.documents()[0].stopped


def ramping(it: DeployedRuns) -> Scene:
    """The next run, whose version has 10 % of the champion's requests."""
    scene = it.register()
    scene.deployment(canary={"percent": [10, 100], "bake_minutes": 5})
    assert it.deploy(scene, wakes=1) == "under way"
    assert scene.endpoint.traffic == {deployed_model_id(RUN_KEYS[1]): 90, scene.mine: 10}
    return scene


def test_the_version_that_errs_is_gone_back_from_in_the_middle_of_another_ones_ramp(nights) -> None:
    """An order names the champion: the ramp of the next version is ended first, and whoever dies, the order is done."""
    for after in (False, True):
        for at in range(1, 200):
            it = nights()
            scene = ramping(it)
            words = it.go_back(at=at, after=after, from_version="2")
            where = f"{'after' if after else 'before'} call {at} ({it.calls[min(at, len(it.calls)) - 1]})"
            assert words.startswith("Version 1 serves all"), where
            it.require_served(where, "1", "2")
            assert scene.mine not in scene.endpoint.deployed, where
            if not it.died:
                assert at > 20
                break
    assert it.deploy(scene).startswith("Nothing deployed")
    it.require_served("", "1", "2")


def test_the_version_of_the_ramp_is_gone_back_from_by_ending_it(nights) -> None:
    """Of an order that names it: the champion does not err, and stays."""
    it = nights()
    ramping(it)
    assert it.go_back(from_version="3").startswith("The deployment of version 3")
    it.require_served("", "2", "1")


def test_a_version_that_serves_no_more_is_not_gone_back_from(nights) -> None:
    """Somebody was faster: nothing is done, and what is under way goes on."""
    it = nights()
    ramping(it)
    traffic = it.scenes[0].endpoint.traffic
    words = it.go_back(from_version="1")
    assert "Param from_version of flight_delays: version 1" in words
    assert it.scenes[0].endpoint.traffic == traffic


@pytest.mark.parametrize("hours", [1, 6])
def test_a_rollback_whose_clock_is_ahead_holds_nothing(nights, hours: int) -> None:
    """It died under way: the next run does not wait until then for a sign of it, and neither does the next rollback."""
    it = nights(3)
    for scene in it.scenes:
        scene.deployment(keep_previous_hours=0)
    it.cloud.endpoints.ready = False
    assert it.go_back("1", wakes=2) == "under way"
    it.cloud.endpoints.ready = True
    ahead = it.cloud.clock.now() + timedelta(hours=hours)
    uri = storage.rollout_uri(SETTINGS_BUCKET, "flight_delays")
    it.cloud.artifacts.objects[uri] = it.rollout().model_copy(update={"changed": ahead, "asked": ahead}).to_bytes()
    assert it.go_back(number=2).startswith("Version 2 serves all")
    it.require_served("", "2", "3")


def test_a_deployment_that_dies_anywhere_leaves_the_same_order(nights) -> None:
    """It is stopped, or it was champion already and is gone back from; its next try deploys nothing."""
    ends = set()
    for at in range(1, 200):
        it = nights()
        scene = it.register()
        cloud = DyingCloud(it.cloud, at)
        it.deploy(scene, cloud=cloud, wakes=1)
        if not it.died:
            assert at > 20
            break
        opened = it.rollout().run_key == scene.run_key
        champion = scene.holder("champion")
        words = it.go_back()
        ends.add(words.partition(" ")[0])
        where = f"call {at} ({cloud.calls[at - 1]}): {words}"
        if not opened:
            it.require_served(where, "1", "2")
        elif champion == "3":
            it.require_served(where, "2", "3")
        else:
            it.require_served(where, "2", "1")
        recorded = f"{scene.folder}/deployment.json" in it.cloud.artifacts.objects
        assert it.deploy(scene).startswith("deployed" if recorded else "Nothing deployed"), where
        assert scene.holder("champion") == ("2" if opened else "1"), where
    assert ends == {"Version", "The"}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_rollback_in_the_middle_of_a_deployment_ends_in_one_order(nights, after: bool) -> None:
    """A whole rollback at each call of the run's wake: the wake steps back, and both tell the same."""
    for at in range(1, 200):
        it = nights()
        scene = it.register()
        words: list[str] = []
        cloud = DyingCloud(it.cloud, at, after=after, instead=lambda it=it, words=words: words.append(it.go_back()))
        it.deploy(scene, cloud=cloud, wakes=1)
        if not words:
            assert at > 20
            break
        outcome = it.deploy(scene)
        where = f"call {at} ({cloud.calls[at - 1]}): {words}, {outcome}"
        assert it.rollout().state == "ended", where
        assert scene.holder("champion") != "3", where
        assert outcome.startswith(("Nothing deployed", "deployed")), where
        assert sum(scene.endpoint.traffic.values()) == 100, where
        assert deployed_model_id(scene.run_key) not in scene.endpoint.traffic, where


def clean(it: DeployedRuns, cloud: Any) -> list[str]:
    """The daily cleaning's part for deployed models; gives the outcomes."""
    now = it.cloud.clock.now()
    return [end_deployment(cloud, item, now).outcome for item in list(find_deployments(cloud, "flight_delays", now))]


def expire(it: DeployedRuns) -> None:
    """The hours are over that the version before is kept for."""
    uri = storage.rollout_uri(SETTINGS_BUCKET, "flight_delays")
    kept = it.rollout().kept.model_copy(update={"until": it.cloud.clock.now() - timedelta(hours=1)})
    it.cloud.artifacts.objects[uri] = it.rollout().model_copy(update={"kept": kept}).to_bytes()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("hours", [24, 0], ids=["kept", "not kept"])
def test_a_rollback_in_the_middle_of_a_cleaning_keeps_what_serves(nights, hours: int, after: bool) -> None:
    """At each call of it: the version that is gone back to answers all requests, whatever the cleaning had judged."""
    outcomes = set()
    for at in range(1, 60):
        it = nights()
        it.scenes[0].deployment(keep_previous_hours=hours)
        expire(it)
        words: list[str] = []
        cloud = DyingCloud(it.cloud, at, after=after, instead=lambda it=it, words=words: words.append(it.go_back()))
        outcomes.update(clean(it, cloud))
        if not words:
            assert at > 5
            break
        it.require_served(f"call {at} ({cloud.calls[at - 1]}): {words}", "1", "2")
    assert outcomes == {"left", "undeployed"}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_cleaning_in_the_middle_of_a_rollback_keeps_what_serves(nights, after: bool) -> None:
    """At each call of it: where the machines were taken away before the rollback had begun, they come again."""
    for at in range(1, 100):
        it = nights()
        expire(it)
        done: list[Any] = []
        cloud = DyingCloud(it.cloud, at, after=after, instead=lambda it=it, done=done: done.append(clean(it, it.cloud)))
        task = RollBackOperator(task_id="roll_back", retries=3, cloud=cloud.connect)
        it._wake(it.rollback("previous", 1), task, MOST_WAKES, lambda told: told["words"])
        if not done:
            assert at > 15
            break
        it.require_served(f"call {at} ({cloud.calls[at - 1]}): {done}", "1", "2")


def returning(it: DeployedRuns, **before: Any) -> None:
    """A rollout that would bring the champion back, as somebody wrote or copied it."""
    last = it.rollout()
    forged = last.model_copy(
        update={"state": "returning", "reason": "x", "before": last.before.model_copy(update=before)}
    )
    it.cloud.artifacts.objects[storage.rollout_uri(SETTINGS_BUCKET, "flight_delays")] = forged.to_bytes()


@pytest.mark.parametrize("verdict", ["reject", None], ids=["rejected", "no decision"])
def test_a_forged_rollout_makes_no_champion_that_no_decision_promoted(nights, verdict: str | None) -> None:
    """The cleaning leaves all as it is, and says what it found where."""
    it = nights()
    scene = it.register()
    if verdict is None:
        it.cloud.artifacts.take(f"{scene.folder}/decision.json")
    else:
        scene.change("decision", verdict=verdict)
    traffic, aliases = scene.endpoint.traffic, {key: one.aliases for key, one in it.cloud.registry.versions.items()}
    returning(it, champion_id="3", champion_name=it.cloud.registry.versions["3"].version_name)
    it.cloud.clock.sleep(24 * 3600)
    now = it.cloud.clock.now()
    (found,) = [item for item in find_deployments(it.cloud, "flight_delays", now) if item.what == "rollout"]
    done = end_deployment(it.cloud, found, now)
    assert done.outcome == "left"
    assert "rollout.json: version 3" in done.message
    assert "verdict promote" in done.message
    assert scene.endpoint.traffic == traffic
    assert {key: one.aliases for key, one in it.cloud.registry.versions.items()} == aliases


def test_a_version_that_was_rejected_is_no_way_back(nights) -> None:
    """By its id: the Param is named."""
    it = nights()
    scene = it.register()
    scene.change("decision", verdict="reject")
    assert "Param to of" in it.go_back("3")
    it.require_served("", "2", "1")


def test_a_deployment_waits_for_a_rollback_that_is_under_way(nights) -> None:
    """It neither brings it back nor begins; then its decision is against another champion than the one of now."""
    it = nights(2)
    scene = it.register()
    it.cloud.endpoints.undeploy(
        it.scenes[0].endpoint, deployed_model_id(RUN_KEYS[0])
    )  # the hours it is kept for are over
    it.cloud.endpoints.ready = False
    assert it.go_back(wakes=2) == "under way"
    assert it.deploy(scene, wakes=3) == "under way"
    assert it.rollout().state == "going"
    it.cloud.endpoints.ready = True
    assert "Version 1" in it.go_back()
    assert "version 1 is champion now" in it.deploy(scene)
    it.require_served("", "1", "2")


def test_two_people_at_once_go_back_once(nights) -> None:
    """The second rollback, at each call of the first one's, does not go forward again."""
    for at in range(1, 100):
        it = nights()
        task = RollBackOperator(task_id="roll_back", retries=3, cloud=it.cloud.connect)
        other: list[str] = []

        def second(it: DeployedRuns = it, task: Any = task, other: list[str] = other) -> None:
            other.append(it._wake(it.rollback("previous", 2), task, 1, lambda done: done["words"]))

        cloud = DyingCloud(it.cloud, at, instead=second)
        first = RollBackOperator(task_id="roll_back", retries=3, cloud=cloud.connect)
        it._wake(it.rollback("previous", 1), first, MOST_WAKES, lambda done: done["words"])
        if not other:
            assert at > 15
            break
        it._wake(it.rollback("previous", 2), task, MOST_WAKES, lambda done: done["words"])
        it.require_served(f"call {at} ({cloud.calls[at - 1]}): {other}", "1", "2")


def seen(it: DeployedRuns) -> Any:
    """What there is outside: traffic, machines, aliases."""
    scene = it.scenes[-1]
    aliases = {alias: scene.holder(alias) for alias in ("champion", "previous", "default")}
    return scene.endpoint.traffic, scene.endpoint.deployed, list(it.cloud.endpoints.running), aliases


def serving(it: DeployedRuns) -> None:
    """Version 2 is champion after version 1, by their rollouts."""


def without_rollout(it: DeployedRuns) -> None:
    """The same, and no document says how it came to it."""
    del it.cloud.artifacts.objects[storage.rollout_uri(SETTINGS_BUCKET, "flight_delays")]


def deploying(it: DeployedRuns) -> None:
    """The machines of a third version are on their way."""
    it.cloud.endpoints.ready = False
    assert it.deploy(it.register(), wakes=2) == "under way"
    it.cloud.endpoints.ready = True


def taken_away(it: DeployedRuns) -> None:
    """The version before is deployed no more: its machines have to come first."""
    it.cloud.endpoints.undeploy(it.scenes[0].endpoint, deployed_model_id(RUN_KEYS[0]))


def outlive(it: DeployedRuns, run: Any, at: int, look: Any, *, after: bool = False) -> DyingCloud:
    """A poke of `roll_back`, at one call of which the run is ended, and looked at."""

    def end() -> None:
        task = EndRollbackOperator(task_id="end", cloud=it.cloud.connect)
        assert it._wake(run, task, MOST_WAKES, lambda _: "ended") == "ended"
        look()

    cloud = DyingCloud(it.cloud, at, after=after, instead=end)
    it._wake(run, RollBackOperator(task_id="roll_back", retries=3, cloud=cloud.connect), 1, lambda done: done["words"])
    return cloud


def test_a_rollback_that_outlived_its_run_pauses_nothing(nights) -> None:
    """It had read how far the change of the champion was, and no more, when its run ended."""
    it = nights()
    run = it.rollback("previous", 1)
    run.params["pause_until"] = "7 days"
    outlive(it, run, 2, lambda: None)
    assert not [uri for uri in it.cloud.artifacts.objects if uri == storage.pause_uri(SETTINGS_BUCKET, "flight_delays")]


@pytest.mark.parametrize("state", [serving, without_rollout, deploying, taken_away], ids=lambda state: state.__name__)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_rollback_that_outlived_its_run_changes_nothing(nights, state: Any, after: bool) -> None:
    """A person ends its run at each call of its process, which lives on: nothing outside changes any more."""
    for at in range(1, 200):
        it = nights()
        state(it)
        then: list[Any] = []
        cloud = outlive(it, it.rollback("previous", 1), at, lambda it=it, then=then: then.append(seen(it)), after=after)
        if not then:
            assert at > 15
            break
        if at == 1 and not after:
            continue  # it has not read a thing: Airflow begins no task of a run that has ended
        where = f"call {at} ({cloud.calls[at - 1]})"
        assert [seen(it)] == then, where
        assert sum(it.scenes[-1].endpoint.traffic.values()) == 100, where
        assert it.rollout().state == "ended" or state is deploying, where


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("2", "version 2 is champion"),
        ("7", "'7'. Expected previous, or one of: 1, 2"),
        ("3", "no run of this system made it"),
        ("1", "no model in gs://"),
    ],
    ids=["champion", "unknown", "by hand", "model gone"],
)
def test_what_cannot_be_gone_back_to_is_refused_by_name(nights, to: str, expected: str) -> None:
    """Nothing is changed."""
    it = nights()
    if to == "3":
        it.cloud.registry.add("", labels={})
    if to == "1":
        del it.cloud.artifacts.objects[f"{it.cloud.registry.versions['1'].artifact_uri}/saved_model.pb"]
    said = it.go_back(to)
    assert said.startswith("failed: ")
    assert expected in said
    it.require_served("", "2", "1")
    assert it.documents() == []


def test_a_model_without_a_version_before_or_any_is_refused(nights) -> None:
    """The first champion has none; an unknown model is asked whether another was meant."""
    it = nights(1)
    assert "the alias previous" in it.go_back()
    run = it.rollback("previous", 2)
    run.params["model"] = "flight_delay"
    with pytest.raises(AirflowFailException, match="'flight_delays'"), contextlib.suppress(Death):
        run.execute(RollBackOperator(task_id="roll_back", cloud=it.cloud.connect))


def test_a_rollback_can_tell_its_lineage(nights) -> None:
    """The version that serves again, and the endpoint that exists."""
    it = nights()
    task = RollBackOperator(task_id="roll_back", cloud=it.cloud.connect)
    it._wake(it.rollback("previous", 1), task, MOST_WAKES, lambda done: done["words"])
    assert task.lineage_record is not None
    found = task.lineage_record.find_document(Rollback)
    told = STEPS[task.lineage_steps].describe("roll_back", Documents([found]))
    assert [each.name for each in told.flow.inputs] == [found.version_name]
    assert [each.name for each in told.flow.outputs] == [it.scenes[-1].endpoint.name]
