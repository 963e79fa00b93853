"""Query jobs as the service runs them: ids are used once, dry runs run nothing, bytes are counted, tables expire.

In: bqemulator's job routes, before the server starts. Out: the same routes with some functions replaced, one by one.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.bigquery.patches import bytes_read
from localcloud.bigquery.patches.expirations import Expirations
from localcloud.untyped import Untyped

_Call = Callable[..., Awaitable[Untyped]]
_MINIMUM_BILLED_BYTES = 10 * 1024 * 1024
# https://cloud.google.com/bigquery/docs/error-messages#errortable
_STATUS_OF_REASON = {
    **dict.fromkeys(("accessDenied", "quotaExceeded", "rateLimitExceeded", "responseTooLarge"), HTTPStatus.FORBIDDEN),
    **dict.fromkeys(("backendError", "internalError"), HTTPStatus.SERVICE_UNAVAILABLE),
    "notFound": HTTPStatus.NOT_FOUND,
    "duplicate": HTTPStatus.CONFLICT,
    "notImplemented": HTTPStatus.NOT_IMPLEMENTED,
}


def refuse_repeated_ids(routes: Untyped) -> None:
    """Answer 409 to a job id that was used before; bqemulator runs the job again.

    A task that is tried again finds its job by that answer instead of paying twice.
    """
    from bqemulator.domain.errors import AlreadyExistsError, ErrorDetail

    running: set[tuple[str, str]] = set()

    def once(original: _Call) -> _Call:
        signature = inspect.signature(original)

        @functools.wraps(original)
        async def call(*args: Untyped, **kwargs: Untyped) -> Untyped:
            bound = signature.bind(*args, **kwargs).arguments
            project, job_id = key = bound["project_id"], bound["job_id"]
            if bound["config"].get("dryRun"):
                return await original(*args, **kwargs)
            if key in running or bound["ctx"].catalog.get_job(project, job_id) is not None:
                message = f"Already Exists: Job {project}:US.{job_id}"
                raise AlreadyExistsError(message, details=[ErrorDetail(reason="duplicate", message=message)])
            running.add(key)
            try:
                return await original(*args, **kwargs)
            finally:
                running.discard(key)

        return call

    for name in (
        "_handle_query_job",
        "_handle_load_job_with_async_envelope",
        "execute_extract_job",
        "execute_copy_job",
    ):
        setattr(routes, name, once(getattr(routes, name)))


def count_bytes(routes: Untyped) -> None:
    """Fill in totalBytesProcessed, which bqemulator leaves at 0: a cost estimate needs it."""
    original = routes.execute_query_job
    attach = routes._attach_query_metadata

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        size = bytes_read.estimate(bq_sql, project_id, ctx.engine)  # before a CREATE OR REPLACE changes it
        job = await original(project_id, job_id, bq_sql, params, ctx, **kwargs)
        _write_bytes(job.statistics, size)
        return job

    def attach_with_bytes(response: dict[str, Untyped], job: Untyped) -> None:
        attach(response, job)
        response["totalBytesProcessed"] = (job.statistics or {}).get("totalBytesProcessed", "0")

    routes.execute_query_job = execute
    routes._attach_query_metadata = attach_with_bytes


def _write_bytes(statistics: dict[str, Untyped], size: int) -> None:
    billed = max(size, _MINIMUM_BILLED_BYTES) if size else 0
    statistics["totalBytesProcessed"] = str(size)
    statistics.setdefault("query", {}).update(
        {"totalBytesProcessed": str(size), "totalBytesBilled": str(billed), "totalSlotMs": "0"}
    )


def check_in_dry_runs(routes: Untyped) -> None:
    """Let a dry run check a whole statement and run none of it.

    bqemulator runs a SELECT to its end, does not look inside CREATE TABLE … AS SELECT, and stores a job, so that the
    real one of the same id would be refused.
    """
    respond = routes._dry_run_response
    build = routes._build_dry_run_query_response

    async def dry_run_response(*, bq_sql: str, **kwargs: Untyped) -> Untyped:
        select = _select_of(bq_sql)
        probe = bq_sql if select is None else f"SELECT * FROM (\n{select}\n) WHERE FALSE"  # noqa: S608
        response = await respond(bq_sql=probe, **kwargs)
        size = bytes_read.estimate(bq_sql, kwargs["project_id"], kwargs["ctx"].engine)
        response["totalBytesProcessed"] = str(size)
        response["statementType"] = routes.classify_statement_type(bq_sql)
        return response

    async def build_response(**kwargs: Untyped) -> Untyped:
        response = await build(**kwargs)
        size = bytes_read.estimate(kwargs["bq_sql"], kwargs["project_id"], kwargs["ctx"].engine)
        _write_bytes(response["statistics"], size)
        kwargs["ctx"].catalog.delete_job(kwargs["project_id"], kwargs["job_id"])
        return response

    routes._dry_run_response = dry_run_response
    routes._build_dry_run_query_response = build_response


def _select_of(statement: str) -> str | None:
    """Give the query inside a SELECT or CREATE TABLE … AS SELECT; None for anything else."""
    try:
        trees = sqlglot.parse(statement, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return None
    tree = trees[0] if len(trees) == 1 else None
    if isinstance(tree, exp.Query):
        return statement.strip().rstrip(";")
    if isinstance(tree, exp.Create) and isinstance(tree.expression, exp.Query):
        return str(tree.expression.sql(dialect="bigquery"))
    return None


def expire_tables(routes: Untyped, expirations: Expirations) -> None:
    """Note a table's OPTIONS(expiration_timestamp = …), which bqemulator drops: run tables would stay for ever."""
    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        job = await original(project_id, job_id, bq_sql, params, ctx, **kwargs)
        created = _created_table(bq_sql, project_id)
        if created is not None:
            name, expression = created
            expires = None
            if expression is not None:
                probe_id = f"{job_id}-expiration"
                probe = f"SELECT UNIX_MILLIS({expression})"
                await original(project_id, probe_id, probe, params, ctx, **kwargs)
                expires = routes.JOB_RESULTS.pop(probe_id).column(0)[0].as_py()
                routes.JOB_SCHEMAS.pop(probe_id)
            expirations.set(name, expires)
        return job

    routes.execute_query_job = execute


def _created_table(statement: str, project: str) -> tuple[str, str | None] | None:
    """Give the full name of the table that a statement creates, and its expiration expression in GoogleSQL."""
    try:
        trees = sqlglot.parse(statement, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Create) or tree.kind != "TABLE":
        return None
    table = tree.find(exp.Table)
    for option in tree.find_all(exp.Property):
        if option.name.lower() == "expiration_timestamp":
            return f"{table.catalog or project}.{table.db}.{table.name}", option.args["value"].sql(dialect="bigquery")
    return f"{table.catalog or project}.{table.db}.{table.name}", None


class FailedQueries:
    """Answers a failed `jobs.query` with its error (ASGI); bqemulator says 200 and puts the error into the document.

    Google's client takes that for a query without rows: `query_and_wait` would hide every error.
    """

    def __init__(self, app: Untyped) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Serve a request."""
        if scope.get("method") != "POST" or not re.fullmatch(r"/bigquery/v2/projects/[^/]+/queries", scope["path"]):
            await self._app(scope, receive, send)
            return
        messages: list[dict[str, Untyped]] = []

        async def keep(message: dict[str, Untyped]) -> None:
            messages.append(message)

        await self._app(scope, receive, keep)
        body = b"".join(message.get("body", b"") for message in messages)
        errors = json.loads(body).get("errors") if messages[0]["status"] == HTTPStatus.OK else None
        if not errors:
            for message in messages:
                await send(message)
            return
        from starlette.responses import JSONResponse

        status = _STATUS_OF_REASON.get(errors[0]["reason"], HTTPStatus.BAD_REQUEST)
        error = {"code": status, "message": errors[0]["message"], "errors": errors}
        await JSONResponse({"error": error}, status_code=status)(scope, receive, send)
