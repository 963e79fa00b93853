"""Patches queries and dry runs: they do not say which tables they read (`referencedTables`)."""

from __future__ import annotations

import functools

from localcloud.bigquery.patches.query_bytes import tables_read
from localcloud.untyped import Untyped


def apply(routes: Untyped) -> None:
    """Name the tables in the statistics of each."""
    run = routes.execute_query_job
    build = routes._build_dry_run_query_response

    @functools.wraps(run)
    async def execute(project_id: str, job_id: str, bq_sql: str, *args: Untyped, **kwargs: Untyped) -> Untyped:
        job = await run(project_id, job_id, bq_sql, *args, **kwargs)
        _name_tables(job.statistics, bq_sql, project_id)
        return job

    async def build_response(**kwargs: Untyped) -> Untyped:
        response = await build(**kwargs)
        _name_tables(response["statistics"], kwargs["bq_sql"], kwargs["project_id"])
        return response

    routes.execute_query_job = execute
    routes._build_dry_run_query_response = build_response


def _name_tables(statistics: dict[str, Untyped], statement: str, project: str) -> None:
    statistics.setdefault("query", {})["referencedTables"] = [
        {"projectId": owner, "datasetId": dataset, "tableId": table}
        for owner, dataset, table in tables_read(statement, project)
    ]
