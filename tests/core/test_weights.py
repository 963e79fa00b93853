"""Weights of examples through the core: spec, columns, statistics, checks, what the jobs are asked, and the metrics.

The metrics of numbers are scikit-learn's with `sample_weight`; those of classes are in `test_class_metrics.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from retraining.core import documents
from retraining.core.checks import dataset
from retraining.core.data import statistics
from retraining.core.data.column_roles import mismatches, missing_columns
from retraining.core.documents.snapshot import Column
from retraining.core.jobs import requests
from tests.support.small_model import SCHEMA, fact, make_plan, make_snapshot, make_spec, spec_values, statistics_rows
from trainer.objective.metrics import measure_baseline
from trainer.objective.number_metrics import measure_baselines, measure_numbers

WEIGHTED = [*SCHEMA, {"name": "importance", "type": "FLOAT", "mode": "NULLABLE"}]


def make_weighted(column: str = "importance", **changes: Any):
    return make_spec(**{**changes, "data": {**spec_values()["data"], "weight": column}})


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("distance", "data.weight is 'distance', which is also a feature"),
        ("late", "must be different columns"),
        ("id", "must be different columns"),
        ("at", "must be different columns"),
    ],
)
def test_a_column_of_another_role_is_refused_by_name(column: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_weighted(column)


def test_a_column_that_is_missing_or_no_number_is_found_before_anything_is_paid() -> None:
    spec = make_weighted()
    columns = [Column(name=name, type="STRING", mode="NULLABLE") for name in ("id", "carrier")]
    missing = next(each for each in missing_columns(spec, columns) if each.column == "importance")
    assert missing.message.startswith("the weight is not among")
    wrong = [*columns, Column(name="importance", type="BOOLEAN", mode="NULLABLE")]
    found = next(each for each in mismatches(spec, wrong) if each.column == "importance")
    assert found.message == "importance is BOOLEAN and cannot be a weight: cast it in the query"


def test_the_jobs_are_asked_for_it_and_requests_without_one_are_as_before() -> None:
    """An image of an earlier release refuses a key that it does not know."""
    plan = make_plan(make_weighted())
    assert requests.training_job(plan).request.weight == "importance"
    assert requests.evaluation_job(plan, None).request.weight == "importance"
    assert "weight" not in requests.training_job(make_plan()).request.to_json()


def judge(**values: Any) -> tuple[documents.Statistics, documents.Checks]:
    """Check statistics of which each split's weights are these."""
    plan = make_plan(make_weighted())
    counted = [fact("weight", split, **values) for split in ("train", "validation", "test")]
    snapshot = make_snapshot(plan, schema=WEIGHTED)
    found = statistics.build_statistics(plan, snapshot, [*statistics_rows(), *counted])
    return found, dataset.check_data(plan, snapshot, found)


def test_right_weights_pass_and_their_mean_is_kept() -> None:
    found, checks = judge(nulls=0, outside=0, mean=2.5)
    assert found.splits["train"].weight == documents.checks.WeightStatistics(nulls=0, outside=0, mean=2.5)
    assert checks.passed
    assert (
        statistics.build_statistics(make_plan(), make_snapshot(make_plan()), statistics_rows()).splits["train"].weight
        is None
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"nulls": 2, "outside": 3, "mean": 1.0}, "5 examples of train have no right weight: mend them in the query"),
        ({"nulls": 0, "outside": 0, "mean": 0.0}, "no example of train has a weight above 0: nothing would count"),
    ],
    ids=["wrong", "zero"],
)
def test_wrong_weights_block(values: dict[str, Any], words: str) -> None:
    _, checks = judge(**values)
    found = [item for item in checks.findings if item.check == "weights"]
    assert [item.severity for item in found] == ["block"] * 3
    assert found[0].message == words
    assert not checks.passed


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.floats(0.25, 5)), min_size=1, max_size=40))
def test_metrics_of_numbers_are_scikit_learns(rows: list[tuple[int, int, float]]) -> None:
    labels, answers, weights = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    found = measure_numbers(labels, answers, weights=weights)
    assert found.mae == pytest.approx(metrics.mean_absolute_error(labels, answers, sample_weight=weights), abs=1e-6)
    rmse = metrics.root_mean_squared_error(labels, answers, sample_weight=weights)
    assert found.rmse == pytest.approx(rmse, abs=1e-6)
    assert (found.r2 is None) is (len(set(labels)) == 1)
    if found.r2 is not None:
        assert found.r2 == pytest.approx(metrics.r2_score(labels, answers, sample_weight=weights), abs=1e-6)
    errors = np.abs(labels - answers)
    below, above = (weights[mask].sum() for mask in (errors < found.medae, errors > found.medae))
    assert max(below, above) <= weights.sum() / 2 + 1e-9


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=30))
def test_baselines_are_those_of_rows_as_often_as_their_weight(rows: list[tuple[int, int]]) -> None:
    labels, weights = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    repeated = np.repeat(labels, weights.astype(int))
    by_weight, by_rows = measure_baseline(labels, 4, weights), measure_baseline(repeated, 4)
    assert (by_weight.log_loss, by_weight.accuracy) == pytest.approx((by_rows.log_loss, by_rows.accuracy))
    ones = measure_baseline(np.minimum(labels, 1), weights=weights), measure_baseline(np.minimum(repeated, 1))
    assert ones[0].log_loss == pytest.approx(ones[1].log_loss)
    numbers = measure_baselines(labels, labels, {}, (), weights), measure_baselines(repeated, repeated, {}, ())
    for item, expected in zip(*numbers, strict=True):
        assert item.metrics.mae == pytest.approx(expected.metrics.mae)
