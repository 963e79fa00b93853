"""The tasks of a pool's DAG, in memory: made once, kept for its hours, always deleted; and the jobs that use it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import (
    FailedPrecondition,
    Forbidden,
    InvalidArgument,
    NotFound,
    ServiceUnavailable,
)

from retraining.core.errors import ConflictError, JobError
from retraining.core.jobs.machine_pools import pool_id
from retraining.operators.jobs import machine_pools
from retraining.operators.jobs.machine_pools import (
    CloseMachinePoolOperator,
    KeepMachinePoolOperator,
    OpenMachinePoolOperator,
)
from tests.support.airflow_release import AirflowRescheduleException
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.settings import ENVIRONMENT
from tests.support.scenes.job import finish, make_task
from tests.support.small_pool import write_pool

POOL_ID = pool_id(ENVIRONMENT.label, "nightly")


class Scene:
    """A pool's DAG run, and the cloud."""

    def __init__(self, make_run: Any) -> None:
        self.cloud = FakeCloud()
        self.opened = self.cloud.clock.now()
        self.make_run = make_run
        self.run = self.another_run("scheduled__1")

    def another_run(self, run_id: str) -> Any:
        """One of the same DAG."""
        return self.make_run(run_id=run_id, dag_id="machine_pool__nightly", run_after=self.opened)

    def step(self, kind: Any, run: Any = None) -> Any:
        """One poke of a task; None when it comes again."""
        try:
            return (run or self.run).execute(
                kind(task_id=kind.__name__, machine_pool="nightly", cloud=self.cloud.connect)
            )
        except AirflowRescheduleException:
            return None

    def open(self) -> Any:
        """Make the pool, and let its machines be there."""
        assert self.step(OpenMachinePoolOperator) is None
        self.cloud.machine_pools.run(POOL_ID)
        return self.step(OpenMachinePoolOperator)

    def pass_hours(self, hours: float) -> None:
        """Let time pass."""
        self.cloud.clock.sleep(hours * 3600)


@pytest.fixture
def scene(make_run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    """With the file of the pool."""
    write_pool(tmp_path)
    monkeypatch.setattr(machine_pools, "include_path", lambda: tmp_path)
    return Scene(make_run)


def test_it_is_made_once_and_waited_for(scene: Scene) -> None:
    for _ in range(3):
        assert scene.step(OpenMachinePoolOperator) is None
    assert scene.cloud.machine_pools.made == [POOL_ID]
    scene.cloud.machine_pools.run(POOL_ID)
    opened = scene.step(OpenMachinePoolOperator)
    assert opened["pool_id"] == POOL_ID
    assert datetime.fromisoformat(opened["closes"]) == (scene.opened + timedelta(hours=3)).replace(microsecond=0)


def test_an_answer_that_got_lost_makes_no_second_pool(scene: Scene) -> None:
    """Its id is known beforehand."""

    def lose() -> None:
        raise ConnectionError("the answer got lost")

    scene.cloud.machine_pools.after_create = lose
    assert scene.step(OpenMachinePoolOperator) is None
    scene.cloud.machine_pools.run(POOL_ID)
    assert scene.step(OpenMachinePoolOperator)["pool_id"] == POOL_ID
    assert scene.cloud.machine_pools.made == [POOL_ID]


def test_no_machines_are_a_failure_that_a_retry_mends(scene: Scene) -> None:
    """What could not be made is deleted, and made anew by the next try."""
    scene.step(OpenMachinePoolOperator)
    scene.cloud.machine_pools.fail(POOL_ID, "no n1-standard-4 in us-central1")
    with pytest.raises(JobError, match="no n1-standard-4"):
        scene.step(OpenMachinePoolOperator)
    assert scene.step(OpenMachinePoolOperator) is None
    scene.cloud.machine_pools.vanish(POOL_ID)
    assert scene.open()["pool_id"] == POOL_ID
    assert len(scene.cloud.machine_pools.made) == 2


def test_what_an_earlier_run_left_goes_first(scene: Scene) -> None:
    """It has the hours of that run."""
    scene.step(OpenMachinePoolOperator, scene.another_run("scheduled__0"))
    scene.cloud.machine_pools.run(POOL_ID)
    assert scene.step(OpenMachinePoolOperator) is None
    assert scene.cloud.machine_pools.find(POOL_ID).state == "STOPPING"
    scene.cloud.machine_pools.vanish(POOL_ID)
    assert scene.open()["pool_id"] == POOL_ID


def test_nothing_is_made_when_its_hours_are_over(scene: Scene) -> None:
    """As after a night without a scheduler."""
    scene.pass_hours(3)
    assert scene.step(OpenMachinePoolOperator) is None
    assert scene.cloud.machine_pools.made == []
    assert scene.step(KeepMachinePoolOperator) is None
    assert scene.step(CloseMachinePoolOperator) is None


def states(scene: Scene, kind: Any) -> bool:
    """Whether a poke was the last one."""
    task = kind(task_id="x", machine_pool="nightly", cloud=scene.cloud.connect)
    return bool(task.look(scene.cloud, scene.run.context(task)))


def test_it_is_kept_for_its_hours_and_until_its_jobs_have_ended(scene: Scene) -> None:
    scene.open()
    assert not states(scene, KeepMachinePoolOperator)
    job = {"labels": {"retraining-key": "k"}, "job_spec": {"persistent_resource_id": POOL_ID}}
    made = scene.cloud.jobs.create(job)
    scene.cloud.jobs.create({"labels": {"retraining-key": "elsewhere"}, "job_spec": {}})
    scene.pass_hours(3)
    assert not states(scene, KeepMachinePoolOperator)
    scene.cloud.jobs.end(made.name)
    assert states(scene, KeepMachinePoolOperator)


def test_a_job_that_does_not_end_holds_it_no_longer_than_the_file_says(scene: Scene) -> None:
    scene.open()
    job = {"labels": {"retraining-key": "k"}, "job_spec": {"persistent_resource_id": POOL_ID}}
    made = scene.cloud.jobs.create(job)
    scene.pass_hours(3.9)
    assert not states(scene, KeepMachinePoolOperator)
    scene.pass_hours(0.2)
    assert states(scene, KeepMachinePoolOperator)
    assert not states(scene, CloseMachinePoolOperator)
    assert scene.cloud.jobs.get(made.name).state == "JOB_STATE_CANCELLED"


def test_a_pool_that_a_person_deleted_is_not_waited_for(scene: Scene) -> None:
    scene.open()
    scene.cloud.machine_pools.vanish(POOL_ID)
    assert states(scene, KeepMachinePoolOperator)
    assert states(scene, CloseMachinePoolOperator)


@pytest.mark.parametrize("state", ["PROVISIONING", "RUNNING", "ERROR"])
def test_it_is_deleted_whatever_state_it_is_in(scene: Scene, state) -> None:
    """The run may be marked as failed at any time: the teardown is what is left of it."""
    scene.step(OpenMachinePoolOperator)
    if state == "RUNNING":
        scene.cloud.machine_pools.run(POOL_ID)
    if state == "ERROR":
        scene.cloud.machine_pools.fail(POOL_ID, "no machines")
    assert not states(scene, CloseMachinePoolOperator)
    assert scene.cloud.machine_pools.find(POOL_ID).state == "STOPPING"
    assert not states(scene, CloseMachinePoolOperator)
    scene.cloud.machine_pools.vanish(POOL_ID)
    assert states(scene, CloseMachinePoolOperator)


def test_a_late_teardown_leaves_the_next_runs_pool_alone(scene: Scene) -> None:
    """Of another run of the same DAG it has the same id."""
    scene.step(OpenMachinePoolOperator, scene.another_run("manual__2"))
    assert states(scene, CloseMachinePoolOperator)
    assert scene.cloud.machine_pools.find(POOL_ID).state == "PROVISIONING"


class Training:
    """A model's training on the pool of the same cloud."""

    def __init__(self, scene: Scene) -> None:
        self.cloud = scene.cloud
        self.run = scene.make_run()
        self.task = make_task(scene.cloud, machine_pool="nightly")

    def poke(self) -> Any:
        """One of its task."""
        try:
            return self.run.execute(self.task)
        except AirflowRescheduleException:
            return None


def test_a_job_runs_on_the_open_pool(scene: Scene) -> None:
    """And where people look how to submit it themselves, it says so."""
    scene.open()
    training = Training(scene)
    training.poke()
    assert scene.cloud.jobs.specs[0]["job_spec"]["persistent_resource_id"] == POOL_ID
    submitted = scene.cloud.artifacts.objects["gs://bucket/flight_delays/runs/x/submit/train.json"]
    assert POOL_ID.encode() in submitted


def test_before_it_opens_a_job_has_machines_of_its_own(scene: Scene) -> None:
    Training(scene).poke()
    assert "persistent_resource_id" not in scene.cloud.jobs.specs[0]["job_spec"]


def test_a_job_that_ends_with_the_pool_is_made_again_elsewhere_and_found(scene: Scene) -> None:
    """One task, two jobs, of which the first was taken away; a result."""
    scene.open()
    training = Training(scene)
    training.poke()
    states(scene, CloseMachinePoolOperator)
    training.poke()
    training.poke()
    assert [("persistent_resource_id" in spec["job_spec"]) for spec in scene.cloud.jobs.specs] == [True, False]
    finish(scene.cloud)
    assert training.poke() is not None


@pytest.mark.parametrize(
    "error", [NotFound("gone"), FailedPrecondition("STOPPING"), InvalidArgument("no such machines")]
)
def test_a_pool_that_closed_since_it_was_looked_at_costs_a_poke(scene: Scene, error) -> None:
    """The create is refused, and the next one asks for machines of its own."""
    scene.open()
    training = Training(scene)

    def refuse() -> None:
        scene.cloud.jobs.before_create = lambda: None
        raise error

    scene.cloud.jobs.before_create = refuse
    for _ in range(2):
        training.poke()
    assert ["persistent_resource_id" in spec["job_spec"] for spec in scene.cloud.jobs.specs] == [False]
    finish(scene.cloud)
    assert training.poke() is not None


@pytest.mark.parametrize(
    "error", [Forbidden("no role"), ServiceUnavailable("later"), ConflictError("a", "b", "c", "d")]
)
def test_who_cannot_be_asked_about_the_pool_trains_without_it(scene: Scene, monkeypatch, error) -> None:
    """Without a role, in an outage, of another environment: no run depends on a pool."""
    scene.open()

    def fail(_: str) -> None:
        raise error

    monkeypatch.setattr(scene.cloud.machine_pools, "find", fail)
    Training(scene).poke()
    assert ["persistent_resource_id" in spec["job_spec"] for spec in scene.cloud.jobs.specs] == [False]


def test_a_pool_whose_machines_failed_is_not_kept(scene: Scene) -> None:
    scene.open()
    scene.cloud.machine_pools.fail(POOL_ID, "the machines are gone")
    assert states(scene, KeepMachinePoolOperator)


def test_days_are_those_of_the_file(scene: Scene) -> None:
    """A retry after a stockout does not make the night longer."""
    scene.step(OpenMachinePoolOperator)
    scene.cloud.machine_pools.fail(POOL_ID, "no machines")
    scene.pass_hours(1)
    with pytest.raises(JobError):
        scene.step(OpenMachinePoolOperator)
    scene.cloud.machine_pools.vanish(POOL_ID)
    assert (
        scene.open()["closes"]
        == datetime.fromtimestamp(int((scene.opened + timedelta(hours=3)).timestamp()), UTC).isoformat()
    )
