"""The run table's SQL, and what its fingerprints say."""

from __future__ import annotations

import itertools
import math
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retraining.core import documents
from retraining.core.data import snapshot
from retraining.core.errors import DataError
from retraining.core.spec.data import takes_whole_days
from tests.support.refusals import refuses
from tests.support.small_model import SCHEMA, SQL, fingerprint_rows, make_plan, make_snapshot, make_spec


def test_values_are_parameters_and_only_names_are_rendered(small_plan):
    query = snapshot.render_snapshot_sql(small_plan)
    values = {parameter.name: (parameter.type, parameter.value) for parameter in query.parameters}
    assert values == {
        "window_start": ("TIMESTAMP", "2013-11-09T00:00:00Z"),
        "window_end": ("TIMESTAMP", "2013-11-19T00:00:00Z"),
        "as_of": ("TIMESTAMP", "2013-11-20T03:00:00Z"),
        "validation_percent": ("INT64", 10),
        "rows_per_shard": ("INT64", 100_000),
        "bytes_per_shard": ("INT64", 64_000_000),
    }
    assert "2013" not in query.sql.replace(small_plan.run_key.replace("-", "_"), "")
    assert all(f"@{name}" in query.sql for name in ("window_start", "window_end", "validation_percent"))


def test_the_statement_makes_one_clustered_table_that_expires(small_plan):
    sql = snapshot.render_snapshot_sql(small_plan).sql
    table = f"`my-project.retraining.run_late__{small_plan.run_key.replace('-', '_')}`"
    assert sql.startswith(f"CREATE OR REPLACE TABLE {table}\nCLUSTER BY span, part, shard\n")
    assert "TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 7 DAY)" in sql
    assert SQL.rstrip(";") in sql
    assert ";" not in sql
    assert "examples.`at`" in sql
    assert "examples.`id`" in sql


def test_a_comment_at_the_querys_end_does_not_swallow_the_rest():
    sql = snapshot.render_snapshot_sql(make_plan(sql="SELECT 1 AS id -- the end")).sql
    assert "-- the end\n)" in sql


def test_the_dry_run_is_of_the_query_alone(small_plan):
    query = snapshot.render_examples_check_sql(small_plan)
    assert query.sql == SQL
    assert [parameter.name for parameter in query.parameters] == ["window_start", "window_end", "as_of"]


def test_new_spans_are_exported_and_stored_ones_reused(small_plan):
    first = make_snapshot(small_plan)
    assert [(span.action, span.reason) for span in first.spans] == [("export", "new span")] * 3
    stored = {str(span.span): {span.fingerprint: None} for span in first.spans[:2]}
    second = make_snapshot(small_plan, stored=stored)
    assert [span.action for span in second.spans] == ["reuse", "reuse", "export"]
    assert second.spans[0].reason == "same fingerprint as stored"


def test_a_changed_old_span_is_exported_again_and_named(small_plan):
    old = make_snapshot(small_plan)
    stored = {str(span.span): {span.fingerprint: 99} for span in old.spans}
    changed = fingerprint_rows("2013-11-10", "2013-11-16", "2013-11-17")
    changed[0]["bit_xor"] = "99"
    found = make_snapshot(small_plan, fingerprint_rows=changed, stored=stored)
    assert [span.action for span in found.spans] == ["export", "reuse", "reuse"]
    assert snapshot.changed_spans(changed, stored) == ["2013-11-10"]
    was = f"other content than stored: {old.spans[0].fingerprint[:8]} (99 rows)"
    assert found.spans[0].reason == f"changed: {was}"
    assert found.explain[0] == f"2013-11-10: changed, 100 rows, because {was}"
    assert found.explain[1].startswith("2013-11-16: reused, 100 rows")


def test_what_no_span_holds_is_said(small_plan):
    left_out = snapshot.left_out_of({"future": 3, "latest": date(2099, 1, 2), "undated": 1})
    found = make_snapshot(small_plan, left_out=left_out)
    assert found.explain[-2:] == (
        "left out: 3 events after today, the last one on 2099-01-02",
        "left out: 1 events without a time",
    )
    nothing = snapshot.left_out_of({"future": 0, "latest": None, "undated": 0})
    assert len(make_snapshot(small_plan, left_out=nothing).explain) == len(found.spans)


def test_spans_are_in_order_of_time_whatever_the_rows_order(small_plan):
    rows = fingerprint_rows("2013-11-10", "2013-11-16", "2013-11-17")
    for row in rows:
        row["span"] = date.fromisoformat(row["span"])
    assert make_snapshot(small_plan, fingerprint_rows=rows[::-1]) == make_snapshot(small_plan)
    rows[0]["span"] = datetime(2013, 11, 10)
    assert make_snapshot(small_plan, fingerprint_rows=rows) == make_snapshot(small_plan)


def test_a_snapshot_survives_storage(small_plan):
    found = make_snapshot(small_plan)
    assert documents.Snapshot.parse(found.to_bytes()) == found
    assert found.bytes_processed == 12345


def test_an_empty_window_is_said_with_its_days(small_plan):
    with refuses(DataError, found="2013-11-09 and 2013-11-19 (exclusive)"):
        make_snapshot(small_plan, fingerprint_rows=[])


def test_a_feature_the_query_does_not_give_is_named_with_a_suggestion(small_plan):
    schema = [{**column, "name": column["name"].replace("carrier", "carier")} for column in SCHEMA]
    with refuses(DataError, where="late/examples.sql", found="'carrier'", way_out="'carier'"):
        make_snapshot(small_plan, schema=schema)


PARTS = st.lists(
    st.tuples(
        st.sampled_from(["train", "validation"]),
        st.integers(0, 10**9),
        st.integers(-(2**63), 2**63 - 1).map(str),
        st.integers(-(10**28), 10**28).map(str),
        st.integers(1, 100),
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda part: part[0],
)


@given(PARTS)
def test_a_fingerprint_does_not_depend_on_the_order_of_parts(parts):
    assert snapshot.span_fingerprint(parts) == snapshot.span_fingerprint(parts[::-1])
    assert len(snapshot.span_fingerprint(parts)) == 32


@given(PARTS, st.integers(1, 4))
def test_a_fingerprint_changes_with_every_number(parts, position):
    first = list(parts[0])
    first[position] = first[position] + 1 if isinstance(first[position], int) else first[position] + "0"
    assert snapshot.span_fingerprint([tuple(first), *parts[1:]]) != snapshot.span_fingerprint(parts)


def test_the_scale_of_a_sum_is_no_difference(small_plan):
    rows = fingerprint_rows("2013-11-10", "2013-11-16", "2013-11-17")
    written = [{**row, "hash_sum": row["hash_sum"] + ".00000"} for row in rows]
    assert make_snapshot(small_plan, fingerprint_rows=written) == make_snapshot(small_plan)


def test_keeping_the_table_and_shard_size_come_from_the_spec():
    data = {**make_spec().data.model_dump(mode="json"), "keep_table_days": 3, "rows_per_shard": 5000}
    query = snapshot.render_snapshot_sql(make_plan(make_spec(data=data)))
    assert "INTERVAL 3 DAY" in query.sql
    assert {p.name: p.value for p in query.parameters}["rows_per_shard"] == 5000


def test_a_run_table_that_is_made_again_has_the_same_data(small_plan):
    recorded = make_snapshot(small_plan)
    snapshot.require_same_data(recorded, make_snapshot(small_plan))
    other = make_snapshot(small_plan, fingerprint_rows=fingerprint_rows("2013-11-10", "2013-11-16"))
    with refuses(DataError, found="other data"):
        snapshot.require_same_data(recorded, other)


@pytest.mark.parametrize("percent", [1, 5, 10, 20, 33, 50])
def test_no_window_that_takes_whole_days_is_without_one(percent):
    """By the rule of the template, over a century; of the shortest such windows none has more than four."""
    length = next(days for days in itertools.count(1) if takes_whole_days(days, percent))
    taken = [abs(math.fmod(day * 618034, 1_000_000)) < percent * 10_000 for day in range(-4000, 32_000)]
    counts = {sum(taken[start : start + length]) for start in range(len(taken) - length)}
    assert 1 <= min(counts) <= max(counts) <= 4
