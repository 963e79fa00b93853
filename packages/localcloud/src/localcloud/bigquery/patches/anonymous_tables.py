"""Patches the anonymous tables of results: known only for job ids that are UUIDs, their rows not listed at all.

And their dataset is one: clients put tables of their own beside results (Ibis, for frames in memory). No list has it.
"""

from __future__ import annotations

from localcloud.bigquery.types.results import ANONYMOUS_DATASET, BoundedResults
from localcloud.untyped import Untyped


def apply(tables: Untyped, results: BoundedResults, schemas: Untyped) -> None:
    """Describe a job's anonymous table by any job id."""
    from bqemulator.domain.errors import NotFoundError

    def describe(project: str, dataset: str, table: str) -> dict[str, Untyped]:
        job_id = results.job_of(dataset, table)
        if job_id is None:
            raise NotFoundError(f"Not found: Table {project}:{dataset}.{table}")
        return {
            "kind": "bigquery#table",
            "id": f"{project}:{dataset}.{table}",
            "tableReference": {"projectId": project, "datasetId": dataset, "tableId": table},
            "type": "TABLE",
            "numRows": str(results[job_id].num_rows),
            "numBytes": str(results[job_id].nbytes),
            "schema": {"fields": list(schemas.get(job_id) or [])},
        }

    tables._anonymous_result_table_to_rest = describe


def make_datasets(projects: list[str], context: Untyped) -> None:
    """Make each project's dataset of anonymous tables, and keep it out of lists."""
    from bqemulator.api.routes import datasets
    from bqemulator.storage.sql_identifiers import quoted_schema

    catalog = context.catalog
    for project in projects:
        if catalog.get_dataset(project, ANONYMOUS_DATASET) is None:
            context.engine.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted_schema(project, ANONYMOUS_DATASET)}")
            catalog.create_dataset(
                datasets._rest_to_dataset_meta(project, {"datasetId": ANONYMOUS_DATASET}, context.clock)
            )
    original = catalog.list_datasets

    def list_datasets(project: str) -> tuple[Untyped, ...]:
        return tuple(dataset for dataset in original(project) if dataset.dataset_id != ANONYMOUS_DATASET)

    catalog.list_datasets = list_datasets


def list_rows_of(app: Untyped, results: BoundedResults, context: Untyped) -> None:
    """Answer tabledata.list for a job's anonymous table."""
    from bqemulator.api.routes import jobs, tabledata
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def list_rows(request: Untyped) -> JSONResponse:
        table = request.path_params["table"]
        job_id = results.job_of(ANONYMOUS_DATASET, table)
        asked = request.query_params
        page = {
            "maxResults": int(asked.get("maxResults") or 10_000),
            "startIndex": int(asked.get("startIndex") or 0),
            "pageToken": asked.get("pageToken"),
        }
        project = request.path_params["project"]
        if job_id is None and context.catalog.get_table(project, ANONYMOUS_DATASET, table) is not None:
            stored = (project, ANONYMOUS_DATASET, table, context)
            return JSONResponse(tabledata.list_tabledata(*stored, selectedFields=asked.get("selectedFields"), **page))
        if job_id is None:
            message = f"Not found: Table {project}:{ANONYMOUS_DATASET}.{table}"
            detail = {"reason": "notFound", "message": message}
            return JSONResponse({"error": {"code": 404, "message": message, "errors": [detail]}}, status_code=404)
        answer = jobs.get_query_results(project, job_id, None, **page)
        kept = {key: answer[key] for key in ("rows", "totalRows", "pageToken") if key in answer}
        return JSONResponse({"kind": "bigquery#tableDataList", **kept})

    path = f"/bigquery/v2/projects/{{project}}/datasets/{ANONYMOUS_DATASET}/tables/{{table}}/data"
    app.router.routes.insert(0, Route(path, list_rows, methods=["GET"]))  # before the one of stored tables
