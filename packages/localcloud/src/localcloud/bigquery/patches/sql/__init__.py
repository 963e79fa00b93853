"""One file per fault of bqemulator's translation of SQL: what is wrong, and the rewrite that avoids it.

A rewrite gets the syntax tree of one statement in GoogleSQL, changes it in place, and tells whether anything in it was
concerned. A script's statements come one by one, when they run.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping

import duckdb
from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches import declared_columns, numerics, parameter_names
from localcloud.bigquery.patches.sql import (
    array_indexes,
    arrays_without_nulls,
    bounds,
    byte_literals,
    calls,
    cast_formats,
    column_names,
    concatenations,
    conversions,
    dates,
    decimals,
    deletes,
    divisions,
    element_names,
    json_arrays,
    json_encodings,
    like_escapes,
    literal_times,
    merged_rows,
    nan_orders,
    nested_keys,
    not_a_number,
    offset_names,
    operators,
    overflows,
    refused_functions,
    selected_structs,
    strict_casts,
    strict_json,
    struct_fields,
    struct_positions,
    sums,
    table_paths,
    text_escapes,
    text_functions,
    text_lengths,
    time_formats,
    top_counts,
)
from localcloud.bigquery.types import expressions
from localcloud.bigquery.types.trees import only_tree
from localcloud.refusals import NotOfferedError
from localcloud.untyped import Untyped

REWRITES: tuple[Callable[[exp.Expression], bool], ...] = (
    parameter_names.rewrite,
    table_paths.rewrite,
    cast_formats.rewrite,
    literal_times.rewrite,  # before all that looks at times
    array_indexes.rewrite,
    element_names.rewrite,
    offset_names.rewrite,
    top_counts.rewrite,
    arrays_without_nulls.rewrite,
    struct_fields.rewrite,
    selected_structs.rewrite,
    struct_positions.rewrite,
    refused_functions.rewrite,
    concatenations.rewrite,
    byte_literals.rewrite,
    text_functions.rewrite,
    bounds.rewrite,
    decimals.rewrite,  # before the divisions, and behind what looks at their divisors
    divisions.rewrite,
    operators.rewrite,
    overflows.rewrite,
    strict_casts.rewrite,
    conversions.rewrite,  # before those that make casts
    json_encodings.rewrite,
    strict_json.rewrite,
    json_arrays.rewrite,
    nested_keys.rewrite,
    time_formats.rewrite,
    dates.rewrite,
    column_names.rewrite,
    declared_columns.rewrite,
    deletes.rewrite,
    merged_rows.rewrite,
    like_escapes.rewrite,
    text_lengths.rewrite,
    numerics.rewrite,
    not_a_number.rewrite,
    sums.rewrite,
    nan_orders.rewrite,  # the last: another query may stand in the place of the statement
)

_MACROS = {
    **dates.MACROS,
    **conversions.MACROS,
    **bounds.MACROS,
    **time_formats.MACROS,
    **operators.MACROS,
    **overflows.MACROS,
    **nested_keys.MACROS,
    **not_a_number.MACROS,
    **nan_orders.MACROS,
    **decimals.MACROS,
    **sums.MACROS,
    **json_arrays.MACROS,
    **json_encodings.MACROS,
    **concatenations.MACROS,
    **offset_names.MACROS,
    **strict_casts.MACROS,
    **strict_json.MACROS,
    **text_functions.MACROS,
    **array_indexes.MACROS,
    **arrays_without_nulls.MACROS,
}
"""DuckDB's, which statements call after they were rewritten: what stands for each call."""


_FUNCTIONS = (
    ("localcloud_encoded", json_encodings.encoded, ["VARCHAR", "VARCHAR", "BOOLEAN"], "VARCHAR"),
    ("localcloud_json_keys", nested_keys.json_keys, ["VARCHAR", "BIGINT"], "VARCHAR[]"),
    ("localcloud_replaced", nested_keys.replaced, ["BLOB"], "VARCHAR"),
    ("localcloud_quotient", sums.quotients, ["VARCHAR", "VARCHAR"], "VARCHAR"),
    ("localcloud_product", sums.products, ["VARCHAR", "VARCHAR"], "VARCHAR"),
    ("localcloud_stripped", strict_json.stripped, ["VARCHAR"], "VARCHAR"),
)
"""Python's, which macros call: name, function over columns, its parameters' types, its answer's."""


def register_functions(connection: Untyped) -> None:
    """Register what rewritten statements call."""
    for name, function, parameters, answer in _FUNCTIONS:
        with contextlib.suppress(duckdb.Error):  # a session of the same connection has it
            connection.remove_function(name)
        connection.create_function(name, function, parameters, answer, type="arrow", null_handling="special")
    register_macros(connection)


def register_macros(connection: Untyped) -> None:
    """Register the macros that rewritten statements call: each connection to a database has its own."""
    connection.execute(top_counts.MACRO)
    for head, body in calls.with_once(_MACROS).items():
        connection.execute(f"CREATE OR REPLACE TEMP MACRO {head} AS {body}")


def apply(executor: Untyped) -> None:
    """Rewrite each statement before it is translated, also those of scripts."""
    from bqemulator.domain.errors import UnsupportedFeatureError
    from bqemulator.scripting import interpreter
    from bqemulator.sql import translator
    from bqemulator.sql.catalog_schema import build_catalog_schema

    # It would write into texts, too; the columns that it stands for are refused.
    translator.rewrite_partition_pseudo_columns = lambda statement: statement
    translate = executor.rewrite_and_translate_statement

    @functools.wraps(translate)
    async def translate_rewritten(bq_sql: str, **kwargs: Untyped) -> str:
        tables = build_catalog_schema(bq_sql, project_id=kwargs["project_id"], catalog=kwargs["ctx"].catalog)
        try:
            statement = rewrite(bq_sql, tables)
        except NotOfferedError as error:
            raise UnsupportedFeatureError(str(error)) from error
        return str(await translate(statement, **kwargs))

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = translate_rewritten
    run = interpreter.ScriptInterpreter.run

    @functools.wraps(run)
    async def run_with_characters(self: Untyped, source: str) -> Untyped:
        return await run(self, text_escapes.with_characters(source))  # a script writes its statements anew

    interpreter.ScriptInterpreter.run = run_with_characters


def rewrite(statement: str, tables: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """Return a statement that bqemulator understands as BigQuery understands the original.

    Args:
        tables: by the last name of each table that is known its columns' DuckDB types.

    Raises:
        NotOfferedError: it asks for what is not offered.
    """
    statement = text_escapes.with_characters(statement)
    tree = only_tree(statement)
    if tree is None or isinstance(tree, exp.Command):
        return statement
    expressions.remember_columns(tree, tables or {})
    changed = [rewrite_one(tree) for rewrite_one in REWRITES]
    tree = tree.meta.get(nan_orders.INSTEAD, tree)
    _name_called_fields(tree)
    return str(tree.sql(dialect="bigquery")) if any(changed) else statement


def _name_called_fields(tree: exp.Expression) -> None:
    """Keep a struct's field its name where a macro gives its value: beneath UNNEST beside a table DuckDB loses it."""
    for struct in tree.find_all(exp.Struct):
        for field in struct.expressions:
            value = field.expression if isinstance(field, exp.PropertyEQ) else field
            if isinstance(value, exp.Anonymous):
                value.replace(exp.Coalesce(this=value.copy(), expressions=[]))
