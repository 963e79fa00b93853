"""The section `evaluation`: slices of one column and of two, and the group."""

from __future__ import annotations

import pytest

from retraining.core.data.column_roles import misfits, missing_columns
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
    assert missing.message.startswith("the group is not among the query's columns")
    planes = [*columns, Column(name="tailnum", type="FLOAT", mode="NULLABLE")]
    wrong = next(each for each in misfits(spec, planes) if each.column == "tailnum")
    assert wrong.message.startswith(
        "tailnum is FLOAT and cannot be a group: evaluate by another column (evaluation.group)"
    )
