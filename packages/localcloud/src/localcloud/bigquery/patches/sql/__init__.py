"""One file per fault of bqemulator's translation of SQL: what is wrong, and the rewrite that avoids it.

A rewrite gets the syntax tree of one statement in GoogleSQL, changes it in place, and tells whether anything in it was
concerned. A script's statements come one by one, when they run.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

import duckdb
import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.bigquery.patches import numerics
from localcloud.bigquery.patches.sql import (
    array_indexes,
    arrays_without_nulls,
    bounds,
    byte_literals,
    column_names,
    conversions,
    dates,
    deletes,
    divisions,
    nested_keys,
    offset_names,
    operators,
    overflows,
    selected_structs,
    struct_fields,
    text_escapes,
    time_formats,
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
    bounds.rewrite,
    divisions.rewrite,
    operators.rewrite,
    overflows.rewrite,
    conversions.rewrite,  # before those that make casts
    nested_keys.rewrite,
    time_formats.rewrite,
    dates.rewrite,
    column_names.rewrite,
    deletes.rewrite,
    numerics.rewrite,
)

_MACROS = {
    **dates.MACROS,
    **conversions.MACROS,
    **bounds.MACROS,
    **time_formats.MACROS,
    **operators.MACROS,
    **overflows.MACROS,
    **nested_keys.MACROS,
}
"""DuckDB's, which statements call after they were rewritten: what stands for each call."""


_FUNCTIONS = (
    ("localcloud_json_numbers", conversions.json_numbers, ["VARCHAR"], "VARCHAR"),
    ("localcloud_json_keys", nested_keys.json_keys, ["VARCHAR", "BIGINT"], "VARCHAR[]"),
    ("localcloud_replaced", nested_keys.replaced, ["BLOB"], "VARCHAR"),
)
"""Python's, which macros call: name, function over columns, its parameters' types, its answer's."""


def register_functions(connection: Untyped) -> None:
    """Register what rewritten statements call."""
    for name, function, parameters, answer in _FUNCTIONS:
        with contextlib.suppress(duckdb.Error):  # a session of the same connection has it
            connection.remove_function(name)
        connection.create_function(name, function, parameters, answer, type="arrow", null_handling="special")
    connection.execute(top_counts.MACRO)
    for head, body in _MACROS.items():
        connection.execute(f"CREATE OR REPLACE TEMP MACRO {head} AS {body}")


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
    statement = text_escapes.with_characters(statement)
    try:
        trees = sqlglot.parse(statement, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return statement  # bqemulator says what is wrong with it
    if len(trees) != 1 or trees[0] is None or isinstance(trees[0], exp.Command):
        return statement
    changed = [rewrite_one(trees[0]) for rewrite_one in REWRITES]
    return str(trees[0].sql(dialect="bigquery")) if any(changed) else statement
