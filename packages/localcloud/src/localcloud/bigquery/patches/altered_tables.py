"""Patches ALTER TABLE: the columns that it adds, drops and renames are in the table, and not in tables.get."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.untyped import Untyped


def apply(routes: Untyped) -> None:
    """Tell a table's columns anew once a statement has altered them."""
    from bqemulator.catalog import ddl_sync

    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        job = await original(project_id, job_id, bq_sql, params, ctx, **kwargs)
        for where in _altered(bq_sql, project_id):
            table = ctx.catalog.get_table(*where)
            if table is not None and table.table_type == "TABLE":
                now = ddl_sync._introspect_schema(*where, ctx)
                before = {field.name.lower(): field for field in table.schema_.fields}
                fields = tuple(_told(field, before.get(field.name.lower())) for field in now.fields)
                ctx.catalog.update_table(
                    table.model_copy(update={"schema_": now.model_copy(update={"fields": fields})})
                )
        return job

    routes.execute_query_job = execute


def _told(field: Untyped, before: Untyped) -> Untyped:
    """Return a column as it is now, with the description that it had."""
    return field if before is None else field.model_copy(update={"description": before.description})


def _altered(sql: str, project: str) -> Iterator[tuple[str, str, str]]:
    """Yield each table that a statement, or one of a script, alters; without a dataset it is a temporary one."""
    if "alter" not in sql.lower():
        return
    try:
        trees = sqlglot.parse(sql, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return
    for tree in trees:
        if isinstance(tree, exp.Alter) and tree.args.get("kind") == "TABLE" and tree.this.db:
            yield tree.this.catalog or project, tree.this.db, tree.this.name
