"""Patches arrays with a NULL in them that are written: the service refuses them, DuckDB keeps them.

In: a statement in GoogleSQL, the columns of its tables. Out: the statement, which ends with an error where a value for
a column that is an array has a NULL: in INSERT, UPDATE, MERGE, and in CREATE TABLE AS SELECT where the type of a column
of the query is known. Source: "Working with arrays" in cloud.google.com/bigquery/docs/arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.signatures import columns_of_table
from localcloud.bigquery.patches.sql.calls import call
from localcloud.bigquery.types.trees import only_tree
from localcloud.bigquery.types.typed import kind_of, typed_queries
from localcloud.bigquery.types.written import ColumnsOf, assignments_of
from localcloud.untyped import Untyped


def apply(executor: Untyped) -> None:
    """Rewrite each statement before it is translated, also those of scripts."""
    from bqemulator.scripting import interpreter

    translate = executor.rewrite_and_translate_statement

    @functools.wraps(translate)
    async def translate_full(bq_sql: str, **kwargs: Untyped) -> str:
        statement = rewrite(bq_sql, lambda table: columns_of_table(table, kwargs["project_id"], kwargs["ctx"]))
        return str(await translate(statement, **kwargs))

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = translate_full


def rewrite(statement: str, columns_of: ColumnsOf) -> str:
    """Return a statement that writes no array with a NULL; the same where it writes none."""
    tree = only_tree(statement)
    if tree is None:
        return statement
    values = [value for value in _arrays(tree, columns_of) if not _is_full(value)]
    for value in values:
        full = call("localcloud_full", value, type_=None)
        is_column = isinstance(value.parent, exp.Select) and bool(value.output_name)
        value.replace(exp.alias_(full, value.output_name, quoted=True) if is_column else full)
    return str(tree.sql(dialect="bigquery")) if values else statement


def _arrays(tree: exp.Expression, columns_of: ColumnsOf) -> Iterator[exp.Expression]:
    """Give the values that a statement writes into arrays, the nodes themselves."""
    if not isinstance(tree, exp.Create):
        yield from (value for kind, value in assignments_of(tree, columns_of) if kind.is_type("array"))
        return
    query = tree.expression
    if tree.kind != "TABLE" or not isinstance(query, exp.Select) or query.is_star:
        return
    for typed in typed_queries(query, columns_of):
        if isinstance(typed, exp.Select) and len(typed.selects) == len(query.selects):
            for known, value in zip(typed.selects, query.selects, strict=True):
                if kind_of(known.unalias()).startswith("ARRAY<"):
                    yield value.unalias()


def _is_full(value: exp.Expression) -> bool:
    """Return whether a value surely has no NULL in it: an array of literals, or no array at all."""
    if isinstance(value, exp.Array):
        return all(isinstance(each, exp.Literal | exp.Struct) for each in value.expressions)
    return isinstance(value, exp.Null | exp.Var) or (isinstance(value, exp.Column) and value.name.upper() == "DEFAULT")
