"""Patches CREATE TABLE or VIEW … AS SELECT with a column that has no name: the service refuses it."""

from __future__ import annotations

import functools

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.bigquery.patches.sql.column_names import output_name, result_of
from localcloud.untyped import Untyped


def apply(executor: Untyped) -> None:
    """Refuse such statements before they are translated."""
    from bqemulator.domain.errors import InvalidQueryError

    translate = executor.rewrite_and_translate_statement

    @functools.wraps(translate)
    async def translate_named(bq_sql: str, **kwargs: Untyped) -> str:
        if complaint := complaint_of(bq_sql):
            raise InvalidQueryError(complaint)
        return str(await translate(bq_sql, **kwargs))

    executor.rewrite_and_translate_statement = translate_named


def complaint_of(statement: str) -> str:
    """Return what the service says of a CREATE TABLE or VIEW … AS SELECT with a column without a name; else "".

    Columns are counted from 1.
    """
    try:
        trees = sqlglot.parse(statement, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return ""
    if len(trees) != 1 or not isinstance(trees[0], exp.Create) or trees[0].kind not in ("TABLE", "VIEW"):
        return ""
    if isinstance(trees[0].this, exp.Schema):  # the statement names them itself
        return ""
    select = result_of(trees[0].expression) if trees[0].expression else None
    for number, column in enumerate(select.expressions if select else [], 1):
        if not output_name(column):
            return f"CREATE {trees[0].kind} columns must be named, but column {number} has no name"
    return ""
