"""Patches structs that become another struct's type: DuckDB matches their fields by name, the service by position.

`INSERT INTO t VALUES (STRUCT(1 AS b, 2 AS a))` wrote the first value into `a`'s field `a` only where that came second,
and was an error where no name was the same. In: a statement in GoogleSQL, the columns of its table. Out: the statement
whose constructors name their fields as the type does: in a CAST, INSERT, UPDATE and MERGE. A struct that is no
constructor, as a column of another table, stays as it is. Source: "Casting as STRUCT" in
cloud.google.com/bigquery/docs/reference/standard-sql/conversion_functions.
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
    async def translate_named(bq_sql: str, **kwargs: Untyped) -> str:
        statement = rewrite(bq_sql, lambda table: columns_of_table(table, kwargs["project_id"], kwargs["ctx"]))
        return str(await translate(statement, **kwargs))

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = translate_named


def rewrite(statement: str, columns_of: ColumnsOf) -> str:
    """Return a statement whose constructors have the names of what they become; the same where they had them."""
    tree = only_tree(statement)
    if tree is None:
        return statement
    targets = [(cast.this, cast.to) for cast in tree.find_all(exp.Cast)]
    targets += [(value, kind) for kind, value in assignments_of(tree, columns_of)]
    changed = False
    for value, kind in reversed(targets):  # from within
        named = _named(value, kind)
        if named is not value:
            value.replace(named)
            changed = True
    return str(tree.sql(dialect="bigquery")) if changed else statement


def _named(value: exp.Expression, kind: exp.DataType) -> exp.Expression:
    """Return a value whose constructors have the names of a type; the value itself where they had them."""
    match value:
        case exp.Cast():
            wanted, inner = _named_type(value.to, kind), _named(value.this, kind)
            same = wanted is value.to and inner is value.this
            return value if same else type(value)(this=inner.copy(), to=wanted.copy())  # SAFE_CAST stays one
        case exp.Paren():
            inner = _named(value.this, kind)
            return value if inner is value.this else exp.paren(inner)
        case exp.Array() if kind.is_type("array"):
            elements = [_named(element, kind.expressions[0]) for element in value.expressions]
            same = all(new is old for new, old in zip(elements, value.expressions, strict=True))
            return value if same else exp.Array(expressions=[each.copy() for each in elements])
        case exp.Struct() | exp.Tuple() if len(fields := _fields(kind)) == len(value.expressions):
            return _named_fields(value, fields)
    return value


def _named_fields(value: exp.Expression, fields: list[exp.ColumnDef]) -> exp.Expression:
    same, named = True, []
    for field, given in zip(fields, value.expressions, strict=True):
        name, old = (given.name, given.expression) if isinstance(given, exp.PropertyEQ) else ("", given)
        new = _named(old, field.args["kind"])
        same &= new is old and name.lower() == field.name.lower()
        named.append(exp.PropertyEQ(this=exp.to_identifier(field.name, quoted=True), expression=new.copy()))
    return value if same else exp.Struct(expressions=named)


def _named_type(given: exp.DataType, kind: exp.DataType) -> exp.DataType:
    """Return a type whose fields have the names that those of another have; the type itself where they had them."""
    both = list(zip(given.find_all(exp.ColumnDef), kind.find_all(exp.ColumnDef), strict=False))
    if all(own.name.lower() == other.name.lower() for own, other in both):
        return given
    named = given.copy()
    for own, other in zip(named.find_all(exp.ColumnDef), kind.find_all(exp.ColumnDef), strict=False):
        own.set("this", other.this.copy())
    return named


def _fields(kind: exp.DataType) -> list[exp.ColumnDef]:
    return [each for each in kind.expressions if isinstance(each, exp.ColumnDef)] if kind.is_type("struct") else []
