"""The SELECT behind a read session: chosen columns and a row restriction, refused when they are not what they claim.

In: a table, its columns, selected fields and a restriction in GoogleSQL. Out: one statement for DuckDB, and the columns
it gives. bqemulator drops a restriction that it cannot translate and returns every row, and knows no nested fields;
here the one is an error and the other works, as in the service.
"""

from __future__ import annotations

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.bigquery.patches import sql
from localcloud.bigquery.types.columns import ColumnType, quoted, read_expression
from localcloud.refusals import NotOfferedError


class RestrictionError(ValueError):
    """The session's options are invalid (answered as INVALID_ARGUMENT)."""


def select_statement(
    *, project: str, source: str, columns: list[ColumnType], selected: list[str], restriction: str
) -> tuple[str, list[ColumnType]]:
    """Return the DuckDB statement that reads a session's rows, and the columns of its result.

    Args:
        source: the table, as GoogleSQL names it.
        columns: the table's columns in order.
        selected: names of columns, all when empty, also nested fields (`a.b`); they come in the table's order, whatever
            the order here.
        restriction: condition on a row, for example `span = "2013-11-01" AND part = 'train'`; "" for none.

    Raises:
        RestrictionError: an unknown column or field, or a restriction that is not one condition on a row.
    """
    chosen = _choose(columns, selected)
    statement = f"SELECT * FROM {source}"  # noqa: S608 - names from the catalog
    if restriction.strip():
        _check(restriction, {column.name.lower() for column in columns})
        statement += f" WHERE {restriction}"
    values = [f"{read_expression(column, quoted(column.name))} AS {quoted(column.name)}" for column in chosen]
    return f"SELECT {', '.join(values)} FROM ({_translate(statement, project)}) AS rows", chosen  # noqa: S608


def _choose(columns: list[ColumnType], selected: list[str]) -> list[ColumnType]:
    paths = {tuple(name.lower().split(".")) for name in selected}
    known = {column.name.lower(): column for column in columns}
    missing = [
        name
        for name in selected
        for first, *rest in [name.lower().split(".")]
        if first not in known or not known[first].has_field(tuple(rest))
    ]
    if missing:
        raise RestrictionError(f"request failed: selected fields {', '.join(missing)} do not exist in the table schema")
    top_names = {path[0] for path in paths} or set(known)
    return [
        column.prune({path[1:] for path in paths if path[0] == column.name.lower()} or {()})
        for column in columns
        if column.name.lower() in top_names
    ]


def _check(restriction: str, known: set[str]) -> None:
    where = f"request failed: Query error: row filter `{restriction}`"
    try:
        trees = sqlglot.parse(f"SELECT 1 FROM t WHERE {restriction}", read="bigquery")  # noqa: S608 - parsed only
    except sqlglot.errors.SqlglotError as error:
        raise RestrictionError(f"{where}: {str(error).splitlines()[0]}") from None
    tree = trees[0] if len(trees) == 1 and isinstance(trees[0], exp.Select) else None
    clauses = {name for name, value in tree.args.items() if value} if tree else set()
    if tree is None or "where" not in clauses or not clauses <= {"expressions", "from", "from_", "where"}:
        raise RestrictionError(f"{where} is not one condition on a row")
    condition = tree.args["where"].this
    if next(condition.find_all(exp.Query, exp.AggFunc, exp.Window, exp.Placeholder, exp.Parameter), None) is not None:
        raise RestrictionError(f"{where}: subqueries, aggregates and parameters are not allowed")
    if not isinstance(condition, exp.Condition) or isinstance(condition, exp.Literal):
        raise RestrictionError(f"{where} is not a condition")
    for column in condition.find_all(exp.Column):
        if column.parts[0].name.lower() not in known:
            raise RestrictionError(f"{where}: Unrecognized name: {column.sql()}")


def _translate(statement: str, project: str) -> str:
    from bqemulator.sql.table_rewriter import rewrite_table_refs
    from bqemulator.sql.translator import SQLTranslator

    try:
        result = SQLTranslator().translate(sql.rewrite(statement))
    except NotOfferedError as error:
        raise RestrictionError(f"request failed: Query error: {error}") from error
    if not hasattr(result, "value"):
        raise RestrictionError(f"request failed: Query error: {getattr(result, 'error', result)}")
    return str(rewrite_table_refs(result.value, project))
