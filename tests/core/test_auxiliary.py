"""Auxiliary labels: what the spec refuses, what the jobs are asked, what is checked, and which answer counts."""

from __future__ import annotations

from typing import Any

import pytest

from retraining.core.checks import dataset
from retraining.core.data import statistics
from retraining.core.documents.training import Golden
from retraining.core.errors import DataError
from retraining.core.jobs.requests import evaluation_job, training_job
from retraining.core.promotion import smoke_tests
from tests.support.number_model import SCHEMA as HOURLY_SCHEMA
from tests.support.number_model import make_hourly, rows, taken
from tests.support.refusals import refuses
from tests.support.small_model import fact, make_plan

DELAY = {"name": "delay", "kind": "regression", "loss": "huber", "transform": "log1p", "weight": 0.2}
GATE = {"name": "gate", "kind": "multiclass", "classes": 3}
SCHEMA = [
    *HOURLY_SCHEMA,
    {"name": "delay", "type": "FLOAT", "mode": "NULLABLE"},
    {"name": "gate", "type": "INTEGER", "mode": "NULLABLE"},
]


def make_plan_with(*auxiliary: dict[str, Any], **changes: Any):
    return make_plan(make_hourly(auxiliary_labels=list(auxiliary), **changes))


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ({**GATE, "name": "origin"}, "auxiliary label origin is 'origin', which is also a feature"),
        ({**GATE, "name": "Departures"}, "must be different columns"),
        ({**GATE, "name": "at"}, "must be different columns"),
        ({**GATE, "name": "id"}, "must be different columns"),
        ({**GATE, "name": "Score"}, "is an output of the label's own"),
        ({**GATE, "weight": 0}, "greater than 0"),
        ({**DELAY, "min": -3}, "transform log1p is of numbers above -1"),
    ],
    ids=["feature", "label", "time", "key", "output", "weight", "bounds"],
)
def test_one_that_cannot_be_is_refused_by_name(label, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_plan_with(label)


def test_the_same_twice_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'gate' twice"):
        make_plan_with(GATE, GATE)


def test_the_jobs_are_asked_for_labels_of_their_kinds_with_their_weights() -> None:
    plan = make_plan_with(DELAY, GATE)
    asked = training_job(plan).request.model_dump(mode="json")["auxiliary_labels"]
    assert [(item["label"]["name"], item["weight"]) for item in asked] == [("delay", 0.2), ("gate", 1.0)]
    assert asked[0]["label"]["loss"] == "huber"
    assert asked[1]["label"] == {key: value for key, value in GATE.items() if key != "weight"}
    judged = evaluation_job(plan, None).request.model_dump(mode="json")
    assert [item["name"] for item in judged["auxiliary_labels"]] == ["delay", "gate"]
    assert judged["label"]["name"] == "departures"


def counted(nulls: int = 10, outside: int = 0):
    """Rows of the statistics query: 60 examples in each split."""
    found = rows()
    for split in ("train", "validation", "test"):
        for name in ("delay", "gate"):
            found.append(fact("auxiliary_rows", split, name, nulls=nulls))
            if outside:
                found.append(fact("auxiliary", split, name, value=None, row_count=outside, low=-3.0, high=7.0))
        if nulls < 60:
            right = {"low": 0.0, "high": 9.0, "mean": 4.0, "deviation": 2.0, "quantiles": [4.0] * 21}
            found.append(fact("auxiliary", split, "delay", value="right", row_count=60 - nulls, **right))
            found.append(
                fact("auxiliary", split, "delay", value="log1p", row_count=60 - nulls, mean=1.5, deviation=0.5)
            )
            found.append(fact("auxiliary", split, "gate", value="2", row_count=60 - nulls))
    return found


def judge(plan, **given: Any):
    snapshot = taken(plan, SCHEMA)
    found = statistics.build_statistics(plan, snapshot, counted(**given))
    return found, dataset.check_data(plan, snapshot, found)


def test_nulls_are_counted_and_are_a_finding_where_the_spec_says_so() -> None:
    found, checks = judge(make_plan_with(DELAY, GATE))
    labels = found.splits["train"].auxiliary_labels
    assert (labels["delay"].nulls, labels["delay"].numbers.trained_mean) == (10, 1.5)
    assert (labels["gate"].nulls, labels["gate"].counts) == (10, (0, 0, 50))
    assert not [item for item in checks.findings if item.feature in ("delay", "gate")]
    _, told = judge(make_plan_with(DELAY, GATE, checks={"severity": {"auxiliary_nulls": "warn"}}))
    named = [item for item in told.findings if item.check == "auxiliary_nulls"]
    assert len(named) == 6
    assert named[0].message.startswith("10 examples of train")


def test_wrong_values_and_none_at_all_block() -> None:
    _, wrong = judge(make_plan_with(DELAY, GATE), outside=2)
    blocked = [item for item in wrong.findings if item.check == "label_range" and item.feature == "gate"]
    assert blocked[0].severity == "block"
    assert blocked[0].expected == "whole numbers from 0 to 2"
    assert "auxiliary_labels.classes" in blocked[0].message
    _, none = judge(make_plan_with(DELAY, GATE), nulls=60)
    assert [item.feature for item in none.findings if item.check == "auxiliary_all_null"] == ["delay", "gate"]
    assert not none.passed


def test_a_column_of_another_type_or_none_is_refused_by_name() -> None:
    plan = make_plan_with(DELAY, GATE)
    snapshot = taken(plan, [*SCHEMA[:-1], {"name": "gate", "type": "STRING", "mode": "NULLABLE"}])
    found = statistics.build_statistics(plan, snapshot, counted())
    (mismatch,) = [item for item in dataset.check_data(plan, snapshot, found).findings if item.feature == "gate"]
    assert mismatch.check == "types"
    with refuses(DataError, found="'delay'", way_out="auxiliary label"):
        taken(plan, HOURLY_SCHEMA)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"prediction": 3.0, "delay": 9.0, "gate": [0.1, 0.9]}, 3.0),
        ({"delay": [1.0], "quantiles": [1.0, 2.0]}, (1.0, 2.0)),
    ],
    ids=["number", "quantiles"],
)
def test_the_smoke_test_reads_the_labels_own_output(answer, expected) -> None:
    request = Golden(instance={"origin": "JFK"}, prediction=expected)
    assert smoke_tests.require_same_answers("endpoint", [answer], [request]).max_abs_error == 0
