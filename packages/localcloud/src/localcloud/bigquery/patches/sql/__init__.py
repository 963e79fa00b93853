"""One file per fault of bqemulator's translation of SQL: what is wrong, and the rewrite that avoids it.

A rewrite gets the syntax tree of one statement in GoogleSQL, changes it in place, and tells whether anything in it was
concerned. A script's statements come one by one, when they run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.bigquery.patches import numerics
from localcloud.bigquery.patches.sql import (
    array_indexes,
    arrays_without_nulls,
    byte_literals,
    column_names,
    divisions,
    offset_names,
    selected_structs,
    struct_fields,
    top_counts,
)
from localcloud.untyped import Untyped

REWRITES: tuple[Callable[[exp.Expression], bool], ...] = (
    array_indexes.rewrite,
    offset_names.rewrite,
    top_counts.rewrite,
    arrays_without_nulls.rewrite,
    struct_fields.rewrite,
    selected_structs.rewrite,
    byte_literals.rewrite,
    divisions.rewrite,
    column_names.rewrite,
    numerics.rewrite,
)


def apply(executor: Untyped) -> None:
    """Rewrite each statement before it is translated, also those of scripts."""
    from bqemulator.scripting import interpreter

    translate = executor.rewrite_and_translate_statement

    @functools.wraps(translate)
    async def translate_rewritten(bq_sql: str, **kwargs: Untyped) -> str:
        return str(await translate(rewrite(bq_sql), **kwargs))

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = translate_rewritten


def rewrite(statement: str) -> str:
    """Return a statement that bqemulator understands as BigQuery understands the original."""
    try:
        trees = sqlglot.parse(statement, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return statement  # bqemulator says what is wrong with it
    if len(trees) != 1 or trees[0] is None or isinstance(trees[0], exp.Command):
        return statement
    changed = [rewrite_one(trees[0]) for rewrite_one in REWRITES]
    return str(trees[0].sql(dialect="bigquery")) if any(changed) else statement
