"""Patches lists of datasets, tables and jobs: they end with their first page, and nothing says that there are more.

Jobs of a list would not say what they ended with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localcloud.untyped import Untyped

_ALL = 1_000_000
_PAGE = 1000


def apply(app: Untyped, context: Untyped) -> None:
    """List page by page."""
    from bqemulator.api.routes import datasets, jobs, tables
    from starlette.routing import Route

    def all_datasets(request: Untyped) -> dict[str, Any]:
        return dict(datasets.list_datasets(request.path_params["project"], context, maxResults=_ALL))

    def all_tables(request: Untyped) -> dict[str, Any]:
        where = request.path_params["project"], request.path_params["dataset"]
        return dict(tables.list_tables(*where, context, maxResults=_ALL))

    def all_jobs(request: Untyped) -> dict[str, Any]:
        chosen = {name: request.query_params.get(name) for name in ("stateFilter", "parentJobId")}
        listed = dict(jobs.list_jobs(request.path_params["project"], context, maxResults=_ALL, **chosen))
        return {**listed, "jobs": [_with_error(job, context) for job in listed["jobs"]]}

    projects = "/bigquery/v2/projects/{project}"
    for path, key, every in (
        (f"{projects}/datasets", "datasets", all_datasets),
        (f"{projects}/datasets/{{dataset}}/tables", "tables", all_tables),
        (f"{projects}/jobs", "jobs", all_jobs),
    ):
        app.router.routes.insert(0, Route(path, _paged(key, every), methods=["GET"]))


def _with_error(job: dict[str, Any], context: Untyped) -> dict[str, Any]:
    """Return a job of a list with what it ended with, also where it is wanted by itself."""
    reference = job["jobReference"]
    error = context.catalog.get_job(reference["projectId"], reference["jobId"]).error_result
    ended = {"errorResult": error, "errors": [error]} if error else {}
    return {**job, "status": {**job["status"], **ended}, **({"errorResult": error} if error else {})}


def _paged(key: str, every: Callable[[Untyped], dict[str, Any]]) -> Untyped:
    from bqemulator.domain.errors import ValidationError
    from starlette.responses import JSONResponse

    async def answer(request: Untyped) -> JSONResponse:
        token, most = (request.query_params.get(name) or "" for name in ("pageToken", "maxResults"))
        if not all(text == "" or (text.isascii() and text.isdigit()) for text in (token, most)):
            raise ValidationError("Invalid pageToken or maxResults. Expected a token of an earlier page, and a number")
        document = every(request)
        first, listed = int(token or 0), document[key]
        end = first + (int(most or 0) or _PAGE)
        page = {**document, key: listed[first:end]}
        return JSONResponse({**page, "nextPageToken": str(end)} if end < len(listed) else page)

    return answer
