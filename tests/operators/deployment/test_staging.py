"""A version is tried on an endpoint of its own first: what serves is not touched before it was right there.

The process dies at every single call of it, as in `test_deploy_deaths`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import pytest

from retraining.core.errors import SettingsError
from retraining.core.naming.vertex import MODEL_LABEL, endpoint_name, staging_of
from retraining.hooks.endpoints import Endpoint
from retraining.operators.deployment.version_rollback import RollBackOperator
from retraining.operators.record.ownership import require_own_model
from tests.support.airflow_release import AirflowRescheduleException
from tests.support.refusals import refuses
from tests.support.scenes.dying_run import DyingRun, deaths, promoted_run, require_as_before, require_served

MODEL = "flight_delays"
STAGING = endpoint_name("p", "r", staging_of(MODEL))


@pytest.fixture
def night(make_run: Any) -> Callable[..., DyingRun]:
    """Makes a promoted run whose version is tried first."""
    return functools.partial(promoted_run, make_run, staging=True)


def staged(it: DyingRun) -> Endpoint:
    """The endpoint for tries."""
    return it.scene.cloud.endpoints.by_name[STAGING]


def require_left(where: str, it: DyingRun) -> None:
    """Nothing is on the endpoint for tries any more, so it costs nothing."""
    endpoint = it.scene.cloud.endpoints.by_name.get(STAGING)
    assert endpoint is None or (endpoint.deployed, endpoint.traffic) == ({}, {}), where


def test_a_version_is_right_where_nobody_asks_it_and_then_serves(night) -> None:
    """The endpoint for tries is this model's by its label, logs no request, and is empty afterwards."""
    it = night()
    assert it.deploy() == "deployed"
    require_served("", it, "3", "2")
    require_left("", it)
    assert staged(it).labels[MODEL_LABEL] == MODEL
    assert it.scene.cloud.endpoints.log_tables[STAGING] is None
    assert len(it.scene.cloud.endpoints.deploys) == 2
    tried = it.scene.read("deployment")["staging"]
    assert (tried["endpoint_name"], tried["passed"], tried["smoke_test"]["answers"]) == (STAGING, True, 3)


def test_what_serves_is_not_touched_while_a_version_is_tried(night) -> None:
    """Its machines are on their way to the endpoint for tries."""
    it = night()
    before = it.scene.endpoint
    it.scene.cloud.endpoints.ready = False
    with pytest.raises(AssertionError, match="not at its end"):
        it.deploy()
    assert it.scene.endpoint == before
    assert [at for at, *_ in it.scene.cloud.endpoints.running.values()] == [STAGING]


def test_a_version_that_is_wrong_there_is_refused_and_nothing_was_touched(night) -> None:
    """A decision and not an error; clearing the task does not try it again."""
    it = night()
    before = it.scene.endpoint
    it.scene.wrong_answers()
    assert it.deploy() == "refused"
    require_as_before("", it, first=False)
    require_left("", it)
    assert it.scene.endpoint == before
    document = it.scene.read("deployment")
    assert document["staging"]["passed"] is False
    assert "was not touched" in document["words"]
    assert f"{STAGING} gives answers that differ" in document["words"]
    del it.scene.cloud.artifacts.objects[f"{it.scene.folder}/deployment.json"]
    it.scene.right_answers()
    assert it.deploy() == "refused"
    assert len(it.scene.cloud.endpoints.deploys) == 1


def test_machines_that_do_not_come_there_fail_the_task(night) -> None:
    """That says nothing about the version: another try may begin again."""
    it = night()
    before = it.scene.endpoint
    it.scene.cloud.endpoints.error = "out of quota"
    assert it.deploy() == "died"
    assert it.scene.endpoint == before
    it.scene.cloud.endpoints.error = ""
    assert it.deploy() == "deployed"
    require_served("", it, "3", "2")
    require_left("", it)


@pytest.mark.parametrize(
    "first",
    [pytest.param(False, id="after a champion", marks=pytest.mark.long), pytest.param(True, id="the first")],
)
def test_a_death_anywhere_and_another_try_go_on(night, first: bool) -> None:
    """Deployed once there and once where it serves; the deaths after that are any deployment's."""

    def make() -> DyingRun:
        return night(first=first)

    for where, seen in deaths(make, lambda it, at, after: it.deploy(at, after=after), ("start_deploy", 2)):
        require_served(where, seen, "1" if first else "3", None if first else "2")
        require_left(where, seen)
        assert len(seen.scene.cloud.endpoints.deploys) == 2, where
        assert seen.scene.read("deployment")["staging"]["passed"], where


def test_a_death_anywhere_of_a_wrong_version_touches_nothing(night) -> None:
    """It is refused whoever died."""

    def play(it: DyingRun, at: int, after: bool) -> None:
        it.scene.wrong_answers()
        assert it.deploy(at, after=after) == "refused"

    for where, seen in deaths(night, play):
        require_as_before(where, seen, first=False)
        require_left(where, seen)
        assert seen.scene.endpoint.etag == "", where


def test_a_run_that_is_ended_while_its_version_is_tried_leaves_nothing_there(night) -> None:
    """Only the teardown comes; what serves was never touched."""

    def play(it: DyingRun, at: int, after: bool) -> None:
        it.deploy(at, after=after, tries=1)
        it.teardown()

    for where, seen in deaths(night, play, ("start_deploy", 2)):
        require_left(where, seen)
        require_as_before(where, seen, first=False)


def test_a_rollback_ends_a_try(night, make_run) -> None:
    """What serves goes on; the run deploys nothing any more."""
    it = night()
    it.scene.cloud.endpoints.ready = False
    with pytest.raises(AssertionError, match="not at its end"):
        it.deploy()
    it.scene.cloud.endpoints.ready = True
    params = {"model": MODEL, "to": "previous", "reason": "not now", "pause_until": None}
    run = make_run(dag_id="rollback", run_id="manual__1", params=params)
    task = RollBackOperator(task_id="roll_back", cloud=it.scene.cloud.connect)
    for _ in range(5):
        with contextlib.suppress(AirflowRescheduleException):
            run.execute(task)
            break
    require_as_before("", it, first=False)
    require_left("", it)
    assert it.deploy() == "refused"
    assert "(not now)" in it.scene.read("deployment")["words"]


def test_machines_that_leave_slowly_are_waited_for(night) -> None:
    """The deployment begins when nothing is paid on the endpoint for tries any more, and nothing leaves twice."""
    it = night()
    it.scene.cloud.endpoints.leaves_after = 3
    assert it.deploy() == "deployed"
    require_left("", it)


@pytest.mark.parametrize("traffic", [{}, 100], ids=["taken off half", "while it was asked"])
def test_the_daily_cleaning_takes_off_what_was_left_there(night, traffic: Any) -> None:
    """Nobody knows of it any more; what a person deployed stays."""
    it = night()
    it.deploy()
    version = it.scene.cloud.registry.versions["3"].version_name
    left = Endpoint(
        name=STAGING,
        deployed={it.scene.mine: version, "77": version},
        traffic={it.scene.mine: 100} if traffic else {},
        labels=staged(it).labels,
    )
    it.scene.cloud.endpoints.by_name[STAGING] = left
    assert "undeployed" in it.clean()
    assert set(staged(it).deployed) == {"77"}
    assert it.clean() == []


def test_another_models_endpoint_is_not_taken_for_tries(night) -> None:
    """`flight_delays_staging` may be a model: found before anything is paid."""
    cloud = night().scene.cloud
    cloud.endpoints.ensure(staging_of(MODEL), "p.d.t", {MODEL_LABEL: staging_of(MODEL)})
    require_own_model(cloud, MODEL)
    with refuses(SettingsError, found="flight_delays_staging", way_out="deployment.staging"):
        require_own_model(cloud, MODEL, staging=True)


def test_a_model_does_not_serve_from_another_ones_endpoint_for_tries(night) -> None:
    """The other way round."""
    it = night()
    assert it.deploy() == "deployed"
    with refuses(SettingsError, found=("model flight_delays", "deployment.staging")):
        require_own_model(it.scene.cloud, staging_of(MODEL))
