"""Patches numbers with a fraction that are written into a NUMERIC: they were rounded by their binary digits.

`INSERT INTO t (price) VALUES (1.005)` of a `NUMERIC(5, 2)` is 1.01, as the literal is taken for a NUMERIC; as a FLOAT64
it is 1.00. Source: "Literal coercion" in cloud.google.com/bigquery/docs/reference/standard-sql/conversion_rules.
"""

from __future__ import annotations

import functools

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.signatures import columns_of_table
from localcloud.bigquery.types.trees import only_tree
from localcloud.bigquery.types.written import ColumnsOf, assignments_of
from localcloud.untyped import Untyped


def apply(executor: Untyped) -> None:
    """Rewrite each statement before it is translated, also those of scripts."""
    from bqemulator.scripting import interpreter

    translate = executor.rewrite_and_translate_statement

    @functools.wraps(translate)
    async def translate_exact(bq_sql: str, **kwargs: Untyped) -> str:
        statement = rewrite(bq_sql, lambda table: columns_of_table(table, kwargs["project_id"], kwargs["ctx"]))
        return str(await translate(statement, **kwargs))

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = translate_exact


def rewrite(statement: str, columns_of: ColumnsOf) -> str:
    """Return a statement whose literals are of the type of the column that they are written into."""
    tree = only_tree(statement)
    if not isinstance(tree, exp.Insert | exp.Update | exp.Merge):
        return statement
    found = [(kind, value) for kind, value in assignments_of(tree, columns_of) if _is_exact(kind) and _is_number(value)]
    for kind, value in found:
        literal = exp.Literal.string(value.sql(dialect="bigquery"))
        name = "BIGNUMERIC" if kind.is_type("bigdecimal") else "NUMERIC"
        exact = exp.cast(literal, name, dialect="bigquery")
        is_column = isinstance(value.parent, exp.Select) and bool(value.output_name)
        value.replace(exp.alias_(exact, value.output_name, quoted=True) if is_column else exact)
    return str(tree.sql(dialect="bigquery")) if found else statement


def _is_exact(kind: exp.DataType) -> bool:
    return bool(kind.is_type("decimal", "bigdecimal"))


def _is_number(value: exp.Expression) -> bool:
    """Return whether a value is a FLOAT64 that is written there."""
    literal = value.this if isinstance(value, exp.Neg) else value
    return isinstance(literal, exp.Literal) and not literal.is_string and not literal.is_int
