"""People are told once: through retries, clearing, two at once and deaths; and no task fails for it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator

from retraining.core.documents import Notification
from retraining.core.notification import notices
from retraining.core.notification.notices import DagRun, Notice
from retraining.core.spec.notify import Notify
from retraining.operators.airflow import notification
from retraining.operators.airflow.failures import KIND_KEY
from retraining.operators.airflow.notification import TellFailure, TellRecovery, settle, tell
from retraining.operators.ending.conclusion import ConcludeRunOperator
from retraining.operators.evaluation.decision import DecideOperator
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.bucket import Killed
from tests.support.fakes.bucket import nothing as nothing_happens
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.notifiers import nothing
from tests.support.scenes.deployment import FOLDER, Scene, example

MODEL = "flight_delays"
STATE = "gs://bucket/notifications/flight_delays/failure-retrain__flight_delays.json"
RUN = DagRun(base_url="https://airflow.example.com", dag_id="retrain__flight_delays", run_id="manual__1")


@pytest.fixture
def cloud() -> FakeCloud:
    """An owner and a channel, of all models."""
    return with_people(FakeCloud())


def with_people(cloud: FakeCloud) -> FakeCloud:
    """The same, where the environment names whom to tell."""
    names = {"notify_owners": ("ml@example.com",), "notify_channels": ("team_channel",)}
    cloud.settings = dataclasses.replace(cloud.settings, **names)
    return cloud


def failure(task_id: str = "train", kind: str | None = "JobError") -> Notice:
    """What `conclude` says of a failed run."""
    return notices.of_failure(MODEL, RUN, [task_id], [], kind, "")


def context(make_run: Any, task_id: str = "conclude", run_id: str = "manual__1", try_number: int = 1) -> Any:
    """A try of a task."""
    return make_run(run_id=run_id).context(BaseOperator(task_id=task_id), try_number=try_number)


def test_each_is_told_once_however_often_it_is_said(cloud: FakeCloud, make_run) -> None:
    """A mail and a post; not again by a retry, a cleared task, or the next night."""
    for run_id, try_number in (("night 1", 1), ("night 1", 2), ("night 2", 1)):
        tell(cloud.connect, context(make_run, run_id=run_id, try_number=try_number), failure)
    assert [sent.connection_id for sent in cloud.notifiers.sent] == ["smtp_default", "team_channel"]
    assert cloud.notifiers.sent[0].to == "ml@example.com"
    assert "retrain__flight_delays failed" in cloud.notifiers.sent[0].subject


def test_another_cause_and_one_that_came_back_are_told(cloud: FakeCloud, make_run) -> None:
    """It fails elsewhere; then it was well, and fails there again."""
    tell(cloud.connect, context(make_run), failure)
    tell(cloud.connect, context(make_run, run_id="2"), lambda: failure("export"))
    settle(cloud.connect, MODEL, "retrain__flight_delays", "failure", "budget")
    tell(cloud.connect, context(make_run, run_id="3"), lambda: failure("export"))
    assert len(cloud.notifiers.sent) == 6


def test_two_at_once_tell_once(cloud: FakeCloud, make_run) -> None:
    """While the first one sends, the second comes along."""
    seen = []

    def second(done: bool) -> None:
        cloud.notifiers.around = nothing
        seen.append(done)
        tell(cloud.connect, context(make_run, run_id="another"), failure)

    cloud.notifiers.around = second
    tell(cloud.connect, context(make_run), failure)
    assert seen == [False]
    assert len(cloud.notifiers.sent) == 2


@pytest.mark.parametrize("change", [1, 2, 3])
@pytest.mark.parametrize("done", [False, True])
def test_whoever_dies_at_a_write_is_followed_by_its_retry(
    cloud: FakeCloud, make_run, change: int, *, done: bool
) -> None:
    """Nothing is lost; what may come twice, for want of its record, is one message, and as a mail it has one id."""

    def die(number: int, was_done: bool) -> None:
        if (number, was_done) == (change, done):
            raise Killed

    cloud.artifacts.around = die
    try:
        tell(cloud.connect, context(make_run), failure)
    except Killed:
        cloud.artifacts.around = nothing_happens
        tell(cloud.connect, context(make_run, try_number=2), failure)
    told = [sent.connection_id for sent in cloud.notifiers.sent]
    assert set(told) == {"smtp_default", "team_channel"}
    assert len(told) <= (3 if not done else 2)
    assert len({sent.message_id for sent in cloud.notifiers.sent if sent.message_id}) == 1
    assert Notification.parse(cloud.artifacts.objects[STATE]).state == "told"


def test_a_channel_that_is_broken_fails_nothing_and_is_tried_at_the_next_occasion(
    cloud: FakeCloud, make_run, caplog: pytest.LogCaptureFixture
) -> None:
    """The log and the record say why; the owner is told once all the same."""
    cloud.notifiers.broken = {"team_channel"}
    with caplog.at_level(logging.WARNING):
        tell(cloud.connect, context(make_run), failure, FOLDER)
    assert "team_channel is not told" in caplog.text
    for uri in (STATE, f"{FOLDER}/notifications/failure.json"):
        found = Notification.parse(cloud.artifacts.objects[uri])
        assert found.failed == {"channel:team_channel": "connection team_channel: AirflowNotFoundException"}
        assert b"ml@example.com" not in cloud.artifacts.objects[uri]
    cloud.notifiers.broken = set()
    tell(cloud.connect, context(make_run, run_id="night 2"), failure)
    assert [sent.connection_id for sent in cloud.notifiers.sent] == ["smtp_default", "team_channel"]


def test_a_notifier_of_the_teams_own_is_told_once_and_fails_nothing(make_run, monkeypatch) -> None:
    """As a channel is: by the model's file, and where it fails it is tried again at the next occasion."""
    cloud = FakeCloud()
    monkeypatch.setattr(notification, "notify_of", lambda _model: Notify(notifiers=("pager",)))
    cloud.notifiers.broken = {"notifier:pager"}
    tell(cloud.connect, context(make_run), failure, FOLDER)
    assert Notification.parse(cloud.artifacts.objects[STATE]).failed.keys() == {"notifier:pager"}
    cloud.notifiers.broken = set()
    for run_id in ("night 2", "night 3"):
        tell(cloud.connect, context(make_run, run_id=run_id), failure)
    (sent,) = cloud.notifiers.sent
    assert "retrain__flight_delays failed" in sent.subject
    assert sent.message_id


def test_nothing_is_kept_where_nobody_is_told(make_run) -> None:
    """As before there were messages."""
    cloud = FakeCloud()
    tell(cloud.connect, context(make_run), failure, FOLDER)
    assert not cloud.artifacts.objects


@pytest.mark.parametrize("broken", ["settings", "bucket", "templates", "words"])
def test_no_task_fails_for_a_message(cloud: FakeCloud, make_run, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever breaks."""

    def boom(*_: Any, **__: Any) -> Any:
        raise RuntimeError("boom")

    if broken == "bucket":
        monkeypatch.setattr(cloud.artifacts, "read_generation", boom)
    if broken == "templates":
        monkeypatch.setattr("retraining.operators.airflow.notification.render_message", boom)
    tell(boom if broken == "settings" else cloud.connect, context(make_run), boom if broken == "words" else failure)
    settle(boom if broken == "settings" else cloud.connect, MODEL, "retrain__flight_delays", "failure")


def conclude(
    cloud: FakeCloud,
    make_run,
    states: Mapping[str, str | None],
    xcoms: dict[Any, Any] | None = None,
    told: Mapping[str, str | None] | None = None,
) -> Any:
    """The end of a run whose tasks ended so; `told`: as Airflow lists them, where that differs."""
    with DAG(dag_id="retrain__flight_delays", schedule=None):
        for task_id in states:
            BaseOperator(task_id=task_id)
        task = ConcludeRunOperator(task_id="conclude", run_uri=FOLDER, cloud=cloud.connect)
    given = make_run(xcoms=dict(xcoms or {})).context(task)
    given["ti"].get_task_states = lambda **asked: dict.fromkeys(asked["run_ids"], told or states)
    return task.execute(given)


def test_conclude_tells_of_a_failed_run_and_that_it_is_over(cloud: FakeCloud, make_run) -> None:
    """Of a task whose worker died too, which says nothing itself."""
    failed = {"plan": "success", "train": "failed", "evaluate": "upstream_failed"}
    for _ in range(2):
        with pytest.raises(AirflowFailException):
            conclude(cloud, make_run, failed)
    assert "Failed: train." in cloud.notifiers.sent[0].text
    assert "worker may have died" in cloud.notifiers.sent[0].text
    conclude(cloud, make_run, dict.fromkeys(failed, "success"))
    assert Notification.parse(cloud.artifacts.objects[STATE]).state == "over"
    assert len(cloud.notifiers.sent) == 2


def test_of_a_mapped_task_the_run_follows_the_instance_that_came_off_worst(cloud: FakeCloud, make_run) -> None:
    """Airflow lists its instances by number, and gives what they left as a list."""
    states = {"plan": "success", "train": None}
    run = {"plan": "success", "train_0": "success", "train_1": "failed", "train_10": "success"}
    with pytest.raises(AirflowFailException, match="train"):
        conclude(cloud, make_run, states, {("train", KIND_KEY): [None, "BudgetError"]}, told=run)
    assert cloud.notifiers.sent[0].subject.endswith("more than its budget")
    conclude(cloud, make_run, states, told={**run, "train_1": "success"})
    with pytest.raises(AirflowFailException):
        conclude(cloud, make_run, states, told={"plan": "success", "train_0": "success", "train_1": None})
    with pytest.raises(AirflowFailException):
        conclude(cloud, make_run, states, told={"plan": "success"})


def test_a_run_over_its_budget_is_told_as_such(cloud: FakeCloud, make_run) -> None:
    """By the class that the refused plan left."""
    with pytest.raises(AirflowFailException):
        conclude(cloud, make_run, {"plan": "failed"}, {("plan", KIND_KEY): "BudgetError"})
    assert cloud.notifiers.sent[0].subject.endswith("more than its budget")


def test_a_failed_task_leaves_the_class_of_its_error(cloud: FakeCloud, make_run) -> None:
    """For `conclude`; Airflow calls `execute` by its argument's name."""
    run = make_run(xcoms={})
    with pytest.raises(AirflowFailException):
        DecideOperator(task_id="decide", run_uri=FOLDER, cloud=cloud.connect).execute(
            context=run.context(BaseOperator(task_id="decide"))
        )
    assert run.xcoms["decide", KIND_KEY] == "ContractError"


def test_a_decision_is_told_once_also_when_it_is_taken_again(make_run) -> None:
    """And stands in the run's record."""
    scene = Scene()
    cloud = with_people(scene.cloud)
    same = {"model": MODEL, "run_key": scene.run_key}
    scene.put("evaluate_request", example("evaluate_request") | same)
    for try_number in (1, 2):
        task = DecideOperator(task_id="decide", run_uri=FOLDER, cloud=cloud.connect)
        make_run().execute(task, try_number=try_number)
    assert [": promoted as of" in sent.subject for sent in cloud.notifiers.sent] == [True, True]
    record = Notification.parse(cloud.artifacts.objects[f"{FOLDER}/notifications/decision.json"])
    assert (record.cause, record.failed, len(record.told)) == ("promote", {}, 2)


def test_callbacks_tell_of_dags_that_nothing_concludes(cloud: FakeCloud, make_run) -> None:
    """The monitor's: by the class under the error that Airflow is shown; over with the last task's success."""
    for try_number in (1, 2):
        given = make_run(dag_id="monitor__flight_delays").context(
            BaseOperator(task_id="measure"), try_number=try_number
        )
        error = AirflowFailException("x")
        error.__cause__ = ValueError("row 17 of ada")
        given["exception"] = error
        TellFailure(cloud=cloud.connect).notify(given)
    assert len(cloud.notifiers.sent) == 2
    assert "Failed: measure." in cloud.notifiers.sent[0].text
    assert "row 17" not in str(cloud.notifiers.sent)
    TellRecovery(cloud=cloud.connect).notify(given)
    uri = STATE.replace("failure-retrain__flight_delays", "failure-monitor__flight_delays.measure")
    assert Notification.parse(cloud.artifacts.objects[uri]).state == "over"


def test_a_dag_of_all_models_tells_the_environments_people(cloud: FakeCloud, make_run) -> None:
    """And that of the model that a form names."""
    for dag_id, params in (("maintain", {}), ("rollback", {"model": MODEL})):
        given = make_run(dag_id=dag_id, params=params).context(BaseOperator(task_id="delete"))
        given["exception"] = ValueError()
        TellFailure(cloud=cloud.connect).notify(given)
    subjects = [sent.subject for sent in cloud.notifiers.sent if sent.to]
    assert subjects == ["all models: a run of maintain failed", "flight_delays: a run of rollback failed"]
