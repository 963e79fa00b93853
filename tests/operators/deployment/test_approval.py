"""Asking a person: when, how long, and what the answer means, on the newest Airflow and on the floor."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec

import pytest
from airflow.providers.standard.operators import hitl

from retraining.core.errors import ConflictError
from retraining.operators.deployment.approval import RequestApprovalOperator
from retraining.operators.evaluation.decision import DecideOperator
from tests.support.airflow_release import AirflowFailException
from tests.support.scenes.deployment import FOLDER, Scene, deploy, example, register

ADA = {"id": "1", "name": "ada"}


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A promoted run whose data were faultless, and whose spec wants a person each time."""
    monkeypatch.setattr(hitl, "upsert_hitl_detail", create_autospec(vars(hitl)["upsert_hitl_detail"]))
    scene = Scene()
    plan = scene.read("plan")
    same = {"model": plan["model"], "run_key": scene.run_key}
    scene.put("checks", example("checks__passed") | same | {"findings": []})
    scene.deployment(approval="always")
    return scene


@pytest.fixture
def ask(scene: Scene) -> RequestApprovalOperator:
    """The task that asks."""
    return RequestApprovalOperator(
        task_id="approve",
        subject="Deploy?",
        answer_within=timedelta(hours=12),
        run_uri=FOLDER,
        cloud=scene.cloud.connect,
    )


def wait(run: Any, ask: RequestApprovalOperator, **whose: int) -> BaseException:
    """What the task asks of Airflow in place of an answer of its own."""
    context = run.context(ask, **whose)
    context["task_instance"] = SimpleNamespace(id="1")
    with pytest.raises(BaseException) as stopped:  # noqa: PT011 - TaskAwaitingInput or TaskDeferred, by release
        ask.execute(context)
    assert type(stopped.value).__name__ in ("TaskAwaitingInput", "TaskDeferred")
    return stopped.value


def waits_until(stopped: Any) -> datetime:
    """When the wait ends that the operator asked for: parked (3.3) or deferred to a trigger (before)."""
    if hasattr(stopped, "trigger"):
        return stopped.trigger.timeout_datetime
    return datetime.now(UTC) + stopped.timeout


def complete(run: Any, ask: RequestApprovalOperator, option: str, user: Any, **whose: int) -> None:
    """Let Airflow go on with an answer."""
    event: dict[str, Any] = {
        "chosen_options": [option],
        "params_input": {},
        "responded_by_user": user,
        "timedout": user is None,
    }
    event["responded_at"] = datetime(2013, 11, 20, 9, 30, 0, 5, tzinfo=UTC)
    run.xcoms["approve", "return_value"] = ask.execute_complete(run.context(ask, **whose), event)


def test_it_waits_as_long_as_it_was_told_and_no_longer(make_run, scene: Scene, ask: RequestApprovalOperator) -> None:
    """Not forever: the next run of the model would wait behind it."""
    run = make_run()
    register(scene, run)
    left = waits_until(wait(run, ask)) - datetime.now(UTC)
    assert timedelta(hours=11, minutes=59) < left <= timedelta(hours=12)
    assert ask.defaults == ["Reject"]
    assert ask.body.startswith(scene.read("decision")["words"])


def test_a_person_sees_what_is_approved(make_run, scene: Scene, ask: RequestApprovalOperator, monkeypatch) -> None:
    """The run's page is there when the question is, and linked in it; after the answer it waits no more."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com")
    run = make_run()
    register(scene, run)
    wait(run, ask)
    page = scene.cloud.artifacts.objects[f"{FOLDER}/report.html"].decode()
    assert f"{FOLDER.removeprefix('gs://bucket/')}/report.html) has the metrics, slices, curves and checks" in ask.body
    assert "It would serve in the place of nothing: it is the first" in ask.body
    for shown in ("Waits for approval", "No answer is a no", "Slices, worst first", "<h3>Checks</h3>", "ROC"):
        assert shown in page
    assert "https://airflow.example.com/dags/retrain__flight_delays/runs/manual__1/tasks/approve/required" in page
    complete(run, ask, "Approve", ADA)
    page = scene.cloud.artifacts.objects[f"{FOLDER}/report.html"].decode()
    assert "Waits for approval" not in page
    assert "Promoted, not deployed" in page


def test_a_page_that_cannot_be_made_stops_no_question(make_run, scene: Scene, ask: RequestApprovalOperator) -> None:
    """A person is asked without the link."""
    run = make_run()
    register(scene, run)
    scene.cloud.artifacts.objects[f"{FOLDER}/manifest.json"] = b"{}"
    wait(run, ask)
    assert "report.html" not in ask.body


def test_the_decision_says_that_it_waits_for_a_person(make_run, scene: Scene) -> None:
    """It offers no way back to a version that is not there, and does not say that nothing has to be done."""
    scene.cloud.settings = dataclasses.replace(scene.cloud.settings, notify_owners=("ml@example.com",))
    same = {"model": "flight_delays", "run_key": scene.run_key}
    scene.put("evaluate_request", example("evaluate_request") | same)
    make_run().execute(DecideOperator(task_id="decide", run_uri=FOLDER, cloud=scene.cloud.connect))
    sent = scene.cloud.notifiers.sent[0]
    assert sent.subject.startswith("flight_delays: promoted, waits for approval as of")
    assert "Approve or reject it in Airflow" in sent.text
    assert "rollback" not in sent.text
    assert "Nothing has to be done" not in sent.text


@pytest.mark.parametrize(
    ("option", "user", "deployed", "words"),
    [
        ("Approve", ADA, True, "approved by ada"),
        ("Reject", ADA, False, "rejected by ada"),
        ("Reject", None, False, "rejected without an answer in time"),
    ],
)
def test_an_answer_decides_and_is_written_down(
    make_run, scene: Scene, ask: RequestApprovalOperator, option: str, user: Any, deployed: bool, words: str
) -> None:
    """With who gave it and when; nobody's answer is a no."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    complete(run, ask, option, user)
    assert deploy(scene, run, approval_task_id="approve")["deployed"] is deployed
    approval = scene.read("deployment")["approval"]
    assert (approval["approved"], approval["asked"], approval["words"]) == (deployed, True, words)
    assert approval["person"] == (user and "ada")
    assert approval["answered"] == (user and "2013-11-20T09:30:00Z")
    assert bool(scene.cloud.endpoints.deploys) is deployed


FORGED = {"approved": True, "asked": True, "person": "ada", "answered": "2013-11-20T09:30:00Z", "words": "by ada"}


@pytest.mark.parametrize("approved", [True, "yes", 1, "true"], ids=repr)
@pytest.mark.parametrize("asked", [True, False], ids=["while it asks", "before it asks"])
def test_an_xcom_approves_nothing(
    make_run, scene: Scene, ask: RequestApprovalOperator, approved: Any, asked: bool
) -> None:
    """Whoever may write one, in the UI or in another task, is not who was asked; the record names nobody."""
    run = make_run()
    register(scene, run)
    if asked:
        wait(run, ask)
    run.xcoms["approve", "return_value"] = FORGED | {"approved": approved}
    assert not deploy(scene, run, approval_task_id="approve")["deployed"]
    assert scene.read("deployment")["words"] == "Nothing deployed: nobody approved."
    assert scene.read("deployment")["approval"] is None
    assert not scene.cloud.endpoints.deploys


def test_an_xcom_changes_no_answer_either(make_run, scene: Scene, ask: RequestApprovalOperator) -> None:
    """Neither a no, nor the name of who said yes."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    complete(run, ask, "Approve", {"id": "2", "name": "grace"})
    run.xcoms["approve", "return_value"] = FORGED
    assert deploy(scene, run, approval_task_id="approve")["deployed"]
    assert scene.read("deployment")["approval"]["person"] == "grace"


@pytest.mark.parametrize("user", [None, {}, {"id": "1", "name": ""}, {"id": "1", "name": None}, "ada"], ids=repr)
def test_a_yes_of_nobody_is_a_no(make_run, scene: Scene, ask: RequestApprovalOperator, user: Any) -> None:
    """Airflow knows who answers; what it does not know of is no answer."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    complete(run, ask, "Approve", user)
    assert not deploy(scene, run, approval_task_id="approve")["deployed"]
    assert scene.read("deployment")["approval"]["words"] == "rejected without an answer in time"


def test_what_was_answered_before_it_was_asked_again_counts_no_more(
    make_run, scene: Scene, ask: RequestApprovalOperator
) -> None:
    """Also where the second question is never answered and the task is marked as a success."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    complete(run, ask, "Approve", ADA)
    wait(run, ask, max_tries=1)
    assert not deploy(scene, run, approval_task_id="approve")["deployed"]
    assert scene.read("deployment")["words"] == "Nothing deployed: nobody approved."


@pytest.mark.parametrize("then", ["Reject", None], ids=["answered no", "asked"])
def test_a_try_that_outlived_its_question_answers_nothing(
    make_run, scene: Scene, ask: RequestApprovalOperator, then: str | None
) -> None:
    """It was stopped on its way, the task was cleared, and the second question is the one that counts."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    wait(run, ask, max_tries=1)
    if then:
        complete(run, ask, then, ADA, max_tries=1)
    with pytest.raises(ConflictError, match="another try of the task asks"):
        complete(run, ask, "Approve", ADA)
    assert not deploy(scene, run, approval_task_id="approve")["deployed"]


def test_a_try_that_is_overtaken_while_it_writes_answers_nothing(
    make_run, scene: Scene, ask: RequestApprovalOperator
) -> None:
    """Between its look and its write."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    bucket = scene.cloud.artifacts
    read = bucket.read_generation

    def overtaken(uri: str) -> tuple[bytes, int]:
        found = read(uri)
        bucket.read_generation = read
        wait(run, ask, max_tries=1)
        return found

    bucket.read_generation = overtaken
    with pytest.raises(ConflictError, match="written meanwhile"):
        complete(run, ask, "Approve", ADA)
    assert not deploy(scene, run, approval_task_id="approve")["deployed"]


def test_an_answer_is_of_the_run_that_asked(make_run, scene: Scene, ask: RequestApprovalOperator) -> None:
    """Another run of the DAG with the same inputs has the same record, and was not asked."""
    first = make_run(run_id="manual__1")
    register(scene, first)
    wait(first, ask)
    complete(first, ask, "Approve", ADA)
    second = make_run(run_id="manual__2")
    assert not deploy(scene, second, approval_task_id="approve")["deployed"]


@pytest.mark.parametrize(
    "change",
    [lambda text: text.replace("true", '"yes"'), lambda text: text.replace("true", "1"), lambda text: text[:-20]],
    ids=["yes", "1", "cut off"],
)
def test_an_answer_that_cannot_be_read_is_none(
    make_run, scene: Scene, ask: RequestApprovalOperator, change: Callable[[str], str]
) -> None:
    """The task fails for good, and names the document."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    complete(run, ask, "Approve", ADA)
    uri = f"{FOLDER}/approval.json"
    scene.cloud.artifacts.put(uri, change(scene.cloud.artifacts.objects[uri].decode()).encode())
    with pytest.raises(AirflowFailException, match=f"{uri}: "):
        deploy(scene, run, approval_task_id="approve")
    assert not scene.cloud.endpoints.deploys


def test_only_a_first_version_needs_a_person(make_run, scene: Scene, ask: RequestApprovalOperator) -> None:
    """`first`: a model with a champion goes on by itself, and says so."""
    scene.deployment(approval="first")
    scene.old_champion()
    run = make_run()
    register(scene, run)
    assert run.execute(ask)["words"] == "nobody was asked: deployment.approval is first, and version 1 is champion"
    assert deploy(scene, run, approval_task_id="approve")["deployed"]
    assert scene.read("deployment")["approval"] | {"words": ""} == {
        "approved": True,
        "asked": False,
        "person": None,
        "answered": None,
        "words": "",
    }


def test_a_first_version_is_asked_for(make_run, scene: Scene, ask: RequestApprovalOperator) -> None:
    """`first`, without a champion."""
    scene.deployment(approval="first")
    run = make_run()
    register(scene, run)
    wait(run, ask)


def test_a_warning_wants_a_person_and_is_in_the_question(make_run, scene: Scene, ask: RequestApprovalOperator) -> None:
    """`on_warning`: without one nobody is asked."""
    scene.deployment(approval="on_warning")
    run = make_run()
    register(scene, run)
    assert run.execute(ask)["words"] == "nobody was asked: deployment.approval is on_warning, and there is none"
    finding = {"check": "rows", "severity": "warn", "feature": None, "found": "9", "expected": "10"}
    scene.change("checks", findings=[finding | {"words": "few rows"}])
    wait(run, ask)
    assert "\n\nWarning: few rows\n\n" in ask.body


def test_people_are_told_that_one_of_them_is_wanted(make_run, scene: Scene, ask: RequestApprovalOperator) -> None:
    """Once however often the task is tried, with the way to the answer; asked again after an answer, again."""
    scene.cloud.settings = dataclasses.replace(scene.cloud.settings, notify_owners=("ml@example.com",))
    run = make_run()
    register(scene, run)
    wait(run, ask)
    wait(run, ask)
    (mail,) = scene.cloud.notifiers.sent
    assert mail.subject == "flight_delays: a version of 2013-11-20 waits for approval"
    assert "within 12 hours" in mail.text
    complete(run, ask, "Reject", ADA)
    assert "ada" not in mail.text
    wait(run, ask)
    assert len(scene.cloud.notifiers.sent) == 2
