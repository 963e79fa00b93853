"""The frozen set: examples that every run's models are judged on, and that never train.

Its table is made once per text of its query and is never replaced. What it held then is written down; a table that
holds anything else later is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from retraining.core.data.class_names import (
    class_parameters,
    render_unlisted_sql,
    shown_texts,
    unlisted_texts,
    with_class_numbers,
)
from retraining.core.data.columns import own_columns
from retraining.core.data.snapshot import shard_parameters, span_fingerprint
from retraining.core.data.sql import Query, render
from retraining.core.documents.plan import Plan
from retraining.core.documents.plan import Query as RecordedQuery
from retraining.core.documents.snapshot import Column, FrozenSet, GoldenWork
from retraining.core.errors import ContractError, DataError
from retraining.core.naming import bigquery
from retraining.core.spec.sql_file import without_semicolon

SPAN = "golden"
"""Its name in the span store."""


def render_frozen_set_check_sql(plan: Plan) -> Query:
    """Return the query alone, for a dry run."""
    return Query(sql=_query(plan).sql)


def render_frozen_set_sql(plan: Plan) -> Query:
    """Return the statement that makes the table of the frozen set unless it is there.

    Its query's rows, shard and row hash.
    """
    data = plan.spec.data
    query = with_class_numbers(without_semicolon(_query(plan).sql), plan.spec)
    sql = render("golden.sql.j2", table=bigquery.frozen_set_table(plan), query=query, key=data.key)
    return Query(sql=sql, parameters=(*shard_parameters(data), *class_parameters(plan.spec)))


def render_frozen_set_unlisted_sql(plan: Plan) -> Query:
    """Return the query of the labels' texts that the spec does not list, see `class_names`."""
    return render_unlisted_sql(without_semicolon(_query(plan).sql), plan.spec, (), in_window=False)


def require_listed(plan: Plan, rows: Iterable[Mapping[str, Any]]) -> None:
    """Refuse texts of labels that the spec does not list, before the table is made: it stays as it is then.

    Args:
        plan: The run.
        rows: Result of `render_frozen_set_unlisted_sql`.

    Raises:
        DataError: There are some.
    """
    for name, texts in unlisted_texts(rows).items():
        raise DataError(
            f"{_query(plan).path}, column {name}",
            f"texts that are no class: {shown_texts(texts)}",
            "those that classes of the label lists, or NULL",
            "Add them to classes, or leave their rows out in the query",
        )


def render_frozen_set_fingerprint_sql(plan: Plan) -> Query:
    """Return the query of one row: `row_count, bit_xor, hash_sum, shards`."""
    return Query(sql=render("fingerprint.sql.j2", table=bigquery.frozen_set_table(plan), grouped=False))


def build_frozen_set(plan: Plan, rows: Sequence[Mapping[str, Any]]) -> FrozenSet:
    """Return what the table holds.

    Args:
        plan: The run.
        rows: Result of `render_frozen_set_fingerprint_sql`.

    Raises:
        DataError: It holds nothing.
    """
    query = _query(plan)
    row = rows[0]
    if not row["row_count"]:
        raise DataError(
            query.path,
            "no example",
            "a frozen set with examples",
            f"Correct the query, and drop the empty table {bigquery.frozen_set_table(plan)}",
        )
    shards = max(1, int(row["shards"]))
    sum_ = str(row["hash_sum"]).split(".")[0]  # some engines write the zeros of a NUMERIC's scale
    return FrozenSet(
        model=plan.model,
        run_key=plan.run_key,
        query=query.path,
        sql_sha256=query.sha256,
        table=bigquery.frozen_set_table(plan),
        fingerprint=span_fingerprint([(SPAN, int(row["row_count"]), str(row["bit_xor"]), sum_, shards)]),
        rows=int(row["row_count"]),
        shards=shards,
    )


def require_frozen(current: FrozenSet, recorded: FrozenSet, where: str) -> None:
    """Refuse a frozen set that is not what it was.

    Args:
        current: What the table holds now.
        recorded: What it held when it was first made.
        where: Address of the latter.

    Raises:
        DataError: They differ.
    """
    if current.fingerprint != recorded.fingerprint:
        raise DataError(
            current.table,
            f"{current.rows} rows, fingerprint {current.fingerprint[:8]}: the frozen set has changed",
            f"{recorded.rows} rows, fingerprint {recorded.fingerprint[:8]}, as {where} has it",
            "Restore the table (FOR SYSTEM_TIME AS OF), or change the query's text: a new text is a new frozen set",
        )


def require_same_columns(
    plan: Plan, columns: Sequence[Column], frozen_schema: Iterable[Column | Mapping[str, Any]]
) -> None:
    """Refuse a frozen set that the examples' files could not hold.

    Args:
        plan: The run.
        columns: The examples query's own.
        frozen_schema: Of the frozen set's table.

    Raises:
        DataError: A column is missing or has another type or mode; names all of them.
    """
    query = _query(plan)
    by_name = {column.name: column for column in own_columns(frozen_schema, query.path)}
    wrong = [
        f"{column.name} ({_kind(by_name.get(column.name))}, not {_kind(column)})"
        for column in columns
        if _kind(by_name.get(column.name)) != _kind(column)
    ]
    if wrong:
        raise DataError(
            query.path,
            f"other columns than {plan.query.path}: {', '.join(wrong)}",
            "each of its columns, with the same type",
            f"Change the query; its table {bigquery.frozen_set_table(plan)} is then another",
        )


def frozen_set_work(frozen: FrozenSet, stored: Collection[str]) -> GoldenWork:
    """Return what the export has to do with it.

    Args:
        frozen: The set.
        stored: Fingerprints of frozen sets that the span store has whole.
    """
    there = frozen.fingerprint in stored
    return GoldenWork(
        table=frozen.table,
        fingerprint=frozen.fingerprint,
        rows=frozen.rows,
        shards=frozen.shards,
        action="reuse" if there else "export",
        reason="same fingerprint as stored" if there else "not stored in this form yet",
    )


def _query(plan: Plan) -> RecordedQuery:
    if plan.golden_query is None:
        raise ContractError("plan.json", "no golden_query", "one")
    return plan.golden_query


def _kind(column: Column | None) -> str:
    if column is None:
        return "missing"
    return f"{column.type} REPEATED" if column.mode == "REPEATED" else column.type
