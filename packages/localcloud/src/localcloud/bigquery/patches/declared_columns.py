"""Patches `CREATE TABLE t (a INT64 NOT NULL, b STRING) AS SELECT …`: DuckDB takes columns or a query.

bqemulator casts the columns of a SELECT that are written out. A `*`, a query of another form and another number of
columns would be a syntax error, and NOT NULL would be lost.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.trees import trees_of
from localcloud.untyped import Untyped


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether it is concerned."""
    columns = _declared(tree)
    if not columns or (_writes_out(tree.expression, len(columns)) and not any(map(_is_required, columns))):
        return False
    # The first of the two names the columns and gives each a type; it has no rows.
    empty = exp.select(*[exp.alias_(exp.cast(exp.null(), _kind_of(each)), each.this.copy()) for each in columns])
    empty = empty.from_(exp.select("1").subquery()).where(exp.false())
    rows = exp.union(empty, exp.select("*").from_(tree.expression.copy().subquery()), distinct=False)
    tree.set("expression", exp.select(*map(_value_of, columns)).from_(rows.subquery()))
    tree.set("this", tree.this.this.copy())
    return True


def apply(executor: Untyped) -> None:
    """Let columns stay REQUIRED where a statement that created a table from a query says so."""
    from bqemulator.catalog import ddl_sync
    from bqemulator.storage.sql_identifiers import quoted_table_ref

    register = executor.sync_created_table

    @functools.wraps(register)
    def register_required(bq_sql: str, project_id: str, ctx: Untyped) -> None:
        for tree in trees_of(bq_sql):
            names = [each.name for each in _declared(tree) if _is_required(each)]
            where = ddl_sync._split_target(tree.this.this, project_id) if names else ()
            if all(where):
                for name in names:
                    column = exp.to_identifier(name, quoted=True).sql("duckdb")
                    ctx.engine.execute(f"ALTER TABLE {quoted_table_ref(*where)} ALTER COLUMN {column} SET NOT NULL")
        register(bq_sql, project_id, ctx)

    executor.sync_created_table = register_required


def _declared(tree: exp.Expression | None) -> Sequence[exp.ColumnDef]:
    """Return the columns that a CREATE TABLE … AS names; none of other statements."""
    if not isinstance(tree, exp.Create) or tree.kind != "TABLE" or not isinstance(tree.expression, exp.Query):
        return []
    named = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    return [each for each in named if isinstance(each, exp.ColumnDef)]


def _writes_out(query: exp.Expression, number: int) -> bool:
    """Return whether a query has as many columns, each written out, without parentheses around it."""
    while isinstance(query, exp.SetOperation):
        query = query.this
    return isinstance(query, exp.Select) and len(query.expressions) == number and not query.is_star


def _is_required(column: exp.ColumnDef) -> bool:
    constraints = (each.kind for each in column.args.get("constraints") or [])
    return any(
        isinstance(each, exp.NotNullColumnConstraint) and not each.args.get("allow_null") for each in constraints
    )


def _kind_of(column: exp.ColumnDef) -> exp.DataType:
    """Return a column's type as a cast has it, without what its fields are held to."""
    kind = column.kind.copy()
    for field in kind.find_all(exp.ColumnDef):
        field.set("constraints", None)
    return kind


def _value_of(column: exp.ColumnDef) -> exp.Expression:
    value: exp.Expression = exp.cast(exp.column(column.this.copy()), _kind_of(column))
    if _is_required(column):
        refusal = exp.Literal.string(f"Required field {column.name} cannot be null")
        value = exp.Coalesce(this=value, expressions=[exp.Anonymous(this="ERROR", expressions=[refusal])])
    return exp.alias_(value, column.this.copy())
