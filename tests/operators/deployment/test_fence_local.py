"""Somebody else acts in the middle of a deployment on the local cloud, through Google's clients: who answers then.

Every call is gone through in test_fence.py and test_rollback.py, on the cloud in memory. Here the endpoint is asked.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from retraining.core.documents import Rollout
from retraining.core.errors import ConflictError, JobError
from retraining.core.naming import storage
from retraining.hooks.cloud import Cloud
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.deployment.version_rollback import RollBackOperator
from retraining.operators.retention.versions import end_deployment, find_deployments
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.scenes.deployed_run import DeployedRun, DyingAtName, Waiting
from tests.support.scenes.served_models import save_models

OLD, NEW = 0.25, 0.75
BEFORE = {"score": OLD, "answers": "1", "deployed": 1, "champion": "1", "previous": None, "default": "1"}
THEN = {"score": NEW, "answers": "2", "deployed": 2, "champion": "2", "previous": "1", "default": "2"}
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def model_paths(tmp_path_factory) -> Path:
    """Two SavedModels, each in a folder named after what it always says."""
    path = tmp_path_factory.mktemp("models")
    save_models(path, OLD, NEW)
    return path


@pytest.fixture
def nights(local_cloud, make_run, model_paths) -> Iterator[list[DeployedRun]]:
    """A first night, which serves, and a second one, which is registered."""
    del local_cloud
    cloud = Cloud()
    cloud.clock = Waiting()
    dag_id, made = f"retrain__fence_{uuid.uuid4().hex[:8]}", list[DeployedRun]()
    for day, score in ((20, OLD), (21, NEW)):
        run = make_run(run_id=f"scheduled__{day}", dag_id=dag_id)
        made.append(DeployedRun(cloud, run, datetime(2013, 11, day, 3, tzinfo=UTC), model_paths / str(score)))
        if score == OLD:
            made[-1].deploy()
            assert made[-1].state()["score"] == OLD
    yield made
    made[-1].retire()


class Interrupted(DyingAtName):
    """At the n-th call of a name somebody else acts, and the process goes on."""

    def __init__(self, cloud: Cloud, name: str, nth: int, act: Callable[[], None], *, after: bool) -> None:
        super().__init__(cloud, name, nth, after=after)
        self.acted = False
        self._act = act
        self._instead = self._act_once

    def _act_once(self) -> None:
        self.acted = True
        self._act()


def wake(night: DeployedRun, cloud: Any, wakes: int = 60) -> None:
    """Wake the run's task until somebody acted in it; then its process ends."""
    task = DeployModelOperator(task_id="deploy", run_uri=night.folder, retries=3, cloud=cloud.connect)
    for _ in range(wakes):
        with contextlib.suppress(AirflowRescheduleException, AirflowFailException, JobError, ConflictError):
            night.run.execute(task)
        if cloud.acted:
            return
        night._wait()
    raise AssertionError(f"nobody acted in {cloud.calls}")


@pytest.mark.parametrize(
    ("name", "nth", "after", "expected"),
    [
        ("start_deploy", 1, False, BEFORE),
        ("set_traffic", 2, False, BEFORE),
        ("set_traffic", 2, True, BEFORE),
        ("move_alias", 1, False, BEFORE),
        ("move_alias", 1, True, THEN),
    ],
)
def test_whoever_outlived_its_run_changes_nothing(nights, name: str, nth: int, after: bool, expected: Any) -> None:
    """The run is torn down at a change that its task is about to make, or has just made."""
    night = nights[-1]
    seen: list[Any] = []

    def act() -> None:
        night.teardown()
        seen.append(night.state())

    wake(night, Interrupted(night.cloud, name, nth, act, after=after))
    assert [night.state()] == seen
    assert night.state() == expected


def test_a_champion_that_a_person_takes_away_leaves_no_empty_endpoint(nights) -> None:
    """Before the version has all: it is the only one that answers, and does so whatever becomes of the run."""
    first, night = nights

    def act() -> None:
        endpoints = night.cloud.endpoints
        endpoints.set_traffic(endpoints.get(night.model), {night.deployed_id: 100})
        endpoints.undeploy(endpoints.get(night.model), first.deployed_id)
        while first.deployed_id in endpoints.get(night.model).deployed:
            night._wait()

    wake(night, Interrupted(night.cloud, "set_traffic", 2, act, after=False))
    night.teardown()
    assert night.answer() == (NEW, "2")
    assert night.cloud.endpoints.get(night.model).traffic == {night.deployed_id: 100}


def test_a_rollback_in_the_middle_of_a_cleaning_keeps_what_serves(nights, make_run) -> None:
    """Its hours are over, and it is gone back to right before it would be undeployed."""
    night = nights[-1]
    night.deploy()
    assert night.state() == THEN
    cloud = night.cloud
    uri = storage.rollout_uri(cloud.settings.bucket, night.model)
    data, generation = cloud.artifacts.read_generation(uri)
    rollout = Rollout.parse(data)
    kept = rollout.kept.model_copy(update={"until": cloud.clock.now() - timedelta(hours=1)})
    cloud.artifacts.write_if(uri, rollout.model_copy(update={"kept": kept}).to_bytes(), generation)
    run = make_run(
        dag_id="rollback",
        run_id="manual__1",
        run_after=cloud.clock.now().replace(microsecond=0),
        params={"model": night.model, "to": "previous", "reason": "complaints", "pause_until": None},
    )

    def go_back() -> None:
        task = RollBackOperator(task_id="roll_back", cloud=lambda: cloud)
        for _ in range(60):
            with contextlib.suppress(AirflowRescheduleException):
                run.execute(task)
                return
            night._wait()

    found = list(find_deployments(cloud, night.model, cloud.clock.now()))
    assert [item.what for item in found] == ["unclaimed"]
    acting = Interrupted(cloud, "undeploy", 1, go_back, after=False)
    assert [end_deployment(acting, item, cloud.clock.now()).outcome for item in found] == ["left"]
    assert acting.acted
    back = {"score": OLD, "answers": "1", "deployed": 2, "champion": "1", "previous": "2", "default": "1"}
    assert night.state() == back
    assert RolloutState(cloud, night.model).read_rollout().state == "ended"
