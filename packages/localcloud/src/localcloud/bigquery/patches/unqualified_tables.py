"""Patches `CREATE TABLE t` without a default dataset: it would be in no dataset, and in the way of everybody's `t`."""

from __future__ import annotations

import functools

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.trees import only_tree
from localcloud.untyped import Untyped


def apply(routes: Untyped) -> None:
    """Refuse a statement that creates a table or view in no dataset."""
    from bqemulator.domain.errors import InvalidQueryError

    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(project_id: str, job_id: str, bq_sql: str, *args: Untyped, **kwargs: Untyped) -> Untyped:
        if name := _created_in_no_dataset(bq_sql):
            raise InvalidQueryError(f'Table "{name}" must be qualified with a dataset (e.g. dataset.table).')
        return await original(project_id, job_id, bq_sql, *args, **kwargs)

    routes.execute_query_job = execute


def _created_in_no_dataset(statement: str) -> str:
    """Return the table's name; "" when there is none."""
    tree = only_tree(statement)
    if not isinstance(tree, exp.Create) or tree.kind not in ("TABLE", "VIEW") or tree.find(exp.TemporaryProperty):
        return ""
    table = tree.this.find(exp.Table)
    return "" if table is None or table.db else str(table.name)
