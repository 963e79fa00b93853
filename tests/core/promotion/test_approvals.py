"""When a person is asked, and what the answer means."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from retraining.core.data import leakage
from retraining.core.documents import Checks
from retraining.core.documents.answers import Serving
from retraining.core.documents.checks import Finding
from retraining.core.promotion import approvals
from tests.support.small_decision import decide, scores
from tests.support.small_model import make_plan, make_spec
from tests.support.small_rollout import version

WARNED = ["a day is left out"]
TIME = datetime(2013, 11, 20, 9, 30, 1, 5, tzinfo=UTC)


def plan(approval):
    """Of a run whose spec says when a person is asked."""
    return make_plan(make_spec(deployment={"approval": approval}))


@pytest.mark.parametrize(
    ("approval", "champion", "warned", "reason"),
    [
        ("always", version("3"), [], None),
        (True, version("3"), [], None),
        ("never", None, WARNED, "deployment.approval is never"),
        (False, None, WARNED, "deployment.approval is never"),
        ("first", None, [], None),
        ("first", version("3"), WARNED, "deployment.approval is first, and version 3 is champion"),
        ("on_warning", None, WARNED, None),
        ("on_warning", None, [], "deployment.approval is on_warning, and there is none"),
    ],
)
def test_a_person_is_asked_when_the_spec_wants_one(approval, champion, warned, reason):
    assert approvals.reason_not_to_ask(plan(approval), champion, warned) == reason


def test_warnings_are_of_the_data_and_of_the_comparison():
    found = Finding(check="rows", severity="warn", feature=None, found="9", expected="10", message="few rows")
    small = make_plan()
    checks = Checks(model=small.model, run_key=small.run_key, passed=True, findings=(found,))
    proven = decide(small, scores(0.8), scores(0.7))
    unproven = decide(
        small,
        scores(0.8),
        scores(0.7),
        proof=leakage.Proof(missing="read the run table itself"),
        serving=Serving(skipped="it has scores alone"),
    )
    assert proven.verdict == unproven.verdict == "promote"
    assert approvals.warnings(proven, checks.model_copy(update={"findings": ()})) == []
    rows, seen, served = approvals.warnings(unproven, checks)
    assert rows == "few rows"
    assert "read the run table itself" in seen
    assert "it has scores alone" in served
    question = approvals.question(small, unproven, None, ["few rows"], "https://example.com/report.html").split("\n\n")
    assert (question[0], question[2]) == (unproven.message, "Warning: few rows")
    assert question[-1].startswith("[The run's page](https://example.com/report.html)")


@pytest.mark.parametrize(
    ("approval", "reason"),
    [
        (None, "Nothing deployed: nobody approved."),
        (approvals.answer(approved=True, person="ada", time=TIME), None),
        (approvals.answer(approved=False, person="ada", time=TIME), "Nothing deployed: rejected by ada."),
        (
            approvals.answer(approved=False, person=None, time=TIME),
            "Nothing deployed: rejected without an answer in time.",
        ),
        (approvals.not_asked("so"), None),
        (
            approvals.in_vain("Nothing deployed: so."),
            "Nothing deployed: nobody was asked, as nothing could be deployed. Nothing deployed: so.",
        ),
    ],
)
def test_an_answer_decides(approval, reason):
    assert approvals.reason_of_person(plan("always"), approval) == reason


def test_without_a_task_that_asks_only_never_deploys():
    """The file may have changed since the plan, and the DAG with it."""
    assert approvals.reason_of_person(plan("never"), None) is None
    assert approvals.reason_of_person(plan("first"), None) == "Nothing deployed: nobody approved."


def test_an_answer_says_who_and_when():
    given = approvals.answer(approved=True, person="ada", time=TIME)
    assert (given.asked, given.person, given.answered) == (True, "ada", TIME.replace(microsecond=0))
    late = approvals.answer(approved=False, person=None, time=TIME)
    assert (late.asked, late.person, late.answered) == (True, None, None)
