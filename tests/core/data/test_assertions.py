"""A model's own checks: their statements, what is read of the rows, and the findings."""

from __future__ import annotations

import json
from datetime import date

import pytest
from pydantic import ValidationError

from retraining.core import documents as d
from retraining.core.checks.assertions import assertion_findings
from retraining.core.checks.dataset import check_data, require_passed
from retraining.core.data import assertions
from retraining.core.errors import DataError, SpecError
from retraining.core.planning import plan as planning
from retraining.core.planning.upgrades import key_changes
from retraining.core.report.changes import differences
from retraining.core.spec.files import load_assertions
from tests.support.refusals import refuses
from tests.support.small_model import make_plan, make_snapshot, make_spec, make_statistics

SQL = "SELECT id FROM examples WHERE distance < 0; -- a semicolon"


def make_asserting(severity: str = "block", sql: str = SQL, **data: object) -> d.Plan:
    """A run of the small model with a check of its own."""
    asked = [{"name": "no_negative", "query": "late/no_negative.sql", "severity": severity}]
    values = {**make_spec().data.model_dump(mode="json"), "assertions": asked, **data}
    return make_plan(make_spec(data=values), assertions={"no_negative": sql})


def result(plan: d.Plan, rows: int, *keys: str) -> d.AssertionResult:
    """What its check found."""
    return assertions.result_of(plan, plan.spec.data.assertions[0], {"row_count": rows, "first_keys": list(keys)}, 99)


def test_examples_are_the_run_table_without_what_is_left_out_and_without_our_columns():
    plan = make_asserting()
    query = assertions.render_count_sql(plan, "no_negative", (date(2013, 11, 10),), keyed=True)
    assert "SELECT * EXCEPT (span, part, row_hash, shard) FROM `my-project.retraining.run_late__" in query.sql
    assert "WHERE span NOT IN UNNEST(@left_out)" in query.sql
    assert "WHERE distance < 0\n)" in query.sql  # it ends before its semicolon
    assert {item.name: item.value for item in query.parameters} == {
        "window_start": "2013-11-09T00:00:00Z",
        "window_end": "2013-11-19T00:00:00Z",
        "as_of": "2013-11-20T03:00:00Z",
        "left_out": ("2013-11-10",),
    }
    whole = assertions.render_columns_sql(plan, "no_negative")
    assert "left_out" not in whole.sql
    assert whole.sql.rstrip().endswith("SELECT * FROM violations")


def test_before_there_is_a_run_table_examples_are_what_the_query_gives():
    plan = make_asserting()
    query = assertions.render_planned_columns_sql(plan, "no_negative")
    assert "FROM source.rows WHERE at >= @window_start AND at < LEAST(@window_end, @as_of)\n)" in query.sql
    assert "run_late" not in query.sql


@pytest.mark.parametrize(
    ("columns", "keyed"),
    [
        ([{"name": "ID", "type": "STRING", "mode": "NULLABLE"}], True),
        ([{"name": "id", "type": "INTEGER"}], True),
        ([{"name": "id", "type": "STRING", "mode": "REPEATED"}], False),
        ([{"name": "id", "type": "RECORD", "mode": "NULLABLE"}], False),
        ([{"name": "carrier", "type": "STRING", "mode": "NULLABLE"}], False),
    ],
    ids=["another case", "a number", "several", "a record", "no key"],
)
def test_keys_are_read_where_rows_have_them(columns, keyed):
    plan = make_asserting()
    assert assertions.has_key(plan, columns) is keyed
    assert ("first_keys" in assertions.render_count_sql(plan, "no_negative", keyed=keyed).sql) is keyed


@pytest.mark.parametrize(
    ("severity", "rows", "keys", "messages"),
    [
        ("block", 0, (), []),
        ("block", 2, ("a", "b"), ["no_negative finds 2 rows, id a, b: correct the source, or the query late/no_neg"]),
        ("warn", 1200, ("a",), ["no_negative finds 1,200 rows, id a, …: correct the source"]),
        ("warn", 3, (), ["no_negative finds 3 rows: correct"]),
    ],
    ids=["held", "few", "more", "no keys"],
)
def test_a_finding_has_a_count_and_keys_and_the_severity_that_the_file_gives(severity, rows, keys, messages):
    plan = make_asserting(severity)
    checks = check_data(plan, make_snapshot(plan), make_statistics(plan), assertions=(result(plan, rows, *keys),))
    own = [item for item in checks.findings if item.check == "assertions.no_negative"]
    assert all(item.message.startswith(message) for item, message in zip(own, messages, strict=True))
    assert {item.severity for item in own} <= {severity}
    assert checks.passed == (severity == "warn" or rows == 0)
    assert d.Checks.parse(checks.to_bytes()) == checks
    if not checks.passed:
        with pytest.raises(DataError, match="no_negative finds 2 rows"):
            require_passed(checks, "checks.json")


def test_what_was_not_asked_is_a_finding():
    plan = make_asserting("warn")
    missing = assertions.not_asked(plan, plan.spec.data.assertions[0], "BigQuery refuses it")
    (found,) = assertion_findings(plan.spec, [missing])
    assert (found.severity, found.found) == ("warn", "not asked")
    assert "could not be asked: BigQuery refuses it" in found.message


def test_a_long_key_is_cut():
    plan = make_asserting()
    assert result(plan, 1, "x" * 500).keys == ("x" * 100,)


def test_another_text_is_another_run_and_a_plan_without_checks_is_as_before():
    plan, other, none = make_asserting(), make_asserting(sql="SELECT id FROM examples"), make_plan()
    assert len({plan.run_key, other.run_key, none.run_key}) == 3
    assert "assertions" not in none.to_json()
    assert "assertions" not in none.to_json()["spec"]["data"]
    assert [change.what for change in differences(plan, other)] == ["assertion no_negative"]
    assert key_changes(plan.to_bytes(), "plan.json") == []
    sha256 = plan.assertions["no_negative"].sha256[:16]
    assert f"assertion no_negative (block) of late/no_negative.sql, SHA-256 {sha256}" in planning.explain(plan)
    assert json.loads(plan.to_bytes())["assertions"]["no_negative"]["sql"] == SQL


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([{"name": "a", "query": "a.sql"}, {"name": "a", "query": "b.sql"}], "the name 'a' twice"),
        ([{"name": "a", "query": "late/../../a.sql"}], "must stay below include/sql"),
        ([{"name": "A b", "query": "a.sql"}], "name"),
        ([{"name": "a", "query": "a.sql", "severity": "quarantine"}], "severity"),
    ],
    ids=["twice", "outside", "no name", "of days"],
)
def test_what_a_file_may_not_say(asked, message):
    with pytest.raises(ValidationError, match=message):
        make_asserting(assertions=asked)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT id FROM examples; DROP TABLE x", "after the first semicolon"),
        ("DELETE FROM examples", "begins with DELETE"),
        ("SELECT id FROM examples WHERE at < @asof", "unknown parameter @asof"),
        ("", "is empty"),
        (None, "no file"),
    ],
    ids=["two statements", "no SELECT", "a parameter", "nothing", "no file"],
)
def test_a_file_that_is_no_check_is_refused_by_the_name_of_the_check(tmp_path, sql, found):
    (tmp_path / "sql" / "late").mkdir(parents=True)
    if sql is not None:
        (tmp_path / "sql" / "late" / "no_negative.sql").write_text(sql)
    with refuses(SpecError, where="late.yaml, data.assertions, no_negative", found=found):
        load_assertions(make_asserting().spec, tmp_path)


def test_a_file_may_use_the_parameters_of_examples_or_none(tmp_path):
    (tmp_path / "sql" / "late").mkdir(parents=True)
    path = tmp_path / "sql" / "late" / "no_negative.sql"
    for sql in ("SELECT 1 AS one", "SELECT id FROM s.rows WHERE at >= @window_start AND at < @as_of"):
        path.write_text(sql)
        assert load_assertions(make_asserting().spec, tmp_path) == {"no_negative": sql}
