"""What a team's tests ask of its gates."""

from __future__ import annotations

import json

import pytest

from retraining.core.errors import SpecError
from retraining.testing import check_gate, message_parts, run_to_judge, runs_to_judge


@pytest.fixture
def include(tmp_path):
    """A folder of gates, and a way to write one."""
    (tmp_path / "gates").mkdir()

    def write(body):
        (tmp_path / "gates" / "late.py").write_text(f"def gate(run):\n    {body}\n")
        return tmp_path

    return write


def test_a_gate_that_answers_every_run_is_taken_with_its_answers(include):
    folder = include("return run.rows > 100, f'{run.rows} rows'")
    answers = check_gate("late.py:gate", folder)
    assert answers["a champion"] == (True, "5000 rows")
    assert answers["too little evidence"] == (False, "3 rows")
    assert answers.keys() == runs_to_judge().keys()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return run.challenger['auc'] > run.champion['auc'], 'better'", "asked about the first model: TypeError"),
        ("return run.challenger['auc'] > 0.5, 'good'", "asked about metrics that are not defined: TypeError"),
        ("return run.slices[0].rows > 1, 'large'", "asked about no slices: IndexError"),
        ("return True", "asked about a champion: ValueError: it answered True"),
    ],
    ids=["no champion", "no metric", "no slice", "no reason"],
)
def test_a_gate_that_fails_some_run_is_named_with_the_run(include, body, message):
    with pytest.raises(AssertionError, match=message):
        check_gate("late.py:gate", include(body))


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_each_kind_of_label_has_its_runs(include, kind):
    counts = {"binary": "run.label_rate", "multiclass": "sum(run.label_counts)", "regression": "run.rows"}[kind]
    answers = check_gate("late.py:gate", include(f"return {counts} > 0, run.metric"), kind=kind)
    assert answers["a champion"] == (True, {"binary": "auc", "multiclass": "accuracy", "regression": "mae"}[kind])


def test_one_asks_about_runs_of_ones_own(include):
    folder = include("return run.champion['auc'] < 0.5, 'weak'")
    weak = {"a weak champion": run_to_judge(champion={"auc": 0.4})}
    assert check_gate("late.py:gate", folder, runs=weak) == {"a weak champion": (True, "weak")}


def test_a_notifier_is_tried_with_what_it_would_get():
    """Plain values that any of its transports can write as JSON."""
    parts = message_parts(event="failure")
    assert parts.keys() == {"event", "model", "subject", "lines", "way_out", "links", "runbook", "id"}
    assert (parts["event"], parts["model"]) == ("failure", "example")
    assert json.loads(json.dumps(parts)) == parts


def test_one_that_is_not_there_is_refused_as_a_run_refuses_it(include):
    with pytest.raises(SpecError, match="no function 'gat'"):
        check_gate("late.py:gat", include("return True, 'fine'"))
