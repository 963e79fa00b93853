"""A model of sequences through the core: spec, statistics, checks, drift, golden requests, page."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from retraining.core import documents
from retraining.core.checks import dataset
from retraining.core.data import statistics
from retraining.core.documents.checks import SequenceStatistics, TextStatistics
from retraining.core.monitoring.drift import judge_shifts
from retraining.core.monitoring.request_log import LogWindows, read_requests, render_requests_sql
from retraining.core.promotion import smoke_tests
from retraining.core.report.page import render
from tests.support.contracts import EXAMPLES
from tests.support.request_log import CHAMPION_ID, counted
from tests.support.small_model import AS_OF, day_rows, fact, make_plan, make_snapshot, make_spec

PAGES = {"name": "pages", "kind": "sequence", "of": "categorical", "length": 8, "embedding_dim": 4}
HEAT = {"name": "heat", "kind": "sequence", "of": "numeric", "length": 24}
SPLITS = ("train", "validation", "test")
DATA = {"query": "visits/examples.sql", "key": "id", "event_time": "at", "window_days": 10, "test_days": 2}
SCHEMA = [
    {"name": "id", "type": "STRING", "mode": "NULLABLE"},
    {"name": "at", "type": "TIMESTAMP", "mode": "NULLABLE"},
    {"name": "pages", "type": "STRING", "mode": "REPEATED"},
    {"name": "heat", "type": "FLOAT", "mode": "REPEATED"},
    {"name": "late", "type": "INTEGER", "mode": "NULLABLE"},
]


NOTE = {"name": "note", "kind": "text"}


def make_visits(**changes: Any):
    values = {
        "name": "visits",
        "data": {**DATA, "checks": {"min_rows": 10}},
        "features": [PAGES, HEAT],
        "training": {"model": "lstm"},
        "evaluation": {"metric": "auc", "min_value": 0.6},
    }
    return make_spec(**{**values, **changes})


def rows() -> list[dict[str, Any]]:
    """Rows of the statistics query, the same for each split."""
    found = [fact("keys", row_count=300, distinct_count=300, nulls=0, outside=0, also_tested=0)]
    for split, day in (("train", "2013-11-10"), ("validation", "2013-11-10"), ("test", "2013-11-17")):
        found += [
            day_rows(split, day, 100)[0],
            fact("sequence", split, "pages", row_count=100, nulls=5, low=1.0, high=9.0, mean=3.5),
            fact("sequence", split, "heat", row_count=100, nulls=100),
            fact("element_category", split, "pages", value="home", row_count=90, distinct_count=2),
            fact("element_category", split, "pages", value="cart", row_count=90, distinct_count=2),
            fact("label", split, value="1", row_count=50),
            fact("label", split, value="0", row_count=50),
        ]
    return found


@pytest.fixture
def plan():
    """A run of the visits' model."""
    return make_plan(make_visits())


@pytest.fixture
def found(plan):
    """Its statistics."""
    return statistics.build_statistics(plan, make_snapshot(plan, schema=SCHEMA), rows())


def test_statistics_count_lengths_and_elements(found):
    train = found.splits["train"].features
    pages = {"min_length": 1, "max_length": 9, "mean_length": 3.5, "mean": None, "stddev": None, "distinct": 2}
    top = ({"value": "cart", "count": 90}, {"value": "home", "count": 90})
    assert train["pages"] == SequenceStatistics(kind="sequence", nulls=5, top=top, **pages)
    empty = dict.fromkeys(("min_length", "max_length", "mean_length", "mean", "stddev"))
    assert train["heat"] == SequenceStatistics(kind="sequence", nulls=100, distinct=0, top=(), **empty)
    assert documents.Statistics.parse(found.to_bytes()) == found


def test_the_query_counts_elements_of_what_there_is(plan):
    sql = statistics.render_statistics_sql(plan, make_snapshot(plan, schema=SCHEMA)).sql
    assert "ARRAY_LENGTH(`pages`) AS size" in sql
    assert "FROM examples, UNNEST(`heat`) AS element" in sql
    only = make_plan(make_visits(features=[PAGES]))
    sql = statistics.render_statistics_sql(only, make_snapshot(only, schema=SCHEMA)).sql
    assert "SELECT * FROM element_categories" in sql
    assert "SELECT * FROM elements\n" not in sql
    scalar = [{**column, "mode": "NULLABLE"} for column in SCHEMA]
    assert "UNNEST(`pages`)" not in statistics.render_statistics_sql(only, make_snapshot(only, schema=scalar)).sql


def test_texts_have_lengths():
    plan = make_plan(make_visits(features=[NOTE]))
    snapshot = make_snapshot(plan, schema=[*SCHEMA, {"name": "note", "type": "STRING", "mode": "NULLABLE"}])
    assert "CHAR_LENGTH(`note`)" in statistics.render_statistics_sql(plan, snapshot).sql
    sizes = [fact("size", split, "note", row_count=100, nulls=2, low=0.0, high=80.0, mean=31.5) for split in SPLITS]
    found = statistics.build_statistics(plan, snapshot, [*rows(), *sizes])
    lengths = {"min_length": 0, "max_length": 80, "mean_length": 31.5}
    assert found.splits["train"].features["note"] == TextStatistics(kind="text", nulls=2, **lengths)
    assert documents.Statistics.parse(found.to_bytes()) == found
    assert not [item for item in dataset.check_data(plan, snapshot, found).findings if item.feature == "note"]
    page = render({"plan": json.loads(plan.to_bytes()), "statistics": json.loads(found.to_bytes())})
    assert "32 characters, from 0 to 80" in page


def test_a_sequence_without_an_element_blocks(plan, found):
    judged = {item.check: item for item in dataset.check_data(plan, make_snapshot(plan, schema=SCHEMA), found).findings}
    assert judged["all_null"].feature == "heat"
    assert "types" not in judged


@pytest.mark.parametrize(
    ("column", "changes", "words"),
    [
        ("pages", {"mode": "NULLABLE"}, "pages is STRING, no array"),
        ("heat", {"type": "STRING"}, "heat is STRING REPEATED and cannot be a sequence feature: cast it"),
    ],
)
def test_a_column_that_is_no_such_array_blocks(plan, found, column, changes, words):
    schema = [{**item, **(changes if item["name"] == column else {})} for item in SCHEMA]
    judged = dataset.check_data(plan, make_snapshot(plan, schema=schema), found)
    (finding,) = (item for item in judged.findings if item.check == "types")
    assert (finding.feature, finding.severity) == (column, "block")
    assert words in finding.message
    assert "REPEATED" in finding.expected


def test_sequences_have_no_drift(plan, found):
    query = render_requests_sql(plan.spec, "project.dataset.log", found, LogWindows.before(plan.spec, AS_OF))
    assert "pages" not in query.sql
    log = read_requests(counted({"pages": {"home": 500}}), [])
    assert not judge_shifts(plan.spec, found.splits["train"], log, (), CHAMPION_ID)[1:]


def test_smoke_requests_hold_lists_with_nan_for_null():
    report = documents.Report.parse((EXAMPLES / "report__sequences.json").read_bytes())
    (sent,) = smoke_tests.instances(report.golden, make_visits().features)
    assert sent["pages"] == ["home", "cart", ""]
    assert sent["heat"][0] == 20.5
    assert all(math.isnan(item) for item in sent["heat"][1:])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"evaluation": {"metric": "auc", "min_value": 0.6, "slices": ["pages"]}}, "evaluation.slices names 'pages'"),
        ({"monitoring": {"drift": {"features": {"heat": 0.5}}}}, "monitoring.drift.features names 'heat'"),
        ({"data": {**DATA, "checks": {"ranges": {"heat": [0, 1]}}}}, "data.checks.ranges names 'heat'"),
        ({"features": [NOTE], "evaluation": {"metric": "auc", "min_value": 0.6, "slices": ["note"]}}, "is a text"),
        ({"training": {"model": "lstm", "input": "csv"}}, "training.input csv cannot hold 'pages', a sequence"),
        ({"training": {"model": "lstm", "input": "bigquery"}}, "training.input bigquery cannot hold 'pages'"),
        ({"data": {**DATA, "layout": {"rows_per_record": 8}}}, "rows_per_record 8 cannot hold 'pages'"),
        ({"features": [{**HEAT, "embedding_dim": 3}]}, "a sequence of numbers: remove it"),
        ({"features": [{"name": "heat", "kind": "sequence", "of": "numeric"}]}, "length"),
    ],
)
def test_what_a_sequence_cannot_be_is_refused(changes, words):
    with pytest.raises(ValidationError, match=words):
        make_visits(**changes)


def test_the_page_shows_lengths_and_values(plan, found):
    raw = {"plan": json.loads(plan.to_bytes()), "statistics": json.loads(found.to_bytes())}
    page = render(raw)
    assert "3.5 elements, from 1 to 9" in page
    assert "2 values: cart, home" in page
