"""The table of metrics: the values that documents store, and the trainer's functions, are those of its rows."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from retraining.core.metrics import (
    LEADING,
    METRICS,
    Kind,
    LabelShape,
    Metric,
    Metrics,
    NumberMetrics,
    metrics_of,
    watched_metrics,
)
from retraining.core.monitoring.estimates import ESTIMATES
from retraining.core.monitoring.performance import MEASURES
from retraining.core.settings import data_path
from trainer.contract.metrics import OF_COSTS, OF_GROUPS
from trainer.objective import class_metrics, number_metrics

KINDS: tuple[Kind, ...] = get_args(Kind)
QUARTER = LabelShape(shares=[0.75, 0.25], is_binary=True)
"""A quarter of the labels is positive."""
CLASS_METRICS = [name for name in METRICS if name in Metrics.model_fields]


def test_each_metric_has_one_row_and_one_value_in_documents() -> None:
    assert set(METRICS) == set(get_args(Metric)) == {*Metrics.model_fields, *NumberMetrics.model_fields}
    assert set(metrics_of("regression")) == set(NumberMetrics.model_fields)
    assert {*metrics_of("binary"), *metrics_of("multiclass")} == set(Metrics.model_fields)


def test_each_metric_has_a_function_in_the_trainer() -> None:
    elsewhere = {*OF_COSTS, *OF_GROUPS}  # of costs (`costs.py`) and of groups (`rankings.py`)
    assert {*class_metrics.FUNCTIONS, *elsewhere} == set(Metrics.model_fields)
    assert {*number_metrics.FUNCTIONS, *OF_GROUPS} == set(NumberMetrics.model_fields)


def test_what_the_monitor_has_ways_for_is_in_the_table() -> None:
    """And the leading metric of each kind can be estimated: it stands in for one that cannot."""
    assert set(MEASURES) <= set(METRICS)
    for kind in KINDS:
        assert set(ESTIMATES[kind]) <= set(metrics_of(kind))
        assert LEADING[kind] in ESTIMATES[kind]


def test_what_the_monitor_shows_it_has_a_way_for() -> None:
    """Of its own, or an expression of that name in its query."""
    query = data_path("templates/performance.sql.j2").read_text()
    measured = {*MEASURES, *re.findall(r"STRUCT\(\s*'(\w+)'", query)}
    for kind in KINDS:
        assert set(watched_metrics(kind)) <= measured


@pytest.mark.parametrize("name", METRICS)
def test_a_row_speaks_of_kinds_that_have_the_metric(name: Metric) -> None:
    row = METRICS[name]
    assert row.description
    assert {*row.of_epoch, *row.watched} <= set(row.description)


@pytest.mark.parametrize("name", [name for name in CLASS_METRICS if METRICS[name].constant(QUARTER) is not None])
def test_what_constant_answers_reach_is_a_value_that_documents_take(name: Metric) -> None:
    constant = METRICS[name].constant(QUARTER)
    values = {"auc": 0.5, "log_loss": 0.5, "accuracy": 0.5, "brier": 0.5}
    assert getattr(Metrics.model_validate({**values, name: constant}), name) == constant
