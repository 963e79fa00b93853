"""Patches `CREATE TABLE t (a INT64 NOT NULL, b STRING) AS SELECT …`: DuckDB takes columns or a query.

bqemulator casts the columns of a SELECT that are written out. A `*`, a query of another form and another number of
columns would be a syntax error, and NOT NULL would be lost. A column made of one of NUMERIC(5, 2) would have its
digits, and round what is put into it later: the type of a query's column has none.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.trees import trees_of
from localcloud.untyped import Untyped

_DIGITS = """SELECT column_name, data_type
FROM duckdb_columns()
WHERE schema_name = ? AND table_name = ? AND data_type LIKE 'DECIMAL(%)'
  AND data_type NOT IN ('DECIMAL(38,9)', 'DECIMAL(38,10)')"""


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
        for tree in filter(_is_made_of_query, trees_of(bq_sql)):
            target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
            where = ddl_sync._split_target(target, project_id)
            if all(where):
                table = quoted_table_ref(*where)
                for change in _changes(tree, ctx.engine, where):
                    ctx.engine.execute(f"ALTER TABLE {table} ALTER COLUMN {change}")
        register(bq_sql, project_id, ctx)

    executor.sync_created_table = register_required


def _changes(tree: exp.Expression, engine: Untyped, where: tuple[str, str, str]) -> Iterator[str]:
    """Yield what a table that was made of a query is to be told of its columns."""
    declared = _declared(tree)
    with_digits = {each.name.lower() for each in declared if each.args.get("kind") and each.args["kind"].expressions}
    for name, _ in engine.execute(_DIGITS, [f"{where[0]}__{where[1]}", where[2]]).fetchall():
        if name.lower() not in with_digits:
            yield f"{exp.to_identifier(name, quoted=True).sql('duckdb')} TYPE DECIMAL(38, 9)"
    for column in filter(_is_required, declared):
        yield f"{exp.to_identifier(column.name, quoted=True).sql('duckdb')} SET NOT NULL"


def _is_made_of_query(tree: exp.Expression | None) -> bool:
    return isinstance(tree, exp.Create) and tree.kind == "TABLE" and isinstance(tree.expression, exp.Query)


def _declared(tree: exp.Expression | None) -> Sequence[exp.ColumnDef]:
    """Return the columns that a CREATE TABLE … AS names; none of other statements."""
    if tree is None or not _is_made_of_query(tree):
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
