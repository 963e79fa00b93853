"""The task `decide` with a gate of a team's own: whatever its file does is in the decision."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from retraining.operators.evaluation.decision import DecideOperator
from tests.support.scenes.deployment import Scene, example

PASSING = "def gate(run):\n    return run.rows > 0, f'{run.rows} rows of {run.model}'\n"
FAILING = "def gate(run):\n    return False, 'not this one'\n"
RAISING = "def gate(run):\n    return run.nothing\n"


@pytest.fixture
def include(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A team's folder, where the environment says."""
    (tmp_path / "models").mkdir()
    (tmp_path / "gates").mkdir()
    monkeypatch.setenv("RETRAINING_INCLUDE", str(tmp_path))
    return tmp_path


def planned(include: Path, text: str, severity: str = "block") -> Scene:
    """A run up to its evaluation, whose model has a gate of this text."""
    (include / "gates" / "flights.py").write_text(text)
    scene = Scene()
    spec, gate = scene.read("plan")["spec"], {"name": "ours", "function": "flights.py:gate", "severity": severity}
    code = {"function": gate["function"], "sha256": hashlib.sha256(text.encode()).hexdigest(), "package": None}
    changed = spec | {"evaluation": spec["evaluation"] | {"gates": [gate]}}
    scene.change("plan", spec=changed, gates={"ours": code})
    same = {"model": "flight_delays", "run_key": scene.run_key}
    request = example("evaluate_request__duel") | same
    scene.put("evaluate_request", request | {"champion": request["champion"] | {"as_of": "2013-01-02T00:00:00Z"}})
    duel = example("evaluation__duel") | same | {"rows": 5000}
    scene.put("evaluation", duel | {"difference": duel["difference"] | {"low": 0.002}})
    del scene.cloud.artifacts.objects[f"{scene.folder}/decision.json"]
    return scene


def decided(scene: Scene, run: Any) -> dict[str, Any]:
    """The gate's verdict, and the run's."""
    task = DecideOperator(task_id="decide", run_uri=scene.folder, cloud=scene.cloud.connect)
    verdict = run.execute(task)["verdict"]
    decision = scene.read("decision")
    assert decision["verdict"] == verdict
    gate: dict[str, Any] = decision["gates"][-1]
    return gate | {"verdict": verdict}


def test_a_gate_is_asked_by_the_task_and_stands_in_the_decision(include: Path, make_run) -> None:
    """With the digest of its file; a cleared task finds the decision that was taken."""
    scene = planned(include, PASSING)
    rows = scene.read("evaluation")["rows"]
    gate = decided(scene, make_run())
    assert (gate["gate"], gate["passed"], gate["words"]) == ("own.ours", True, f"ours: {rows} rows of flight_delays")
    assert gate["code"] == hashlib.sha256(PASSING.encode()).hexdigest()
    (include / "gates" / "flights.py").unlink()
    assert decided(scene, make_run()) == gate


@pytest.mark.parametrize(
    ("text", "found", "message"),
    [(FAILING, "does not pass", "ours: not this one"), (RAISING, "not judged", "ours: not judged, AttributeError")],
    ids=["does not pass", "raises"],
)
def test_one_that_does_not_pass_rejects_or_warns(include: Path, make_run, text, found, message) -> None:
    """By its severity; everything else of the decision is as it would be."""
    blocked, warned = decided(planned(include, text), make_run()), decided(planned(include, text, "warn"), make_run())
    for gate in (blocked, warned):
        assert gate["found"] == found
        assert gate["words"].startswith(message)
    assert (blocked["verdict"], blocked["passed"]) == ("reject", False)
    assert (warned["verdict"], warned["passed"], warned["warns"]) == ("promote", True, True)


@pytest.mark.parametrize("now", [PASSING + "\n", None], ids=["other code", "no file"])
def test_code_that_was_not_planned_judges_nothing(include: Path, make_run, now: str | None) -> None:
    """A deploy between plan and decide: the champion stays."""
    scene = planned(include, PASSING)
    file = include / "gates" / "flights.py"
    file.unlink() if now is None else file.write_text(now)
    gate = decided(scene, make_run())
    assert (gate["verdict"], gate["found"]) == ("reject", "not judged")
    assert ("no file 'flights.py'" if now is None else "not the one of the plan") in gate["words"]
