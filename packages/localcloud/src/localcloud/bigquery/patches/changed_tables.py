"""Patches a table's `lastModifiedTime`, which stays as it was when statements and streamed rows change its rows."""

from __future__ import annotations

import functools

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.inserted_rows import note_change
from localcloud.bigquery.types.trees import trees_of
from localcloud.untyped import Untyped

_CHANGES = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.TruncateTable)


def apply(routes: Untyped) -> None:
    """Note when a statement changes a table."""
    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        job = await original(project_id, job_id, bq_sql, params, ctx, **kwargs)
        if job.error_result is None:
            for where in _changed(bq_sql, project_id):
                note_change(ctx, *where)
        return job

    routes.execute_query_job = execute


def _changed(sql: str, project: str) -> list[tuple[str, str, str]]:
    targets = [tree.find(exp.Table) for tree in trees_of(sql) if isinstance(tree, _CHANGES)]
    return [(target.catalog or project, target.db, target.name) for target in targets if target is not None]
