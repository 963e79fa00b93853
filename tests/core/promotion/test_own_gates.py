"""Gates of a team's own: what they are given, what their answers mean, and that the decision can be taken again."""

from __future__ import annotations

import dataclasses
import time

import pytest

from retraining.core import documents as d
from retraining.core.errors import SpecError
from retraining.core.jobs import requests
from retraining.core.notification import notices
from retraining.core.notification.notices import DagRun
from retraining.core.planning import plan as planning
from retraining.core.planning.upgrades import key_changes
from retraining.core.promotion import approvals, gates, own_gates
from retraining.core.promotion.replay import decision_changes, replay_decision, unasked_gates
from retraining.core.report.run import read_reported_run
from retraining.core.report.terminal import explain_run
from retraining.core.team_code import TeamFunction
from tests.support.contracts import EXAMPLES
from tests.support.small_decision import CHAMPION, PROVEN, evaluation, scores
from tests.support.small_model import make_plan, make_spec, spec_values

OURS, THEIRS = scores(0.7, UA=(900, 0.71), AA=(300, 0.6)), scores(0.69, UA=(900, 0.65))


def function(call, sha256="c" * 64):
    """Code that was loaded."""
    return TeamFunction(call=call, sha256=sha256)


def passing(_run):
    return True, "all is well"


def failing(_run):
    return False, "Denmark loses 0.030"


def asking_plan(severity="block", call=passing):
    """A run whose model has a gate of its own."""
    gate = {"name": "no_loss", "function": "late.py:no_loss", "severity": severity}
    values = {**spec_values()["evaluation"], "gates": [gate]}
    return make_plan(make_spec(evaluation=values), gates={"no_loss": function(call)})


def judge(call, severity="block", sha256="c" * 64):
    """The gate's verdict."""
    plan = asking_plan(severity, call)
    found = call if isinstance(call, SpecError) else function(call, sha256)
    (gate,) = own_gates.judge_own_gates(plan, evaluation(plan, OURS, THEIRS), {"no_loss": found})
    return gate


def stored_decision(plan, *own):
    """The documents of a decision, with it."""
    request = requests.evaluation_job(plan, CHAMPION, proof=PROVEN).request
    judged = evaluation(plan, OURS, THEIRS)
    documents = {"plan": plan, "evaluate_request": request, "evaluation": judged}
    digests = {kind: document.digest() for kind, document in documents.items()}
    decision = gates.decide(plan, request, judged, digests, own)
    return decision, {kind: document.to_bytes() for kind, document in {**documents, "decision": decision}.items()}


def test_a_gate_is_given_numbers_of_both_models_and_no_row():
    plan = asking_plan()
    run = own_gates.run_to_judge(plan, evaluation(plan, OURS, THEIRS, deviation=0.01))
    assert (run.model, run.metric, run.higher_is_better, run.rows, run.label_rate) == ("late", "auc", True, 5000, 0.2)
    assert (run.challenger["auc"], run.champion["auc"]) == (0.7, 0.69)
    assert (run.difference.mean, run.difference.low, run.difference.confidence) == (0.013, 0.006, 0.95)
    slice_ = run.slice("carrier", "UA")
    assert (slice_.rows, slice_.challenger["auc"], slice_.champion["auc"]) == (900, 0.71, 0.65)
    assert slice_.difference.high == 0.02
    assert run.slice("carrier", "AA").champion is None
    assert run.slice("carrier", "XX") is None
    alone = own_gates.run_to_judge(plan, evaluation(plan, OURS))
    assert (alone.champion, alone.difference, alone.slices[0].champion) == (None, None, None)


def test_what_it_is_given_cannot_be_changed():
    plan = asking_plan()
    run = own_gates.run_to_judge(plan, evaluation(plan, OURS, THEIRS))
    with pytest.raises(TypeError):
        run.challenger["auc"] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.rows = 10


@pytest.mark.parametrize(
    ("severity", "call", "passed", "warns", "found"),
    [
        ("block", passing, True, False, "passes"),
        ("block", failing, False, False, "does not pass"),
        ("warn", passing, True, False, "passes"),
        ("warn", failing, True, True, "does not pass"),
    ],
    ids=["passes", "blocks", "need not warn", "warns"],
)
def test_an_answer_is_a_gate_of_the_decision(severity, call, passed, warns, found):
    gate = judge(call, severity)
    assert (gate.gate, gate.passed, gate.warns, gate.found) == ("own.no_loss", passed, warns, found)
    assert gate.message == f"no_loss: {call(None)[1]}"
    assert gate.code == "c" * 64


def raising(_run):
    raise ZeroDivisionError("no rows of Denmark")


def leaving(_run):
    raise SystemExit(1)


def sleeping(_run):
    time.sleep(20)


ANSWERS = iter(range(1000))


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (raising, "ZeroDivisionError: no rows of Denmark"),
        (leaving, "it ended the program: SystemExit: 1"),
        (sleeping, "OutOfTimeError: not done within 0.2 seconds"),
        (lambda _run: None, "it answered None; expected passes and a reason, (True, 'why')"),
        (lambda _run: True, "it answered True; expected"),
        (lambda _run: (1, "one is no truth value"), "it answered (1, 'one is no truth value'); expected"),
        (lambda _run: (True, " "), "it answered (True, ' '); expected"),
        (lambda _run: (True, f"answer {next(ANSWERS)}"), "to the same question"),
        (lambda run: run.nothing, "AttributeError"),
        (SpecError("late.yaml", "it cannot be imported: ValueError", "a file", "Correct it"), "it cannot be imported"),
    ],
    ids=["raises", "ends", "too slow", "none", "no reason", "no bool", "empty", "another", "no attribute", "no code"],
)
def test_what_does_not_answer_has_not_judged_and_takes_nothing_along(call, why, monkeypatch):
    monkeypatch.setattr(own_gates, "ANSWER_S", 0.2)
    for severity in ("block", "warn"):
        gate = judge(call, severity)
        assert (gate.passed, gate.warns) == (severity == "warn", severity == "warn")
        assert gate.found == "not judged"
        assert gate.message.startswith("no_loss: not judged, ")
        assert why in gate.message


def test_other_code_than_the_plans_has_not_judged():
    gate = judge(passing, sha256="d" * 64)
    assert not gate.passed
    assert "its file is not the one of the plan (SHA-256 dddddddddddddddd, planned cccccccccccccccc)" in gate.message


def test_a_long_reason_is_cut_and_stands_in_a_line():
    gate = judge(lambda _run: (True, "one\ntwo " + "x" * 1000))
    assert gate.message.startswith("no_loss: one two xxx")
    assert len(gate.message) == len("no_loss: ") + own_gates.MOST_CHARACTERS


@pytest.mark.parametrize(
    ("severity", "call", "verdict"),
    [("block", passing, "promote"), ("block", failing, "reject"), ("warn", failing, "promote")],
    ids=["passes", "blocks", "warns"],
)
def test_the_decision_names_it_and_is_the_same_when_it_is_taken_again(severity, call, verdict):
    plan = asking_plan(severity, call)
    asked = {"no_loss": function(call)}
    own = own_gates.judge_own_gates(plan, evaluation(plan, OURS, THEIRS), asked)
    decision, stored = stored_decision(plan, *own)
    assert decision.verdict == verdict
    assert decision.gates[-1].gate == "own.no_loss"
    assert ("Denmark" in decision.message) is (verdict == "reject")
    assert decision_changes(decision, replay_decision(stored, asked)) == []
    assert d.Decision.parse(stored["decision"]) == decision
    checks = d.Checks.parse((EXAMPLES / "checks__passed.json").read_bytes())
    warned = [text for text in approvals.warnings(decision, checks) if text.startswith("no_loss")]
    assert warned == (["no_loss: Denmark loses 0.030"] if severity == "warn" else [])
    run = read_reported_run({"plan": plan.to_json(), "decision": decision.to_json()})
    shown = {"promote": "passed" if severity == "block" else "warned", "reject": "FAILED"}[verdict]
    assert f"{shown:<9} own.no_loss: no_loss: {call(None)[1]}" in list(explain_run(run))


def test_a_decision_whose_code_is_gone_is_taken_again_with_its_stored_answer():
    plan = asking_plan(call=failing)
    own = own_gates.judge_own_gates(plan, evaluation(plan, OURS, THEIRS), {"no_loss": function(failing)})
    decision, stored = stored_decision(plan, *own)
    for there in ({}, {"no_loss": function(passing, "d" * 64)}, {"no_loss": SpecError("late.yaml", "no file")}):
        assert unasked_gates(plan, there) == ["no_loss"]
        assert decision_changes(decision, replay_decision(stored, there)) == []
    same = {"no_loss": function(passing)}
    assert unasked_gates(plan, same) == []
    assert "verdict: stored 'reject', now 'promote'" in decision_changes(decision, replay_decision(stored, same))


def test_the_plan_names_the_code_and_other_code_is_another_run():
    plan, none = asking_plan(), make_plan()
    other = make_plan(plan.spec, gates={"no_loss": function(passing, "d" * 64)})
    assert len({plan.run_key, other.run_key, none.run_key}) == 3
    assert "gates" not in none.to_json()
    assert plan.gates["no_loss"] == d.GateCode(function="late.py:no_loss", sha256="c" * 64)
    assert "gate own.no_loss (block) of late.py:no_loss, SHA-256 cccccccccccccccc" in planning.explain(plan)
    assert key_changes(plan.to_bytes(), "plan.json") == []


def test_people_are_told_its_name_and_not_its_reason():
    """A reason may name a value of the data."""
    plan = asking_plan(call=failing)
    own = own_gates.judge_own_gates(plan, evaluation(plan, OURS, THEIRS), {"no_loss": function(failing)})
    decision, _ = stored_decision(plan, *own)
    run = DagRun(base_url="", dag_id="retrain__late", run_id="one")
    notice = notices.of_decision(plan, decision, run, asks=False)
    assert notice.values["gates"] == ["own.no_loss does not pass: the run page says why"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"name": "a", "function": "a.py:f"}, {"name": "a", "function": "b.py:f"}], "the name 'a' twice"),
        ([{"name": "a", "function": "../a.py:f"}], "function"),
        ([{"name": "a", "function": "a.py:f()"}], "function"),
        ([{"name": "a", "function": "a.py:f", "severity": "quarantine"}], "severity"),
    ],
    ids=["twice", "outside", "a call", "of days"],
)
def test_what_a_file_may_not_say(entries, message):
    with pytest.raises(ValueError, match=message):
        make_spec(evaluation={**spec_values()["evaluation"], "gates": entries})
