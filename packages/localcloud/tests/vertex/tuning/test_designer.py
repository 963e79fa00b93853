"""The way to the designer's process and back, with a stand-in for it; the long tests have Open Source Vizier."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest
from google.cloud import aiplatform_v1 as v1

from localcloud.vertex.jobs.tuning.search.algorithms import Problem, suggest
from localcloud.vertex.jobs.tuning.search.bayesian import PYTHON_VARIABLE, Designer
from localcloud.vertex.processes.guardian import Guardian
from localcloud.vertex.wire.errors import ApiError, FailedPrecondition
from packages.localcloud.tests.vertex.studies import (
    State,
    below,
    categorical,
    discrete,
    double,
    integer,
    measurement,
    study_spec,
)

# Notes each question; suggests the highest value of everything, a little beside it as single precision does.
STAND_IN = """
import json, pathlib, sys
for line in sys.stdin:
    question = json.loads(line)
    with open({notes!r}, "a") as file:
        file.write(line)
    if question["seed"] % 2 and {breaks}:
        sys.exit(1)
    if {fails}:
        print(json.dumps({{"error": "ValueError: no such thing"}}), flush=True)
        continue
    if {gives_up}:
        print(json.dumps({{"suggestions": [None] * question["count"]}}), flush=True)
        continue
    found = {{p["key"]: p["values"][-1] if p["values"] else p["high"] * 1.0000001 for p in question["parameters"]}}
    print(json.dumps({{"suggestions": [found] * question["count"]}}), flush=True)
"""


@pytest.fixture
def make_designer(tmp_path, monkeypatch):
    """Makes designers whose process is the stand-in; gives them and the file of questions."""
    made: list[tuple[Designer, Guardian]] = []

    def make(*, breaks: bool = False, fails: bool = False, gives_up: bool = False) -> tuple[Designer, Path]:
        notes, program, python = tmp_path / "questions", tmp_path / "program.py", tmp_path / "python"
        program.write_text(
            textwrap.dedent(STAND_IN.format(notes=str(notes), breaks=breaks, fails=fails, gives_up=gives_up))
        )
        python.write_text(f"#!/bin/sh\nexec {sys.executable} {program}\n")
        python.chmod(0o755)
        monkeypatch.setenv(PYTHON_VARIABLE, str(python))
        guardian = Guardian()
        made.append((Designer(tmp_path / "folder", guardian), guardian))
        return made[-1][0], notes

    yield make
    for designer, guardian in made:
        designer.close()
        guardian.close()


SPEC = v1.StudySpec(
    study_spec(
        double("rate", 1e-4, 0.1, "UNIT_LOG_SCALE"),
        integer("layers", 1, 4),
        discrete("batch", 32, 64),
        categorical(
            "optimizer",
            "adam",
            "sgd",
            conditional_parameter_specs=[below("categorical", "adam", parameter=double("beta", 0, 0.9))],
        ),
        algorithm="ALGORITHM_UNSPECIFIED",
        metrics=[{"metric_id": "score", "goal": "MINIMIZE"}],
    )
)


def trial(number: int, state: State, score: float | None = None, **values: object) -> v1.Trial:
    parameters = [{"parameter_id": name, "value": value} for name, value in values.items()]
    made = v1.Trial(id=str(number), state=state, parameters=parameters)
    if score is not None:
        made.final_measurement = measurement(score)
    return made


def problem(*trials: v1.Trial) -> Problem:
    return Problem(display_name="a study", spec=SPEC, trials=list(trials))


def test_a_suggestion_is_within_the_space_and_without_what_has_no_place(make_designer):
    designer, _ = make_designer()
    first, second = suggest(problem(), 2, designer)
    assert first == second == {"rate": 0.1, "layers": 4, "batch": 64, "optimizer": "sgd"}


def test_the_question_has_every_trial_and_more_is_better(make_designer):
    """Minimized scores are turned; what a trial does not have stands in the middle; infeasible ones have no score."""
    designer, notes = make_designer()
    suggest(
        problem(
            trial(1, State.SUCCEEDED, 0.25, rate=0.01, layers=2, batch=32, optimizer="adam", beta=0.5),
            trial(2, State.INFEASIBLE, rate=0.02, layers=1, batch=64, optimizer="sgd"),
            trial(3, State.ACTIVE, rate=0.03, layers=3, batch=64, optimizer="sgd"),
        ),
        1,
        designer,
    )
    question = json.loads(notes.read_text())
    keys = {parameter["key"]: parameter for parameter in question["parameters"]}
    assert [(p["kind"], p["scale"]) for p in keys.values()] == [
        ("double", "log"),
        ("integer", "linear"),
        ("discrete", "linear"),
        ("categorical", "linear"),
        ("double", "linear"),
    ]
    assert [(each["id"], each["scores"]) for each in question["completed"]] == [(1, [-0.25]), (2, None)]
    assert [each["id"] for each in question["active"]] == [3]
    (beta,) = [key for key in keys if "." in key]
    assert [each["values"][beta] for each in question["completed"]] == [0.5, 0.45]


def test_a_process_that_is_gone_is_started_again(make_designer):
    """It dies on every second seed: the same question is asked once more, and then it is an error."""
    designer, notes = make_designer(breaks=True)
    answers = []
    for number in range(1, 4):
        try:
            answers.append(len(suggest(problem(trial(number, State.ACTIVE, rate=0.01)), 1, designer)))
        except ApiError as error:
            answers.append(str(error))
    assert answers.count(1) >= 1
    assert any("The process that suggests trials ended" in str(answer) for answer in answers)
    assert len(notes.read_text().splitlines()) == answers.count(1) + 2 * (3 - answers.count(1))


def test_what_the_designer_cannot_give_is_drawn_at_random(make_designer):
    """Within the space, and the same again."""
    designer, _ = make_designer(gives_up=True)
    drawn = suggest(problem(), 20, designer)
    assert drawn == suggest(problem(), 20, designer)
    assert len({each["rate"] for each in drawn}) == 20
    assert all(1e-4 <= each["rate"] <= 0.1 and each["layers"] in (1, 2, 3, 4) for each in drawn)
    assert all(("beta" in each) == (each["optimizer"] == "adam") for each in drawn)


def test_what_the_designer_says_of_a_fault_is_in_the_message(make_designer):
    designer, _ = make_designer(fails=True)
    with pytest.raises(ApiError, match="Open Source Vizier could not suggest trials: ValueError: no such thing"):
        suggest(problem(), 1, designer)


def test_a_missing_environment_is_named_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setenv(PYTHON_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(FailedPrecondition, match=r"nowhere, and that does not exist\. Make it with `make tuning-env`"):
        Designer.check_ready()


def hill(low: float) -> Problem:
    """A study of two numbers and a choice, with six trials."""
    parameters = double("x", low, low + 1), double("y", 0, 1), categorical("o", "u", "v")
    trials = [
        trial(number, State.SUCCEEDED, number * 3 % 7, x=low + number / 7, y=(number * 3 % 7) / 7, o="uv"[number % 2])
        for number in range(1, 7)
    ]
    spec = v1.StudySpec(study_spec(*parameters, algorithm="ALGORITHM_UNSPECIFIED"))
    return Problem(display_name="again", spec=spec, trials=trials)


@pytest.mark.long
def test_a_suggestion_does_not_depend_on_what_the_process_was_asked_before(tmp_path):
    """It keeps what it compiled for spaces of one shape; a new process says the same."""
    guardian = Guardian()
    answers = []
    for places in ((0.0, 5.0, 0.0), (5.0, 0.0)):
        designer = Designer(tmp_path, guardian)
        answers.append([suggest(hill(low), 2, designer) for low in places])
        designer.close()
    guardian.close()
    (first, second, again), (other_second, other_first) = answers
    assert first == again == other_first
    assert second == other_second != first
