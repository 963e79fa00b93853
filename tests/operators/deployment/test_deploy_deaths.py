"""The process dies at every single call of a deployment: what serves, who is champion and what is paid end right.

Each death is followed by what follows on the real thing: another try of the task, the teardown of a run that was ended,
the next night's run, or the daily cleaning.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

import pytest

from retraining.core.documents import Served
from retraining.core.errors import ConflictError, JobError
from retraining.core.naming.vertex import deployed_model_id
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.retention.versions import find_deployments
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.dying import Death, DyingCloud
from tests.support.scenes.deployment import FOLDER, Scene
from tests.support.scenes.dying_run import DyingRun, deaths, promoted_run, require_as_before, require_served


@pytest.fixture
def night(make_run: Any) -> Callable[..., DyingRun]:
    """Makes a promoted run: version 3, after a champion (2) and its predecessor (1); or the first one of all."""
    return functools.partial(promoted_run, make_run)


@pytest.mark.parametrize(
    ("first", "hours"),
    [
        pytest.param(False, 24, id="after a champion"),
        pytest.param(False, 0, id="not kept", marks=pytest.mark.long),
        pytest.param(True, 24, id="the first"),
    ],
)
def test_a_death_anywhere_and_another_try_end_in_one_champion(night, first: bool, hours: int) -> None:
    """Once deployed and undeployed, aliases right, the document names whom it followed."""

    def make() -> DyingRun:
        return night(first=first, keep_hours=hours)

    for where, seen in deaths(make, lambda it, at, after: it.deploy(at, after=after)):
        require_served(where, seen, "1" if first else "3", None if first else "2", kept=bool(hours))
        document = seen.scene.read("deployment")
        assert document["deployed"], where
        assert (document["previous_version_name"] or "@none").split("@")[1] == ("none" if first else "2"), where
        assert len(seen.scene.cloud.endpoints.deploys) == 1, where


@pytest.mark.long
def test_a_death_anywhere_in_a_ramp_and_another_try_go_on_with_its_step(night) -> None:
    """Each share is taken once and is judged once, whoever dies; the champion is in office after the last."""

    def make() -> DyingRun:
        it = night(canary={"percent": [10, 100], "bake_minutes": 1})
        for deployed_id in (*it.scene.endpoint.deployed, it.scene.mine):
            it.scene.cloud.serving_metrics.by_id[deployed_id] = Served(requests=20_000, errors=0, latency_ms=10.0)
        return it

    for where, seen in deaths(make, lambda it, at, after: it.deploy(at, after=after)):
        require_served(where, seen, "3", "2")
        (step,) = seen.scene.read("deployment")["steps"]
        assert (step["percent"], len(step["gates"])) == (10, 4), where
        assert len(seen.scene.cloud.endpoints.deploys) == 1, where


@pytest.mark.long
def test_a_death_anywhere_after_a_gate_has_failed_brings_all_back(night) -> None:
    """And the document says why, once everything is as before."""

    def make() -> DyingRun:
        it = night(canary={"percent": [10, 100], "bake_minutes": 1})
        for deployed_id in it.scene.endpoint.deployed:
            it.scene.cloud.serving_metrics.by_id[deployed_id] = Served(requests=20_000, errors=0, latency_ms=10.0)
        it.scene.cloud.serving_metrics.by_id[it.scene.mine] = Served(requests=20_000, errors=9_000, latency_ms=10.0)
        return it

    def play(it: DyingRun, at: int, after: bool) -> None:
        assert it.deploy(at, after=after) == "refused"

    for where, seen in deaths(make, play):
        require_as_before(where, seen, first=False)
        assert re.search(r"errors: 45\.00% of \d+ requests", seen.scene.read("deployment")["words"]), where


@pytest.mark.parametrize("first", [False, True], ids=["after a champion", "the first"])
def test_a_death_anywhere_never_leaves_a_wrong_model(night, first: bool) -> None:
    """Its answers are wrong: whatever died, the old version serves; where there is none, nobody does."""

    def play(it: DyingRun, at: int, after: bool) -> None:
        it.scene.wrong_answers()
        assert it.deploy(at, after=after) in ("failed", "died")
        it.teardown()

    for where, seen in deaths(lambda: night(first=first), play):
        require_as_before(where, seen, first=first)


@pytest.mark.parametrize("first", [False, True], ids=["after a champion", "the first"])
def test_a_run_that_is_ended_anywhere_leaves_nothing_half(night, first: bool) -> None:
    """No other try comes, only the teardown: the version has all, or everything is as before."""
    outcomes = set()

    def play(it: DyingRun, at: int, after: bool) -> None:
        it.deploy(at, after=after, tries=1)
        it.teardown()

    for where, seen in deaths(lambda: night(first=first), play):
        served = seen.scene.holder("champion") == ("1" if first else "3")
        outcomes.add(served)
        if served:
            require_served(where, seen, "1" if first else "3", None if first else "2")
        else:
            require_as_before(where, seen, first=first)
    assert outcomes == {True, False}


def test_the_next_run_settles_what_a_dead_one_left(night, make_run) -> None:
    """Neither another try nor a teardown came; the next night's champion follows the one that really served."""

    def play(it: DyingRun, at: int, after: bool) -> None:
        it.deploy(at, after=after, tries=1)
        if not it.died:
            return
        later = Scene(it.scene.cloud, "20131121t030000z-0123456789ab")
        later.change("plan", as_of="2013-11-21T03:00:00Z")
        holder = it.scene.cloud.registry.versions[it.scene.holder("champion")]
        later.decided_against(holder.version_id, holder.run_key)
        it.next = DyingRun(make_run, later)
        it.outcome, it.before = it.next.deploy(), holder.version_id

    for where, seen in deaths(night, play):
        assert seen.outcome == "deployed", where
        require_served(where, seen.next, "4", seen.before)


def test_a_death_on_the_way_back_is_gone_on_with(night) -> None:
    """Every death of the teardown too."""
    for at in range(1, 40):
        it = night()
        it.deploy(14, tries=1)
        assert it.died
        dying = DyingCloud(it.scene.cloud, at)
        try:
            it.scene.cloud, whole = dying, it.scene.cloud
            it.teardown()
        except Death:
            pass
        finally:
            it.scene.cloud = whole
        it.teardown()
        require_as_before(f"call {at}", it, first=False)


@pytest.mark.parametrize("right", [True, False], ids=["it passes", "it fails for the other"])
def test_two_workers_at_once_agree(night, make_run, right: bool) -> None:
    """A second worker of the task has a whole wake of its own in the middle of the first one's, at every call.

    Where the second finds wrong answers, what it brings back is not crowned by the first.
    """

    def wake(it: DyingRun, cloud: Any) -> None:
        with contextlib.suppress(AirflowRescheduleException, AirflowFailException, JobError, ConflictError):
            it.run.execute(DeployModelOperator(task_id="deploy", run_uri=FOLDER, retries=3, cloud=cloud.connect))

    def second_wake(it: DyingRun) -> None:
        if not right:
            it.scene.wrong_answers()
        it.scene.cloud.clock.sleep(180)
        wake(it, it.scene.cloud)
        it.scene.right_answers()

    for at in range(1, 120):
        it = night()
        cloud = DyingCloud(it.scene.cloud, at, instead=lambda it=it: second_wake(it))
        wake(it, cloud)
        where = f"call {at}"
        assert it.deploy() == "deployed", where
        require_served(where, it, "3", "2")
        if len(cloud.calls) < at:
            break
    else:
        raise AssertionError("the wake has more calls than that")


def test_the_daily_cleaning_settles_what_everybody_died_of(night) -> None:
    """Neither another try, nor the teardown, nor another run: a day later no machine is paid that nobody asked for."""
    outcomes = set()
    for where, seen in deaths(night, lambda it, at, after: it.deploy(at, after=after, tries=1)):
        outcomes.add(tuple(seen.clean()))
        if seen.scene.holder("champion") == "3":
            seen.clean()  # of a rollout that the first one settled, a day later
            require_served(where, seen, "3", "2", kept=False)
        else:
            require_as_before(where, seen, first=False)
        assert seen.clean() == [], where
    assert ("settled",) in outcomes


def test_what_a_live_task_deploys_is_not_touched_by_a_cleaning(night) -> None:
    """Its last wake was a minute ago, and its model has no traffic yet."""
    it = night()
    it.scene.cloud.endpoints.ready = False
    with pytest.raises(AssertionError, match="not at its end"):
        it.deploy()
    it.scene.cloud.endpoints.ready = True
    assert len(it.scene.endpoint.deployed) == 2
    assert list(find_deployments(it.scene.cloud, "flight_delays", it.scene.cloud.clock.now())) == []


def test_a_cleaning_leaves_what_a_person_deployed(night) -> None:
    """A model without traffic goes when a run deployed it, and when nothing is under way."""
    it = night()
    assert it.deploy() == "deployed"
    endpoints, old = it.scene.cloud.endpoints, it.scene.cloud.registry.versions["2"]
    endpoints.endpoint = dataclasses.replace(
        endpoints.endpoint, deployed={**endpoints.endpoint.deployed, "77": old.version_name}
    )
    assert deployed_model_id(old.run_key) in it.scene.endpoint.deployed
    assert list(find_deployments(it.scene.cloud, "flight_delays", it.scene.cloud.clock.now())) == []
    assert it.clean() == ["undeployed"]
    assert set(it.scene.endpoint.deployed) == {"77", it.scene.mine}


def test_a_run_that_is_ended_while_its_machines_come_leaves_none(night) -> None:
    """The operation is cancelled; where the service does not, the teardown waits for the machines and undeploys."""
    for cancellable in (True, False):
        it = night()
        endpoints = it.scene.cloud.endpoints
        endpoints.ready = False
        with pytest.raises(AssertionError, match="not at its end"):
            it.deploy()
        if not cancellable:
            endpoints.cancel_operation = lambda _: None
            task, seen = CancelJobsOperator(task_id="cancel_jobs", cloud=it.scene.cloud.connect), it
            with pytest.raises(AirflowRescheduleException):
                seen.run.execute(task)
        endpoints.ready = True
        it.teardown()
        require_as_before(str(cancellable), it, first=False)
        assert len(endpoints.deploys) == 1


def test_machines_that_leave_slowly_are_waited_for(night) -> None:
    """A model that is being undeployed is not taken for deployed by the next try, nor undeployed twice."""
    for first in (False, True):
        it = night(first=first)
        it.scene.cloud.endpoints.leaves_after = 3
        it.scene.wrong_answers()
        assert it.deploy() == "failed"
        it.scene.right_answers()
        assert it.deploy() == "deployed"
        assert len(it.scene.cloud.endpoints.deploys) == 2
        for _ in range(5):
            it.scene.cloud.endpoints.get("flight_delays")
        require_served("", it, "1" if first else "3", None if first else "2")


def test_every_call_was_died_at(night) -> None:
    """The count that the deaths above go through."""
    it = night(keep_hours=0)
    assert it.deploy() == "deployed"
    assert {"set_traffic", "predict", "merge_aliases", "move_alias", "undeploy", "start_deploy"} <= set(it.calls)
    assert f"{FOLDER}/deployment.json" in it.scene.cloud.artifacts.objects
