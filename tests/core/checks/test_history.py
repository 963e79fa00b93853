"""A run's data against earlier runs: what is compared, where the bounds lie, and that a verdict can be replayed."""

from __future__ import annotations

from datetime import date

import pytest

from retraining.core import documents as d
from retraining.core.checks import history
from retraining.core.checks.history import build_history, passed_runs
from retraining.core.data import statistics
from tests.support.small_model import (
    SCHEMA,
    check_small_data,
    day_rows,
    make_plan,
    make_snapshot,
    make_spec,
    make_statistics,
    statistics_rows,
)

RUNS_URI = "gs://my-retraining/late/runs"


def with_data(**changes):
    data = make_spec().data.model_dump(mode="json")
    checks = {**data["checks"], **changes.pop("checks", {})}
    return make_plan(make_spec(data={**data, **changes, "checks": checks}))


def earlier(*volumes, schema=None, carriers=None):
    """Documents of runs of so many rows in nine days each, newest first, as they are stored."""
    the_plan, stored = make_plan(), []
    for index, rows in enumerate(volumes):
        volume = rows if isinstance(rows, d.Volume) or rows is None else d.Volume(rows=rows, days=9, data_version=1)
        verdict = check_small_data(the_plan, make_snapshot(the_plan), make_statistics(the_plan))
        verdict = verdict.model_copy(update={"volume": volume})
        stored.append((f"{RUNS_URI}/201311{19 - index}t030000z-0123456789ab/checks.json", verdict.to_bytes()))
    last = stored[0][0].rpartition("/")[0]
    taken = make_snapshot(the_plan, **({"schema": schema} if schema else {}))
    stored.append((f"{last}/snapshot.json", taken.to_bytes()))
    stored.append((f"{last}/statistics.json", make_statistics(the_plan, carriers=carriers).to_bytes()))
    return build_history(stored)


def judge(the_plan, the_history, *, rows=None, schema=None, **changes):
    taken = make_snapshot(the_plan, **({"schema": schema} if schema else {}))
    found = statistics.build_statistics(the_plan, taken, rows or statistics_rows(**changes))
    return check_small_data(the_plan, taken, found, the_history)


def of_check(judged, check):
    return [finding for finding in judged.findings if finding.check == check]


def test_the_first_run_has_nothing_to_be_compared_with():
    judged = judge(make_plan(), history.NO_HISTORY)
    assert judged.findings == ()
    assert judged.compared_with == ()
    assert judged.volume == d.Volume(rows=120, days=9, data_version=1)


def test_the_first_night_of_an_empty_source_is_no_division_by_zero():
    the_plan = with_data(checks={"min_rows": 1})
    assert judge(the_plan, earlier(120), rows=statistics_rows(rows={})).volume == d.Volume(
        rows=0, days=0, data_version=1
    )
    assert of_check(judge(the_plan, earlier(d.Volume(rows=0, days=0, data_version=1), None)), "max_volume_change") == []


@pytest.mark.parametrize(
    ("before", "limit", "found"),
    [
        ((80, 100, 300), 0.2, []),  # 120 are a fifth more than the median of 100
        ((80, 100, 300), 0.19, ["(120 in 9 days)", "20% more than in the last 3 runs"]),
        ((240,), 0.5, []),
        ((241,), 0.5, ["50% fewer than in the last run:"]),
        ((100, 300), 0.4, []),  # the median of two lies between them
        ((1000, 1000), None, []),
        ((0, 0), 0.5, []),
    ],
    ids=["on the upper bound", "more", "on the lower bound", "fewer", "two runs", "not checked", "from nothing"],
)
def test_rows_per_day_may_differ_so_much_from_the_median(before, limit, found):
    judged = judge(with_data(checks={"max_volume_change": limit}), earlier(*before))
    findings = of_check(judged, "max_volume_change")
    assert len(findings) == bool(found)
    for finding in findings:
        assert finding.severity == "block"
        assert all(words in finding.found + finding.message for words in found)
        assert finding.compared_with == tuple(
            f"{RUNS_URI}/201311{19 - index}t030000z-0123456789ab/checks.json" for index in range(len(before))
        )


def test_three_tenths_are_three_tenths():
    """130 rows are not over 0.3 more than 100, whatever floating point says."""
    judged = judge(
        with_data(checks={"max_volume_change": 0.3}),
        earlier(100),
        rows=statistics_rows(rows={"train": 90, "validation": 10, "test": 30}),
    )
    assert of_check(judged, "max_volume_change") == []


def test_only_the_last_runs_count():
    judged = judge(with_data(checks={"volume_runs": 2}), earlier(120, 120, 9000, 9000, 9000))
    assert of_check(judged, "max_volume_change") == []


def test_a_longer_window_or_a_younger_source_is_no_change():
    """Rows per day are compared, from the first day that has rows."""
    run = d.Volume(rows=1200, days=90, data_version=1)
    assert of_check(judge(make_plan(), earlier(run)), "max_volume_change") == []


def test_a_gap_is_a_change():
    """Days without rows after the first one count."""
    rows = statistics_rows() + day_rows("train", "2013-11-09", 1)
    assert judge(make_plan(), earlier(120), rows=rows).volume == d.Volume(rows=121, days=10, data_version=1)


def test_a_raised_schema_version_begins_anew():
    assert of_check(judge(with_data(schema_version=2), earlier(9000)), "max_volume_change") == []


def changed_schema():
    dropped = [column for column in SCHEMA if column["name"] != "late"]
    retyped = [{**column, "type": "STRING"} if column["name"] == "distance" else column for column in dropped]
    return [*retyped, {"name": "late", "type": "INTEGER"}, {"name": "extra", "type": "DATE"}]


def test_other_columns_block_and_say_the_way_out():
    judged = judge(make_plan(), earlier(120, schema=[*changed_schema(), {"name": "gone", "type": "BYTES"}]))
    (finding,) = of_check(judged, "schema")
    assert finding.severity == "block"
    assert finding.found.startswith("removed extra (DATE)")
    assert "gone (BYTES)" in finding.found
    assert "from STRING to INTEGER" in finding.found
    assert "data.schema_version to 2" in finding.message
    assert "late/examples.sql" in finding.message
    assert finding.compared_with == (f"{RUNS_URI}/20131119t030000z-0123456789ab/snapshot.json",)


def test_an_added_column_is_named():
    judged = judge(make_plan(), earlier(120), schema=[*SCHEMA, {"name": "extra", "type": "DATE"}])
    assert [finding.found for finding in of_check(judged, "schema")] == ["added extra (DATE)"]


def test_other_columns_are_taken_once_the_spec_says_so_and_for_good():
    schema = [*SCHEMA, {"name": "extra", "type": "DATE"}]
    raised = with_data(schema_version=2)
    assert of_check(judge(raised, earlier(120), schema=schema), "schema") == []
    accepted = d.Volume(rows=120, days=9, data_version=2)
    assert len(of_check(judge(raised, earlier(accepted), schema=schema), "schema")) == 1


def test_the_order_of_columns_is_no_change():
    assert of_check(judge(make_plan(), earlier(120), schema=SCHEMA[::-1]), "schema") == []


@pytest.mark.parametrize(
    ("before", "tested", "found"),
    [
        ({"UA": 0.6, "AA": 0.4}, 30, []),
        ({"UA": 0.5, "AA": 0.1, "ZZ": 0.4}, 30, ["'ZZ' (40.0% before)"]),
        ({"UA": 0.5, "AA": 0.25, "ZZ": 0.25}, 39, []),  # 9.75 were to be expected
        ({"UA": 0.5, "AA": 0.25, "ZZ": 0.25}, 40, ["'ZZ' (25.0% before)"]),
    ],
    ids=["none", "gone", "by chance", "just enough"],
)
def test_a_category_with_a_share_before_and_none_in_the_test_days_has_vanished(before, tested, found):
    rows = {"train": 80, "validation": 10, "test": tested}
    judged = judge(make_plan(), earlier(120, carriers=before), rows=statistics_rows(rows=rows))
    findings = of_check(judged, "vanished_category")
    assert len(findings) == len(found)
    for finding in findings:
        assert finding.severity == "warn"
        assert found[0] in finding.message
        assert finding.compared_with == (f"{RUNS_URI}/20131119t030000z-0123456789ab/statistics.json",)


@pytest.mark.parametrize(("wanted", "severities"), [("ignore", []), ("block", ["block"])])
def test_a_vanished_category_is_as_severe_as_the_spec_says(wanted, severities):
    the_plan = with_data(checks={"on_vanished_category": wanted})
    judged = judge(the_plan, earlier(120, carriers={"UA": 0.5, "ZZ": 0.5}))
    assert [finding.severity for finding in of_check(judged, "vanished_category")] == severities


def test_what_was_compared_with_is_recorded_by_address_and_digest():
    judged = judge(make_plan(), earlier(120, 100))
    assert [item.uri.removeprefix(f"{RUNS_URI}/201311") for item in judged.compared_with] == [
        "19t030000z-0123456789ab/checks.json",
        "18t030000z-0123456789ab/checks.json",
        "19t030000z-0123456789ab/snapshot.json",
        "19t030000z-0123456789ab/statistics.json",
    ]


def test_a_quarantined_day_is_no_missing_volume():
    """Its rows are gone from the numerator and its day from the denominator."""
    the_plan = with_data(checks={"ranges": {"distance": [0, 20]}, "severity": {"ranges": "quarantine"}, "min_rows": 1})
    rows = statistics_rows() + day_rows("train", "2013-11-11", 60, outside=1)
    days = statistics.build_days(the_plan, rows)
    found = statistics.build_statistics(
        the_plan, make_snapshot(the_plan), statistics_rows(), days, (date(2013, 11, 11),)
    )
    assert history.volume_of(the_plan, found) == d.Volume(rows=120, days=8, data_version=1)


def test_only_runs_whose_data_passed_are_compared_with_and_no_more_are_read(small_plan):
    verdict = check_small_data(small_plan, make_snapshot(small_plan), make_statistics(small_plan))
    stopped = verdict.model_copy(update={"passed": False})
    asked = iter([("a", b"1", verdict), ("b", b"2", stopped), ("c", b"3", verdict), ("d", b"4", verdict)])
    assert passed_runs(asked, 2) == [("a", b"1"), ("c", b"3")]
    assert next(asked)[0] == "d"
