"""Asking a person: when, how long, and what the answer means, on the newest Airflow and on the floor."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators import hitl
from airflow.providers.standard.triggers import hitl as hitl_trigger

from retraining.core.errors import ConflictError
from retraining.operators.deployment.approval import RequestApprovalOperator
from retraining.operators.evaluation.decision import DecideOperator
from tests.support.airflow_release import AirflowFailException
from tests.support.refusals import refuses
from tests.support.scenes.deployment import FOLDER, Scene, deploy, example, register

ADA = {"id": "1", "name": "ada"}


@dataclasses.dataclass
class Airflow:
    """What Airflow holds of the task's question, whatever the id of the try: one answer, which a question deletes."""

    questions: int = 0
    answer: Any = None

    def ask(self, ti_id: Any, **question: Any) -> None:
        """As `upsert_hitl_detail`."""
        del ti_id, question
        self.questions += 1
        self.answer = None

    def give(self, option: str, name: str) -> None:
        """Let a person answer."""
        self.answer = SimpleNamespace(
            response_received=True,
            chosen_options=[option],
            params_input={},
            responded_at=datetime(2013, 11, 20, 9, 30, tzinfo=UTC),
            responded_by_user=SimpleNamespace(id="1", name=name),
        )

    def find(self, ti_id: Any) -> Any:
        """As `get_hitl_detail_content_detail`, which only Airflow's triggerer is answered."""
        del ti_id
        return self.answer or SimpleNamespace(response_received=False, chosen_options=None)


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    """Airflow's side of the question."""
    airflow = Airflow()
    monkeypatch.setattr(hitl, "upsert_hitl_detail", airflow.ask)
    monkeypatch.setattr(hitl_trigger, "get_hitl_detail_content_detail", airflow.find)
    return airflow


@pytest.fixture
def scene(airflow: Airflow) -> Scene:
    """A promoted run whose data were faultless, and whose spec wants a person each time."""
    del airflow
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


def wait(run: Any, ask: RequestApprovalOperator, **whose: int) -> Any:
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
    assert "/report.html)" in ask.body
    assert "place of nothing" in ask.body
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
    assert sent.subject.startswith("flight_delays: promoted, waits")
    assert "Approve or reject" in sent.text
    assert "rollback" not in sent.text
    assert "Nothing has to be" not in sent.text


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
    assert scene.read("deployment")["approval"]["words"].startswith("rejected without an answer")


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


def go_on(run: Any, ask: RequestApprovalOperator, trigger: Any, **whose: int) -> None:
    """Let Airflow's triggerer look once, and Airflow go on with what it finds."""
    event = asyncio.run(anext(trigger.run())).payload
    run.xcoms["approve", "return_value"] = ask.execute_complete(run.context(ask, **whose), event)


def test_an_answer_counts_that_came_before_airflow_saw_the_task_wait(
    make_run, scene: Scene, ask: RequestApprovalOperator, airflow: Airflow
) -> None:
    """Airflow takes the task for one that was killed and tries it again: the person is not asked again."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    airflow.give("Approve", "ada")
    go_on(run, ask, wait(run, ask, try_number=2).trigger, try_number=2)
    assert airflow.questions == 1
    assert deploy(scene, run, approval_task_id="approve")["deployed"]
    assert scene.read("deployment")["approval"]["words"] == "approved by ada"
    assert scene.read("deployment")["approval"]["answered"] == "2013-11-20T09:30:00Z"


def test_a_try_that_is_given_the_answer_to_an_earlier_ones_question_takes_it(
    make_run, scene: Scene, ask: RequestApprovalOperator
) -> None:
    """Airflow may keep the answer for the try after the one that it took for killed."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    complete(run, ask, "Approve", ADA, try_number=2)
    assert deploy(scene, run, approval_task_id="approve")["deployed"]


def test_a_try_that_dies_after_its_answer_asks_nobody_again(
    make_run, scene: Scene, ask: RequestApprovalOperator, airflow: Airflow
) -> None:
    """The answer stands in the record."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    complete(run, ask, "Approve", ADA)
    assert ask.execute(run.context(ask, try_number=2))["person"] == "ada"
    assert airflow.questions == 1
    assert deploy(scene, run, approval_task_id="approve")["deployed"]


def test_a_question_that_nobody_has_answered_stands(
    make_run, scene: Scene, ask: RequestApprovalOperator, airflow: Airflow
) -> None:
    """Another try waits for its answer, as long as the first would have."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    again = wait(run, ask, try_number=2)
    assert airflow.questions == 1
    assert timedelta(hours=11, minutes=59) < waits_until(again) - scene.cloud.clock.now() <= timedelta(hours=12)


def test_who_clears_the_task_is_asked_again_whatever_was_answered_meanwhile(
    make_run, scene: Scene, ask: RequestApprovalOperator, airflow: Airflow
) -> None:
    """Between an answer and its being taken: the clear is the later word."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    airflow.give("Approve", "ada")
    wait(run, ask, try_number=2, max_tries=4)
    assert airflow.questions == 2
    assert airflow.answer is None
    assert not deploy(scene, run, approval_task_id="approve")["deployed"]


def test_an_answer_to_a_question_about_another_decision_counts_not(
    make_run, scene: Scene, ask: RequestApprovalOperator, airflow: Airflow
) -> None:
    """The run's decision was taken anew while the question stood: it is asked about the new one."""
    run = make_run()
    register(scene, run)
    wait(run, ask)
    airflow.give("Approve", "ada")
    scene.change("decision", words="Promote: by other gates.")
    with pytest.raises(ConflictError, match="about another decision"):
        complete(run, ask, "Approve", ADA)
    wait(run, ask, try_number=2)
    assert airflow.questions == 2
    assert ask.body.startswith("Promote: by other gates.")
    assert not deploy(scene, run, approval_task_id="approve")["deployed"]


def test_a_question_that_never_reached_airflow_is_asked(
    make_run, scene: Scene, ask: RequestApprovalOperator, airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try died before: nobody has seen it."""

    def dies(**question: Any) -> None:
        raise ConnectionError(question["subject"])

    run = make_run()
    register(scene, run)
    with monkeypatch.context() as patch:
        patch.setattr(hitl, "upsert_hitl_detail", dies)
        with pytest.raises(ConnectionError):
            ask.execute(run.context(ask) | {"task_instance": SimpleNamespace(id="1")})
    wait(run, ask, try_number=2)
    assert airflow.questions == 1


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
    with refuses(ConflictError, found="another try"):
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
    assert mail.subject.endswith("2013-11-20 waits for approval")
    assert "within 12 hours" in mail.text
    complete(run, ask, "Reject", ADA)
    assert "ada" not in mail.text
    wait(run, ask, max_tries=4)
    assert len(scene.cloud.notifiers.sent) == 2
