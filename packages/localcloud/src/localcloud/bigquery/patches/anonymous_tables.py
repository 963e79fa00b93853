"""Mends the anonymous tables of results: known only for job ids that are UUIDs, and their rows not listed at all."""

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


def list_rows_of(app: Untyped, results: BoundedResults) -> None:
    """Answer tabledata.list for a job's anonymous table."""
    from bqemulator.api.routes import jobs
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def list_rows(request: Untyped) -> JSONResponse:
        table = request.path_params["table"]
        job_id = results.job_of(ANONYMOUS_DATASET, table)
        if job_id is None:
            message = f"Not found: Table {request.path_params['project']}:{ANONYMOUS_DATASET}.{table}"
            detail = {"reason": "notFound", "message": message}
            return JSONResponse({"error": {"code": 404, "message": message, "errors": [detail]}}, status_code=404)
        asked = request.query_params
        answer = jobs.get_query_results(
            request.path_params["project"],
            job_id,
            None,
            maxResults=int(asked.get("maxResults") or 10_000),
            startIndex=int(asked.get("startIndex") or 0),
            pageToken=asked.get("pageToken"),
        )
        kept = {key: answer[key] for key in ("rows", "totalRows", "pageToken") if key in answer}
        return JSONResponse({"kind": "bigquery#tableDataList", **kept})

    path = f"/bigquery/v2/projects/{{project}}/datasets/{ANONYMOUS_DATASET}/tables/{{table}}/data"
    app.router.routes.insert(0, Route(path, list_rows, methods=["GET"]))  # before the one of stored tables
