"""Patches functions whose query reads a column of a parameter's name: the parameter would stand in the column's place.

`CREATE TABLE FUNCTION d.f(n INT64) AS (SELECT n FROM d.t)` gives the table's column `n` in BigQuery, and gave what `f`
was called with. A function like that is refused by name: another name for the parameter says which of both is meant.
"""

from __future__ import annotations

import functools

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.script_columns import Tables, is_column
from localcloud.bigquery.types.trees import trees_of
from localcloud.untyped import Untyped


def apply(routes: Untyped) -> None:
    """Refuse such functions before they are made."""
    from bqemulator.domain.errors import UnsupportedFeatureError

    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        if name := _column_of_a_parameters_name(bq_sql, Tables(ctx.engine, project_id)):
            raise UnsupportedFeatureError(
                f"The local cloud has no function with a parameter {name} whose query reads a column of that name: give"
                " the parameter another name"
            )
        return await original(project_id, job_id, bq_sql, params, ctx, **kwargs)

    routes.execute_query_job = execute


def _column_of_a_parameters_name(statements: str, tables: Tables) -> str:
    """Return the name; "" where there is none."""
    if "function" not in statements.lower():
        return ""
    for tree in trees_of(statements):
        if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.UserDefinedFunction):
            continue
        names = {str(each.name).lower() for each in tree.this.expressions if isinstance(each, exp.ColumnDef)}
        body = tree.expression
        columns = body.find_all(exp.Column) if isinstance(body, exp.Expression) else []
        for column in columns:
            if not column.table and column.name.lower() in names and is_column(column, tables):
                return str(column.name)
    return ""
