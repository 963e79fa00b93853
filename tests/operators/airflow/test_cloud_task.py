"""The cloud that a task asks is an argument: stored nowhere, made when the task runs, whatever became of the task."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from retraining.core.errors import ConflictError, ContractError, JobError, RetrainingError
from retraining.core.placement import Caller
from retraining.hooks.cloud import Cloud
from retraining.operators.airflow.cloud_task import SECONDS_KEY, CloudOperator, CloudSensor, RunTask
from retraining.operators.airflow.failures import FAILURE_KEY, KIND_KEY
from retraining.operators.deployment.approval import RequestApprovalOperator
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException, DagSerialization
from tests.support.fakes.cloud import FakeCloud

FAKE = FakeCloud()


def fake_cloud() -> FakeCloud:
    """A function at the top of a module, as a DAG file would give it."""
    return FAKE


def no_cloud() -> FakeCloud:
    """What must not be called while a DAG is parsed or stored."""
    raise AssertionError("the cloud was made before the task ran")


class AskOperator(RunTask, CloudOperator):
    """Gives back what it was given; fails as it is told."""

    def __init__(self, *, error: RetrainingError | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error = error

    def act(self, cloud: Any, context: Any) -> Any:
        """Fail, or say which cloud this is."""
        del context
        if self.error:
            raise self.error
        return cloud


class AskSensor(RunTask, CloudSensor):
    """Never at its end."""

    def look(self, cloud: Any, context: Any) -> bool:
        """Note the cloud."""
        del context
        self.seen = cloud
        return False


def dag_with(**cloud: Any) -> DAG:
    """A DAG with a task of each kind, and a mapped one."""
    with DAG("d", schedule=None, default_args={"retry_delay": timedelta(seconds=1)}) as dag:
        AskOperator(task_id="operator", **cloud)
        AskSensor(task_id="sensor", **cloud)
        RequestApprovalOperator(task_id="approve", subject="?", answer_within=timedelta(hours=1), **cloud)
    return dag


def test_a_stored_dag_does_not_know_which_cloud_its_tasks_ask() -> None:
    """The argument leaves no trace in it, and nothing is called while it is parsed and stored."""
    assert DagSerialization.to_dict(dag_with(cloud=no_cloud)) == DagSerialization.to_dict(dag_with())


@pytest.mark.parametrize("how", ["default_args", "partial"])
def test_a_cloud_for_many_tasks_is_stored_alike_each_time(how: str) -> None:
    """As a function's text, which is the same in every process: the DAG's version does not grow."""
    with DAG("d", schedule=None, default_args={"cloud": no_cloud} if how == "default_args" else {}) as dag:
        task = AskOperator(task_id="one")
        given = {} if how == "default_args" else {"cloud": no_cloud}
        AskOperator.partial(task_id="many", **given).expand(run_uri=["gs://a", "gs://b"])
    assert task.cloud is (no_cloud if how == "default_args" else Cloud)
    stored = json.dumps(DagSerialization.to_dict(dag), default=repr)
    assert "the cloud was made before the task ran" in stored
    assert " at 0x" not in stored


def test_each_mapped_task_asks_the_cloud_that_was_given() -> None:
    """Also where Airflow makes it from its parts on a worker."""
    with DAG("d", schedule=None):
        mapped = AskOperator.partial(task_id="many", cloud=fake_cloud).expand(run_uri=["gs://a", "gs://b"])
    task: Any = mapped.unmap({"run_uri": "gs://b"})
    assert (task.run_uri, task.cloud()) == ("gs://b", FAKE)


@pytest.mark.parametrize("kind", [AskOperator, AskSensor])
def test_a_copied_task_asks_the_same_cloud(kind: Any) -> None:
    """A worker runs a copy; what makes the cloud can go to another process too."""
    task = kind(task_id="one", cloud=fake_cloud)
    assert copy.deepcopy(task).cloud is task.prepare_for_execution().cloud is fake_cloud
    assert pickle.loads(pickle.dumps(Cloud)) is Cloud  # noqa: S301 - of this very process


def test_an_operator_leaves_its_duration(make_run) -> None:
    """In XCom, where the report finds it; its cloud is the one that was given."""
    run = make_run()
    assert run.execute(AskOperator(task_id="one", cloud=fake_cloud, run_uri="gs://a")) is FAKE
    assert run.xcoms["one", SECONDS_KEY] >= 0


@pytest.mark.parametrize(
    ("error", "raised"), [(ContractError, AirflowFailException), (JobError, JobError), (ConflictError, ConflictError)]
)
def test_what_a_retry_cannot_mend_fails_for_good(make_run, error: Any, raised: type[Exception]) -> None:
    """The others are raised as they are, and leave no duration."""
    run = make_run()
    with pytest.raises(raised, match="where: found"):
        run.execute(AskOperator(task_id="one", cloud=fake_cloud, run_uri="gs://a", error=error("where", "found")))
    assert set(run.xcoms) == {("one", KIND_KEY), ("one", FAILURE_KEY)}


@pytest.mark.parametrize("kind", [AskOperator, AskSensor])
def test_the_cloud_knows_which_task_of_which_model_asks(make_run, kind: type[Any]) -> None:
    """With the labels of the model's file, which its DAG gives to all tasks."""
    cloud, labels = FakeCloud(), {"cost_center": "4711"}
    with DAG("retrain__flight_delays", default_args={"labels": labels}):
        task = kind(task_id="snapshot", cloud=cloud.connect, run_uri="gs://a")
    with contextlib.suppress(AirflowRescheduleException):
        make_run(dag_id="retrain__flight_delays").execute(task)
    names = {"retraining-model": "flight_delays", "retraining-task": "snapshot"}
    assert cloud.caller == Caller(labels=labels, names=names)


def test_a_sensor_gives_its_slot_back_for_as_long_as_the_settings_say(make_run) -> None:
    """And asks a cloud of its own at each poke: one."""
    made: list[FakeCloud] = []

    def connect() -> FakeCloud:
        made.append(FakeCloud())
        return made[-1]

    task, run = AskSensor(task_id="one", cloud=connect, run_uri="gs://a"), make_run()
    for pokes in (1, 2):
        with pytest.raises(AirflowRescheduleException):
            run.execute(task)
        assert len(made) == pokes
        assert task.seen is made[-1]
    assert task.poke_interval == FAKE.settings.wake_interval_s
