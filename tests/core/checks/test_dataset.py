"""Findings on the examples."""

from __future__ import annotations

from datetime import date

import pytest

from retraining.core import documents
from retraining.core.checks.dataset import require_passed
from retraining.core.data import columns as columns_of
from retraining.core.data import statistics
from retraining.core.data.column_roles import mismatches
from retraining.core.errors import DataError
from tests.support.refusals import refuses
from tests.support.small_model import (
    SCHEMA,
    check_small_data,
    make_plan,
    make_snapshot,
    make_spec,
    make_statistics,
    statistics_rows,
)

BY_TENSORFLOW_IO = {"input": "bigquery", "reader": "tensorflow_io", "runtime": {"image": "eu-docker.pkg.dev/p/r/io:1"}}


def found(the_plan, the_statistics=None, the_snapshot=None):
    return check_small_data(
        the_plan, the_snapshot or make_snapshot(the_plan), the_statistics or make_statistics(the_plan)
    )


def names(checks):
    return [finding.check for finding in checks.findings]


def from_rows(the_plan, rows):
    return found(the_plan, statistics.build_statistics(the_plan, make_snapshot(the_plan), rows))


def test_good_data_passes_without_a_word(small_plan):
    require_passed(found(small_plan), "checks.json")
    checks = found(small_plan)
    assert checks.passed
    assert checks.findings == ()
    assert documents.Checks.parse(checks.to_bytes()) == checks


def test_a_window_behind_the_end_of_the_data_says_when_to_look(small_plan):
    """The way out is a time, where the spec knows it."""
    data = small_plan.spec.data.model_copy(update={"days": (date(2001, 1, 1), date(2001, 2, 3))})
    ended = small_plan.model_copy(update={"spec": small_plan.spec.model_copy(update={"data": data})})
    words = found(ended, make_statistics(ended, rows={})).findings[0].message
    assert words.endswith("as_of to 2001-02-05T00:00:00Z")


@pytest.mark.parametrize(
    ("changes", "check", "words"),
    [
        ({"rows": {"train": 80, "validation": 9, "test": 10}}, "min_rows", "99 examples are too few"),
        ({"rows": {}}, "empty_window", "look at the source tables"),
        ({"rows": {"train": 120, "validation": 10}}, "empty_split", "the test split is empty"),
        ({"rate": 0.6}, "label_rate", "0.600 of the labels of train are positive, outside 0.1 to 0.5"),
        ({"rate": 0.01}, "label_rate", "has its meaning changed?"),
        ({"nulls": 9}, "max_null_fraction", "11.2% of distance is missing in train"),
    ],
    ids=["few", "none", "no test", "high rate", "low rate", "nulls"],
)
def test_bad_data_blocks(small_plan, changes, check, words):
    checks = found(small_plan, make_statistics(small_plan, **changes))
    assert not checks.passed
    assert check in names(checks)
    assert words in " ".join(finding.message for finding in checks.findings)
    with refuses(DataError, where="checks.json", found="block", way_out="force"):
        require_passed(checks, "checks.json")


def test_an_empty_validation_split_of_whole_days_has_a_way_out():
    """A table of months that says it has days enough."""
    plan = make_plan(make_spec(data={**make_spec().data.model_dump(mode="json"), "validation_by": "days"}))
    (finding,) = found(plan, make_statistics(plan, rows={"train": 120, "test": 30})).findings
    assert (finding.check, finding.severity) == ("empty_split", "block")
    assert finding.message.endswith("set data.validation_by: rows, as few days have rows")


def test_a_bound_itself_is_still_allowed(small_plan):
    assert found(small_plan, make_statistics(small_plan, rate=0.5)).passed
    assert found(small_plan, make_statistics(small_plan, rate=0.1)).passed
    assert found(small_plan, make_statistics(small_plan, rows={"train": 80, "validation": 10, "test": 10})).passed


@pytest.mark.parametrize(
    ("distinct", "nulls", "check"),
    [(119, 0, "duplicate_keys"), (119, 1, "null_keys")],
)
def test_a_key_twice_or_missing_blocks(small_plan, distinct, nulls, check):
    rows = statistics_rows()
    rows[0] |= {"distinct_count": distinct, "nulls": nulls}
    checks = from_rows(small_plan, rows)
    assert names(checks) == [check]
    assert not checks.passed


def test_a_missing_label_blocks(small_plan):
    rows = statistics_rows()
    rows[1]["nulls"] = 3
    assert names(from_rows(small_plan, rows)) == ["label_nulls"]


def test_a_constant_number_or_category_warns(small_plan):
    rows = statistics_rows(carriers={"UA": 1.0})
    for row in rows:
        if row["section"] == "numeric":
            row |= {"low": 7.0, "high": 7.0}
    checks = from_rows(small_plan, rows)
    assert checks.passed
    assert [(finding.check, finding.feature, finding.severity) for finding in checks.findings] == [
        ("constant", "carrier", "warn"),
        ("constant", "distance", "warn"),
    ]


def test_a_feature_without_any_value_blocks():
    spec = make_spec(data={**make_spec().data.model_dump(mode="json"), "checks": {"min_rows": 1}})
    checks = found(make_plan(spec), make_statistics(make_plan(spec), nulls=80))
    assert "all_null" in names(checks)
    assert not checks.passed


@pytest.mark.parametrize(("severity", "passed", "count"), [("warn", True, 1), ("block", False, 1), ("ignore", True, 0)])
def test_a_new_category_in_the_test_days_is_as_severe_as_the_spec_says(severity, passed, count):
    data = make_spec().data.model_dump(mode="json")
    data["checks"]["on_new_category"] = severity
    the_plan = make_plan(make_spec(data=data))
    rows = statistics_rows()
    rows.append({**rows[-1], "value": "ZZ", "row_count": 1})
    checks = from_rows(the_plan, rows)
    assert checks.passed is passed
    assert len(checks.findings) == count
    assert all("'ZZ'" in finding.message for finding in checks.findings)


def test_examples_without_a_time_are_tested_on_rows(small_plan):
    """Days are of those that have one."""
    rows = statistics_rows()
    rows.append({**rows[-1], "value": "ZZ", "row_count": 1})
    by_hash = make_plan(make_spec(data={"query": "late/examples.sql", "key": "id", "split": "hash"}), sql="SELECT 1")
    (of_hash,), (of_days,) = (
        [finding.message for finding in from_rows(plan, rows).findings if finding.check == "new_category"]
        for plan in (by_hash, small_plan)
    )
    assert "in the test rows" in of_hash
    assert "in the test days" in of_days


def test_missing_columns_are_named_with_a_suggestion(small_plan):
    columns = columns_of.own_columns([{**c, "name": c["name"].replace("late", "laet")} for c in SCHEMA])
    checks = found(small_plan, the_snapshot=make_snapshot(small_plan).model_copy(update={"columns": columns}))
    (finding,) = (item for item in checks.findings if item.check == "columns")
    assert finding.severity == "block"
    assert "label" in finding.message
    assert "'laet'" in finding.message


@pytest.mark.parametrize(
    ("name", "kind", "mode", "words"),
    [
        ("distance", "STRING", "NULLABLE", "distance is STRING and cannot be a numeric feature: cast it in the query"),
        ("carrier", "FLOAT", "NULLABLE", "carrier is FLOAT"),
        ("carrier", "DATE", "NULLABLE", "carrier is DATE and cannot be a categorical feature: cast it in the query"),
        ("late", "NUMERIC", "NULLABLE", "late is NUMERIC and cannot be a binary label: cast it in the query"),
        ("id", "JSON", "NULLABLE", "id is JSON and cannot be the key"),
        ("late", "STRING", "NULLABLE", "late is STRING"),
        ("at", "STRING", "NULLABLE", "at is STRING"),
        ("distance", "FLOAT", "REPEATED", "distance is an array"),
    ],
)
def test_a_type_that_does_not_fit_the_kind_blocks(small_plan, name, kind, mode, words):
    schema = [{**column, "type": kind, "mode": mode} if column["name"] == name else column for column in SCHEMA]
    checks = found(small_plan, the_snapshot=make_snapshot(small_plan, schema=schema))
    assert names(checks) == ["types"]
    assert words in checks.findings[0].message


@pytest.mark.parametrize(
    ("changes", "column", "type_", "words"),
    [
        (
            {"evaluation": {"min_value": 0.6, "slices": ["distance"]}},
            "distance",
            "FLOAT",
            "distance is FLOAT and cannot be a slice: evaluate by another column",
        ),
        (
            {"training": {"model": "wide_deep", **BY_TENSORFLOW_IO}},
            "distance",
            "NUMERIC",
            "distance is NUMERIC and cannot be read from the table itself: cast it in the query",
        ),
        ({"training": {"model": "wide_deep", "input": "csv"}}, "more", "BYTES", "which a CSV file cannot hold"),
    ],
    ids=["slice", "bigquery", "csv"],
)
def test_what_only_this_spec_cannot_read_blocks(changes, column, type_, words):
    """The same column is fine for the model without the change."""
    columns = columns_of.own_columns(
        [*(item for item in SCHEMA if item["name"] != column), {"name": column, "type": type_}]
    )
    assert not list(mismatches(make_spec(), columns))
    (found_one,) = mismatches(make_spec(**changes), columns)
    assert words in found_one.message


def rows_with(section, **values):
    """The good rows with other facts about a feature; of categories one per row."""
    rows = statistics_rows()
    places = [row for row in rows if row["section"] == section]
    for place, row in enumerate(places):
        row.update({name: value[place % 2] if isinstance(value, tuple) else value for name, value in values.items()})
    return rows


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (rows_with("numeric", correlation=1.0), "distance and the label late have a correlation of 1.00000"),
        (rows_with("numeric", correlation=-0.9995), "distance and the label late have a correlation of -0.99950"),
        (rows_with("category", low=(0.0, 1.0), high=(0.0, 1.0)), "each of the 2 categories of carrier has one late"),
        (rows_with("numeric", by_label=[*range(201), *range(300, 501)]), "distance alone tells the rows of late 1"),
        (rows_with("numeric", by_label=[*range(300, 501), *range(201)]), "distance alone tells the rows of late 1"),
        (rows_with("category", mean=(0.0001, 0.9999), row_count=500), "carrier alone tells the rows of late 1"),
        (rows_with("numeric", by_label=[*range(201), *range(150, 351)]), None),
        (rows_with("numeric", by_label=[5.0] * 402), None),
        (rows_with("numeric", by_label=[1.0] * 201), None),
        (rows_with("category", mean=(0.1, 0.9), row_count=500), None),
        (rows_with("numeric", correlation=0.99), None),
        (rows_with("numeric", correlation=float("nan")), None),
        (rows_with("category", low=(0.0, 0.0), high=(0.0, 1.0)), None),
        (rows_with("category", low=0.0, high=0.0), None),
        (rows_with("category", low=(0.0, 1.0), high=(0.0, 1.0), distinct_count=9), None),
    ],
    ids=[
        "the label itself",
        "turned round",
        "a class each",
        "a number that is larger where it is 1",
        "a number that is smaller",
        "a category that is nearly the label",
        "numbers that overlap",
        "one value",
        "one label among the numbers",
        "a strong category",
        "nearly",
        "never changes",
        "one category is mixed",
        "one label",
        "by chance",
    ],
)
def test_a_feature_that_gives_the_label_away_is_named(small_plan, rows, words):
    """As a warning, with the way out; the run goes on."""
    checks = from_rows(small_plan, rows)
    assert checks.passed
    assert names(checks) == (["label_leak"] if words else [])
    if words:
        assert checks.findings[0].message.startswith(words)
        assert "out of the query" in checks.findings[0].message


def with_feature(name, **options):
    spec = make_spec().model_dump(mode="json")
    features = [{**feature, **options} if feature["name"] == name else feature for feature in spec["features"]]
    return make_plan(make_spec(features=features))


def test_a_logarithm_of_what_has_none_blocks():
    rows = statistics_rows()
    for row in rows:
        if row["section"] == "numeric":
            row |= {"low": -1.0}
    checks = from_rows(with_feature("distance", transform="log1p"), rows)
    assert not checks.passed
    assert {(finding.check, finding.feature, finding.severity) for finding in checks.findings} == {
        ("transform", "distance", "block")
    }
    assert "-1 in train" in checks.findings[0].message
    assert from_rows(make_plan(), rows).passed


@pytest.mark.parametrize(("hash_buckets", "warned"), [(None, ["cut_vocabulary"]), (64, [])])
def test_a_category_cut_in_most_rows_warns_unless_it_is_hashed(hash_buckets, warned):
    rows = statistics_rows(carriers={f"C{index:02}": 0.05 for index in range(20)})
    checks = from_rows(with_feature("carrier", max_vocabulary=2, hash_buckets=hash_buckets), rows)
    assert checks.passed
    assert [finding.check for finding in checks.findings] == warned
