"""Patches queries and dry runs: they do not say which tables they read (`referencedTables`)."""

from __future__ import annotations

import functools

from localcloud.bigquery.patches.query_bytes import tables_read
from localcloud.bigquery.patches.views import tables_behind
from localcloud.untyped import Untyped


def apply(routes: Untyped) -> None:
    """Name the tables in the statistics of each."""
    run = routes.execute_query_job
    build = routes._build_dry_run_query_response

    @functools.wraps(run)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        tables = tables_behind(ctx, tables_read(bq_sql, project_id))  # before a view among them is another one
        job = await run(project_id, job_id, bq_sql, params, ctx, **kwargs)
        _name_tables(job.statistics, tables)
        return job

    async def build_response(**kwargs: Untyped) -> Untyped:
        response = await build(**kwargs)
        tables = tables_behind(kwargs["ctx"], tables_read(kwargs["bq_sql"], kwargs["project_id"]))
        _name_tables(response["statistics"], tables)
        return response

    routes.execute_query_job = execute
    routes._build_dry_run_query_response = build_response


def _name_tables(statistics: dict[str, Untyped], tables: list[tuple[str, str, str]]) -> None:
    statistics.setdefault("query", {})["referencedTables"] = [
        {"projectId": owner, "datasetId": dataset, "tableId": table} for owner, dataset, table in tables
    ]
