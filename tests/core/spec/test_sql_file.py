"""A file of SQL is one SELECT with its parameters, or is refused with the line."""

from __future__ import annotations

import pytest

from retraining.core import settings
from retraining.core.errors import SpecError
from retraining.core.spec.sql_file import AS_OF, PARAMETERS, require_select, require_time_travel, without_semicolon
from tests.support.refusals import refuses

WHERE = "WHERE t >= @window_start AND t < @window_end AND t < @as_of"


@pytest.mark.parametrize(
    "path", sorted((settings.include_path() / "sql").rglob("*.sql")), ids=lambda path: path.parent.name
)
def test_the_repositorys_queries_are_taken(path):
    required, optional = (PARAMETERS, ()) if path.stem == "examples" else ((), AS_OF)  # what is scored needs none
    require_select(path.read_text(encoding="utf-8"), path.name, required, optional)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT 1 {WHERE}",
        f"select 1 {WHERE.upper()} ; -- done; really\n# and so\n/* ; */",
        f"WITH a AS (SELECT ';)' AS x, \"--\" AS y) SELECT * FROM a {WHERE}",
        f"(SELECT 1 FROM `a;b` {WHERE})",
        f"-- ( ' ;\nSELECT '''it's; ''' || r\"\\\"(\" {WHERE}",
        f"SELECT @@session_id, 'a\\'b;' {WHERE}",
    ],
)
def test_one_select_is_taken(sql):
    require_select(sql, "q.sql", PARAMETERS)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("", "no statement"),
        ("-- nothing\n", "no statement"),
        (
            f"SELECT 1 {WHERE};\nDROP TABLE a",
            r"q.sql, line 2: 'DROP' after the first semicolon. Expected one statement",
        ),
        ("DELETE FROM a WHERE TRUE", "begins with DELETE. Expected one SELECT"),
        ("CREATE TABLE a AS SELECT 1", "begins with CREATE"),
        ("DECLARE x INT64", "begins with DECLARE"),
        (f"SELECT 1 {WHERE}) , evil AS (SELECT 2", "line 1: a parenthesis that closes nothing"),
        ("SELECT (1", r"1 \( that are not closed"),
        ("SELECT 'a\n' ", r"line 1: ' that is not closed"),
        ("SELECT 1 /* \n", r"line 1: /\* that is not closed"),
        (
            "SELECT 1 WHERE t >= @window_start AND t < @window_end",
            r"no @as_of in it. Expected a query that uses each of",
        ),
        ("SELECT '@window_start @window_end @as_of'", r"no @window_start in it"),
        (f"SELECT @windowstart {WHERE}", r"unknown parameter @windowstart.* Did you mean 'window_start'"),
        ("SELECT " + "1," * 600_000, "at most 1,000,000, BigQuery's limit"),
    ],
    ids=lambda value: value[:30],
)
def test_anything_else_is_refused(sql, words):
    with pytest.raises(SpecError, match=words):
        require_select(sql, "q.sql", PARAMETERS)


def test_a_frozen_set_takes_no_parameter():
    require_select("SELECT 1", "golden.sql", ())
    with refuses(SpecError, found="@as_of", expected="none"):
        require_select("SELECT @as_of", "golden.sql", ())


def test_a_query_of_examples_without_a_time_may_use_as_of_alone():
    require_select("SELECT 1", "q.sql", (), AS_OF)
    require_select("SELECT @AS_OF", "q.sql", (), AS_OF)
    with refuses(SpecError, found="@window_start", expected="one of: @as_of"):
        require_select("SELECT @window_start", "q.sql", (), AS_OF)


@pytest.mark.parametrize(
    ("sql", "left"), [("SELECT 1 ;\n-- done;", "SELECT 1"), ("SELECT ';' ;", "SELECT ';'"), ("SELECT 1\n", "SELECT 1")]
)
def test_what_follows_the_semicolon_is_left_out(sql, left):
    assert without_semicolon(sql) == left


AT = "FOR SYSTEM_TIME AS OF"


def test_time_travel_is_said_by_the_query_and_checked_by_the_key():
    require_time_travel(f"SELECT 1 FROM a {AT} @as_of JOIN b for system_time as of @AS_OF", "q.sql", asked=True)
    require_time_travel(f"SELECT '{AT} x' -- {AT} y", "q.sql", asked=False)


@pytest.mark.parametrize(
    ("sql", "asked", "words"),
    [
        ("SELECT 1 FROM a", True, "no FOR SYSTEM_TIME AS OF @as_of in the query"),
        (f"SELECT 1 FROM a {AT} @as_of", False, "and no data.time_travel"),
        (f"SELECT 1 FROM a {AT} @as_of JOIN b {AT} CURRENT_TIMESTAMP()", True, f"{AT} CURRENT_TIMESTAMP. Expected"),
    ],
    ids=["no-clause", "no-key", "another-time"],
)
def test_time_travel_to_another_time_is_refused(sql, asked, words):
    with pytest.raises(SpecError, match=words):
        require_time_travel(sql, "q.sql", asked=asked)
