"""The section `evaluation`: slices of one column and of two, and the group."""

from __future__ import annotations

import pytest

from retraining.core.data.column_roles import mismatches, missing_columns
from retraining.core.documents.snapshot import Column
from retraining.core.errors import RetrainingError
from retraining.core.jobs import requests
from retraining.core.spec.model import ModelSpec
from tests.support.small_model import make_plan, make_spec

SECTION = {"metric": "auc", "min_value": 0.6}
FEATURES = [
    {"name": "distance", "kind": "numeric"},
    {"name": "carrier", "kind": "categorical"},
    {"name": "origin", "kind": "categorical"},
]


def spec_with(**evaluation: object) -> ModelSpec:
    spec: ModelSpec = make_spec(features=FEATURES, evaluation={**SECTION, **evaluation})
    return spec


def test_slices_are_of_one_column_or_of_two() -> None:
    section = spec_with(slices=["origin", ["carrier", "origin"]], group="tailnum").evaluation
    assert section.plain_slices == ("origin",)
    assert section.crossed_slices == (("carrier", "origin"),)
    assert section.slice_columns == ("origin", "carrier")
    assert section.slice_names == ["origin", "carrier & origin"]


def test_the_judge_is_asked_for_them() -> None:
    plan = make_plan(spec_with(slices=["origin", ["carrier", "origin"]], group="tailnum"))
    request = requests.evaluation_job(plan, None).request
    assert (request.slices, request.crossed_slices, request.group) == (
        ("origin",),
        (("carrier", "origin"),),
        "tailnum",
    )


@pytest.mark.parametrize(
    ("evaluation", "words"),
    [
        ({"slices": [["carrier", "colour"]]}, "evaluation.slices names 'colour'"),
        ({"slices": [["carrier", "carrier"]]}, "slices crosses 'carrier' with itself"),
        ({"slices": ["carrier", "carrier"]}, "slices names 'carrier' twice"),
        ({"slices": [["carrier", "origin", "dest"]]}, "slices"),
        ({"group": "late"}, "evaluation.group is 'late', the label or the key"),
    ],
    ids=["unknown", "itself", "twice", "three", "label"],
)
def test_what_makes_no_slice_is_refused(evaluation: dict[str, object], words: str) -> None:
    with pytest.raises((RetrainingError, ValueError), match=words):
        spec_with(**evaluation)


def test_a_group_that_the_query_does_not_give_is_found_before_anything_is_paid() -> None:
    spec = spec_with(group="tailnum")
    names = {"carrier": "STRING", "origin": "STRING", "late": "INTEGER", "id": "STRING", "event_time": "TIMESTAMP"}
    columns = [Column(name=name, type=type_, mode="NULLABLE") for name, type_ in names.items()]
    missing = next(each for each in missing_columns(spec, columns) if each.column == "tailnum")
    assert missing.message.startswith("the group is not")
    planes = [*columns, Column(name="tailnum", type="FLOAT", mode="NULLABLE")]
    wrong = next(each for each in mismatches(spec, planes) if each.column == "tailnum")
    assert wrong.message.startswith("tailnum is FLOAT")
    assert "(evaluation.group)" in wrong.message


@pytest.mark.parametrize(
    ("threshold", "rule"),
    [
        (0.3, {"rule": "number", "at": 0.3}),
        ("recall>=0.9", {"rule": "recall", "at": 0.9}),
        ("precision >= .85", {"rule": "precision", "at": 0.85}),
        ("recall>=1", {"rule": "recall", "at": 1.0}),
        ("max_f1", {"rule": "max_f1"}),
        (
            {"false_positive": 1, "false_negative": 5},
            {"rule": "costs", "false_positive": 1.0, "false_negative": 5.0},
        ),
    ],
)
def test_the_judge_is_asked_for_a_threshold(threshold: object, rule: dict[str, object]) -> None:
    plan = make_plan(spec_with(threshold=threshold))
    asked = requests.evaluation_job(plan, None).request
    assert asked.threshold.model_dump(exclude_none=True) == rule
    assert asked.needs_validation is plan.spec.evaluation.needs_validation is (rule["rule"] != "number")


@pytest.mark.parametrize(
    ("threshold", "words"),
    [
        (1, "less than 1"),
        (0, "greater than 0"),
        ("0.3", "'0.3' is no rule; expected a number between 0 and 1, max_f1, recall>=0.9"),
        ("recall>=0", "no rule"),
        ("recall>=1.5", "no rule"),
        ("f1>=0.5", "no rule"),
        ({"false_positive": 1}, "(?s)false_negative.*Field required"),
        ({"false_positive": 0, "false_negative": 1}, "greater than 0"),
    ],
)
def test_what_is_no_threshold_is_refused(threshold: object, words: str) -> None:
    with pytest.raises((RetrainingError, ValueError), match=words):
        spec_with(threshold=threshold)


def test_where_no_threshold_can_be_chosen_it_is_refused_in_the_spec() -> None:
    """A label that is no yes or no; a trainer that leaves scores of files where there are none."""
    classes = {"name": "late", "kind": "multiclass", "classes": 3}
    with pytest.raises(ValueError, match="not of a multiclass"):
        make_spec(label=classes, evaluation={**SECTION, "threshold": 0.5})
    image = {"image": "host/sklearn-trainer:1", "models": "own"}
    own = {
        "training": {"model": "boosting", "input": "bigquery", "runtime": image},
        "deployment": {"container": {"image": "host/serving:1", "predict_route": "/p", "health_route": "/h"}},
    }
    with pytest.raises(ValueError, match="input to tfrecord"):
        make_spec(**own, evaluation={**SECTION, "threshold": "max_f1"})
    assert make_spec(**own, evaluation={**SECTION, "threshold": 0.5}).evaluation.threshold == 0.5


def test_a_key_that_cannot_be_read_from_the_table_is_found_before_anything_is_paid() -> None:
    """The judge reads the validation split there, and knows its rows by key."""
    direct = {"model": "dense", "input": "bigquery", "reader": "tensorflow_io", "runtime": {"image": "host/tfio:1"}}
    columns = [Column(name="id", type="DATE", mode="NULLABLE")]
    for threshold, found in (("max_f1", ["id"]), (0.5, [])):
        spec = make_spec(training=direct, evaluation={**SECTION, "threshold": threshold})
        assert [each.column for each in mismatches(spec, columns)] == found
