"""A model's own checks in SQL: each row that a query gives is a violation.

In: a plan with the queries' texts. Out: statements that ask for a query's columns, before there is a run table, and for
the count of its rows with the first keys. No other value of a row leaves BigQuery.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from retraining.core.data.class_names import class_parameters, with_class_numbers
from retraining.core.data.snapshot import query_parameters
from retraining.core.data.source_files import with_files
from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.checks import AssertionResult
from retraining.core.documents.plan import Plan
from retraining.core.naming import bigquery
from retraining.core.spec.data import Assertion
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.sql_file import without_semicolon

MOST_KEYS = 5
_MOST_CHARACTERS = 100
_SCALARS = frozenset({"STRING", "INTEGER", "INT64", "NUMERIC", "BIGNUMERIC", "DATE", "DATETIME", "TIMESTAMP", "TIME"})
"""Types of keys that a message can show."""


def where_of(plan: Plan, name: str) -> str:
    """Return what messages call a check."""
    return f"assertion {name}, {plan.assertions[name].path}"


def render_asked_columns_sql(spec: ModelSpec, examples: str, sql: str, parameters: Sequence[Parameter]) -> Query:
    """Return a check's query for a dry run before there is a run table: columns, and about what would be read.

    Args:
        spec: Of the model.
        examples: Text of its examples query.
        sql: Text of the check's.
        parameters: What both may use.
    """
    examples = with_class_numbers(with_files(examples, spec.data, None), spec)
    values = {"table": None, "examples": examples, "query": without_semicolon(sql), "counted": False}
    return Query(sql=render("assertion.sql.j2", **values), parameters=(*parameters, *class_parameters(spec)))


def render_planned_columns_sql(plan: Plan, name: str) -> Query:
    """Return the same of a plan's check."""
    return render_asked_columns_sql(plan.spec, plan.query.sql, plan.assertions[name].sql, query_parameters(plan))


def render_columns_sql(plan: Plan, name: str, left_out: Sequence[date] = ()) -> Query:
    """Return a check's query over the run table, for a dry run that asks for its columns."""
    return _over_run_table(plan, name, left_out, counted=False)


def render_count_sql(plan: Plan, name: str, left_out: Sequence[date] = (), *, keyed: bool) -> Query:
    """Return the statement of one row: `row_count`, and where rows have the examples' key the `first_keys`.

    Args:
        plan: The run.
        name: Of the check.
        left_out: Days that the run goes on without.
        keyed: Whether its rows have the key.
    """
    return _over_run_table(plan, name, left_out, counted=True, key=plan.spec.data.key if keyed else None)


def _over_run_table(plan: Plan, name: str, left_out: Sequence[date], **values: object) -> Query:
    sql = render(
        "assertion.sql.j2",
        table=bigquery.run_table(plan),
        query=without_semicolon(plan.assertions[name].sql),
        left_out=bool(left_out),
        most_keys=MOST_KEYS,
        **values,
    )
    days = Parameter(name="left_out", type="DATE", value=tuple(day.isoformat() for day in left_out))
    return Query(sql=sql, parameters=(*query_parameters(plan), *((days,) if left_out else ())))


def has_key(plan: Plan, schema: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether rows of these columns have the examples' key, as a value that a message can show."""
    key = plan.spec.data.key.lower()
    return any(
        str(column["name"]).lower() == key and column["type"] in _SCALARS and column.get("mode") != "REPEATED"
        for column in schema
    )


def result_of(plan: Plan, asked: Assertion, row: Mapping[str, Any], bytes_processed: int) -> AssertionResult:
    """Return what a check found, of the row of `render_count_sql`."""
    query = plan.assertions[asked.name]
    return AssertionResult(
        name=asked.name,
        severity=asked.severity,
        query=query.path,
        sha256=query.sha256,
        rows=int(row["row_count"]),
        keys=tuple(str(key)[:_MOST_CHARACTERS] for key in row.get("first_keys") or () if str(key)),
        bytes_processed=bytes_processed,
    )


def not_asked(plan: Plan, asked: Assertion, reason: str) -> AssertionResult:
    """Return that BigQuery refused a check, and why."""
    query = plan.assertions[asked.name]
    return AssertionResult(
        name=asked.name,
        severity=asked.severity,
        query=query.path,
        sha256=query.sha256,
        rows=None,
        not_asked=reason,
    )
