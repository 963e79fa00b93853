"""What people and the ledger are told of a run that ended as nothing was new, and of one that went on all the same."""

from __future__ import annotations

import json
from typing import Any

from retraining.core.documents import Checks, Decision, Ledger, Plan
from retraining.core.monitoring.ledger import result_of_run
from retraining.core.report.page import headline, outcome
from retraining.core.report.run import read_reported_run
from retraining.core.report.terminal import verdict
from tests.support.scenes.deployment import example

REPEATED = {
    "run_key": "20131119t030000z-0123456789ab",
    "words": "Nothing new since run 20131119t030000z-0123456789ab.",
}


def stored(*names: str) -> dict[str, Any]:
    """Documents of one run by kind, whose checks found that it repeats another."""
    plan = example("plan__scheduled")
    same = {"model": plan["model"], "run_key": plan["run_key"]}
    found = {name.split("__")[0]: example(name) | same for name in names}
    return {"plan": plan, "checks": example("checks__passed") | same | {"repeats": REPEATED}, **found}


def test_a_run_that_ended_says_what_it_would_repeat() -> None:
    """On its page and in a shell; nothing is waited for."""
    run = read_reported_run(stored())
    assert (headline(run), outcome(run), verdict(run)) == ("Nothing new", REPEATED["words"], "nothing new")
    assert run.next_task is None
    assert run.why_missing("report") == REPEATED["words"]


def test_a_run_that_was_cleared_behind_it_goes_on() -> None:
    """Its export has begun a run like any other."""
    run = read_reported_run(stored("manifest__three_spans"))
    assert run.repetition is None
    assert run.next_task is not None


def result(decision: str | None) -> str:
    """What the ledger says of the order that started it."""
    documents = stored(*([decision] if decision else []))
    plan, checks = Plan.parse(json.dumps(documents["plan"])), Checks.parse(json.dumps(documents["checks"]))
    decided = Decision.parse(json.dumps(documents["decision"])) if decision else None
    row = Ledger.parse(json.dumps(example("ledger__retrain")))
    rest = dict.fromkeys(("evaluation", "registration", "deployment"))
    return result_of_run(row, plan, checks=checks, decision=decided, state="running", **rest).state


def test_the_ledger_counts_it_as_rejected_unless_a_person_let_it_go_on() -> None:
    """Then its own decision counts."""
    assert result(None) == "rejected"
    assert result("decision__reject") == "rejected"
    assert result("decision__promote") == "running"
