"""Statistics from the rows of their query."""

from __future__ import annotations

import pytest

from retraining.core import documents
from retraining.core.data import statistics
from retraining.core.errors import DataError
from tests.support.refusals import refuses
from tests.support.small_model import make_plan, make_snapshot, make_spec, make_statistics, statistics_rows


def test_the_query_names_columns_and_gets_values_as_parameters(small_plan):
    query = statistics.render_statistics_sql(small_plan, make_snapshot(small_plan))
    assert {parameter.name: parameter.value for parameter in query.parameters} == {
        "test_start": "2013-11-17",
        "max_categories": 1000,
        "least_rows": 200,
        "tail_mask": 16383,
        "classes": 2,
    }
    assert "IF(IS_NAN(CAST(`distance` AS FLOAT64)), NULL, CAST(`distance` AS FLOAT64)) AS number" in query.sql
    assert "CAST(`carrier` AS STRING) AS value" in query.sql
    assert "`id` AS example_key" in query.sql


def test_a_model_of_one_kind_has_no_part_for_the_other():
    only = make_spec(
        features=[{"name": "distance", "kind": "numeric"}],
        evaluation={"metric": "auc", "min_value": 0.6},
    )
    the_plan = make_plan(only)
    sql = statistics.render_statistics_sql(the_plan, make_snapshot(the_plan)).sql
    assert "APPROX_QUANTILES" in sql
    assert "categories" not in sql.replace("max_categories", "")


def test_statistics_of_every_split(small_plan):
    found = make_statistics(small_plan)
    assert {name: split.rows for name, split in found.splits.items()} == {"train": 80, "validation": 10, "test": 30}
    numeric = found.splits["train"].features["distance"]
    assert isinstance(numeric, documents.NumericStatistics)
    assert (numeric.min, numeric.max, len(numeric.quantiles)) == (0.0, 20.0, 21)
    carriers = found.splits["train"].features["carrier"]
    assert isinstance(carriers, documents.CategoricalStatistics)
    assert [(item.value, item.count) for item in carriers.top] == [("UA", 60), ("AA", 20)]
    assert found.splits["test"].label.mean == 0.2
    assert found.keys.distinct == 120
    assert documents.Statistics.parse(found.to_bytes()) == found


def test_equal_counts_are_ordered_by_value_and_null_is_no_category(small_plan):
    rows = statistics_rows(carriers={"B": 0.25, "A": 0.25, None: 0.5})
    carriers = (
        statistics.build_statistics(small_plan, make_snapshot(small_plan), rows).splits["train"].features["carrier"]
    )
    assert isinstance(carriers, documents.CategoricalStatistics)
    assert [item.value for item in carriers.top] == ["A", "B"]
    assert carriers.nulls == 40


def test_a_split_without_rows_is_there_with_zeros(small_plan):
    found = make_statistics(small_plan, rows={"train": 80})
    empty = found.splits["test"]
    assert (empty.rows, empty.label.mean, empty.features["distance"].nulls) == (0, None, 0)


def test_infinite_values_are_named(small_plan):
    rows = statistics_rows()
    next(row for row in rows if row["section"] == "numeric")["high"] = float("inf")
    with refuses(DataError, where="feature distance", found="inf"):
        statistics.build_statistics(small_plan, make_snapshot(small_plan), rows)


def test_rows_of_another_query_are_refused(small_plan):
    with pytest.raises(DataError, match="without a row about keys"):
        statistics.build_statistics(small_plan, make_snapshot(small_plan), [])
