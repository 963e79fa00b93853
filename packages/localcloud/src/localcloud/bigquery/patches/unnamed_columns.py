"""Patches CREATE TABLE or VIEW … AS SELECT with a column that has no name: the service refuses it."""

from __future__ import annotations

import functools

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.column_names import output_name, result_of
from localcloud.bigquery.types.trees import only_tree
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
    tree = only_tree(statement)
    if not isinstance(tree, exp.Create) or tree.kind not in ("TABLE", "VIEW"):
        return ""
    if isinstance(tree.this, exp.Schema):  # the statement names them itself
        return ""
    select = result_of(tree.expression) if tree.expression else None
    for number, column in enumerate(select.expressions if select else [], 1):
        if not output_name(column):
            return f"CREATE {tree.kind} columns must be named, but column {number} has no name"
    return ""
