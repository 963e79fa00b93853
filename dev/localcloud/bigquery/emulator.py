"""What bqemulator 1.4.0 does differently from BigQuery, mended where this project depends on it.

In: the emulator's modules, before its server starts. Out: the same modules with some functions replaced. One mend is
one function; its docstring says what is wrong and why it matters here (those of jobs are in `jobs`, those of SQL in
`dialect`). Site-packages stay as they are.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from localcloud.bigquery.doors import faults
from localcloud.bigquery.files import extracts, loads
from localcloud.bigquery.patches import bytes_read, dialect, farm, parameters
from localcloud.bigquery.patches import queries as jobs
from localcloud.bigquery.patches.changes import count_changes, tell_merged
from localcloud.bigquery.patches.destinations import write_destinations
from localcloud.bigquery.patches.expirations import Expirations
from localcloud.bigquery.types import tables as table_types
from localcloud.bigquery.types.results import BoundedResults, describe_anonymous_tables, list_anonymous_rows
from localcloud.faults import FaultShelf
from localcloud.projects import Projects
from localcloud.untyped import Untyped

_log = logging.getLogger("bigquery")
_SWEEP_S = 2


def prepare(
    *,
    projects: Projects,
    directory: Path,
    memory_limit: str,
    expirations: Expirations,
    shelf: FaultShelf,
    read_server: Callable[[FaultShelf, BoundedResults, Untyped], Untyped],
    rest_socket: Path,
    readable: list[Path],
) -> None:
    """Apply every mend.

    Args:
        projects: those that exist.
        directory: where DuckDB may spill to disk.
        memory_limit: DuckDB's memory limit, for example `1500MB`.
        expirations: when tables expire.
        shelf: the faults in force.
        read_server: makes the gRPC server, from the faults, the results of queries and the emulator's context.
        rest_socket: unix socket of the REST server.
        readable: directories that loads and extracts may read and write.
    """
    from bqemulator import server
    from bqemulator.api.routes import jobs as job_routes
    from bqemulator.api.routes import tables, upload
    from bqemulator.jobs import executor

    results = BoundedResults()
    server.build_grpc_server = functools.partial(read_server, shelf, results)
    listen_at(server, rest_socket)
    bound_memory(memory_limit, directory)
    lock_files(readable)
    separate_threads()
    fingerprint_columns()
    keep_no_history()
    accept_any_media_type()
    translate_rightly(executor)
    bind_only_uses()
    table_types.describe_results(executor)
    table_types.keep_big_decimals()
    table_types.describe_created_tables()
    loads.apply(job_routes, upload)
    extracts.apply(job_routes, executor)
    count_changes(executor, job_routes)
    write_destinations(job_routes)
    for module in (executor, job_routes):
        module.JOB_RESULTS = results
    describe_anonymous_tables(tables, results, executor.JOB_SCHEMAS)
    jobs.refuse_repeated_ids(job_routes)
    jobs.count_bytes(job_routes)
    jobs.expire_tables(job_routes, expirations)
    jobs.check_in_dry_runs(job_routes)
    faults.fail_queries(job_routes, shelf)
    open_app(server, projects, expirations, shelf, results)


def bound_memory(limit: str, directory: Path) -> None:
    """Give DuckDB a memory limit and a place to spill to; it would take 80 % of the machine."""
    from bqemulator.storage.engine import DuckDBEngine

    original = DuckDBEngine._apply_session_pragmas

    def apply_pragmas(self: Untyped) -> None:
        original(self)
        self.connection.execute("SET GLOBAL TimeZone = 'UTC'")
        self.connection.execute(f"SET memory_limit = '{limit}'")
        self.connection.execute(f"SET temp_directory = '{directory / 'spill'}'")
        self.connection.execute(dialect.TOP_COUNT_MACRO)

    DuckDBEngine._apply_session_pragmas = apply_pragmas


def listen_at(server: Untyped, path: Path) -> None:
    """Let the REST server listen on a unix socket: its port asks nobody who they are."""
    original = server.uvicorn.Config
    # The gateway's word counts for the scheme that clients use: addresses of uploads are made of it.
    server.uvicorn.Config = functools.partial(original, uds=str(path), forwarded_allow_ips="*")


def lock_files(readable: list[Path]) -> None:
    """Keep SQL away from files (`read_text`, `COPY … TO`, `ATTACH`), but for the directories that loads need.

    The settings cannot be changed again, so each connection's time zone is set for all of them before.
    """
    from bqemulator.storage.engine import DuckDBEngine

    original = DuckDBEngine._register_builtin_udfs  # the last step before the engine serves

    def register(self: Untyped) -> None:
        original(self)
        quoted = ", ".join("'" + str(path).replace("'", "''") + "'" for path in readable)
        self.connection.execute(f"SET allowed_directories = [{quoted}]")
        self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")

    DuckDBEngine._register_builtin_udfs = register


def separate_threads() -> None:
    """Give requests that run in a worker thread a connection of their own.

    All of them share one, and with it one pending result: two at a time can read each other's rows.
    """
    from bqemulator.storage.engine import DuckDBEngine

    original = DuckDBEngine.execute

    @functools.wraps(original)
    def execute(self: Untyped, sql: str, parameters: list[Untyped] | None = None) -> Untyped:
        if threading.current_thread() is threading.main_thread():
            return original(self, sql, parameters)
        cursor = self.connection.cursor()
        return cursor.execute(sql, parameters) if parameters is not None else cursor.execute(sql)

    DuckDBEngine.execute = execute


def fingerprint_columns() -> None:
    """Take FARM_FINGERPRINT from `farm`: bqemulator's is Python per row, and wrong for more than 64 bytes."""
    from bqemulator.storage.engine import DuckDBEngine

    original = DuckDBEngine._register_builtin_udfs
    name = "bqemu_farm_fingerprint"

    def register(self: Untyped) -> None:
        original(self)
        connection = self.connection
        connection.remove_function(name)
        connection.create_function(
            name, farm.farm_fingerprint, ["VARCHAR"], "BIGINT", type="arrow", null_handling="special"
        )

    DuckDBEngine._register_builtin_udfs = register


def keep_no_history() -> None:
    """Take no copy of a whole table after each change (for time travel): every logged request would make one."""
    from bqemulator.domain.errors import UnsupportedFeatureError
    from bqemulator.versioning.snapshots import SnapshotManager

    capture = SnapshotManager.capture

    def capture_wanted(self: Untyped, *args: Untyped, kind: str = "AUTO") -> Untyped:
        return None if kind == "AUTO" else capture(self, *args, kind=kind)

    def refuse(*_: object) -> None:
        raise UnsupportedFeatureError("FOR SYSTEM_TIME AS OF is not offered by the local cloud: it keeps no history")

    SnapshotManager.capture = capture_wanted
    SnapshotManager.resolve_time_travel = refuse


def accept_any_media_type() -> None:
    """Accept uploads of type `*/*`, which is what the Python client's load_table_from_file and _json send."""
    from bqemulator.api.routes import upload

    original = upload._is_permitted_media_type
    upload._is_permitted_media_type = lambda kind: kind == "*/*" or original(kind)


def translate_rightly(executor: Untyped) -> None:
    """Rewrite what the translator gets wrong (see `dialect`), for single statements.

    Where it looks for types it writes out the columns of `*`, and would forget those whose type it cannot name.
    """
    from bqemulator.domain.errors import InvalidQueryError
    from bqemulator.sql import catalog_schema

    known = catalog_schema._safe_bq_to_duckdb
    catalog_schema._safe_bq_to_duckdb = lambda kind: known(kind) or "STRUCT"
    original = executor.rewrite_and_translate_statement

    @functools.wraps(original)
    async def translate(bq_sql: str, **kwargs: Untyped) -> Untyped:
        complaint = dialect.nameless_column(bq_sql)
        if complaint:
            raise InvalidQueryError(complaint)
        return tell_merged(dialect.widen_numerics(await original(dialect.rewrite(bq_sql), **kwargs)))

    executor.rewrite_and_translate_statement = translate


def bind_only_uses() -> None:
    """Bind named parameters where they are used, not where a comment or a string names them (see `parameters`)."""
    from bqemulator.sql import parameters as emulated

    emulated._bind_named = lambda sql, values: parameters.bind_named(sql, values, emulated)


def open_app(
    server: Untyped, projects: Projects, expirations: Expirations, shelf: FaultShelf, results: BoundedResults
) -> None:
    """Mend the REST application as a whole once it is made: see the functions it calls."""
    original = server.create_app

    def create_app(context: Untyped) -> Untyped:
        app = original(context)
        app.add_middleware(jobs.FailedQueries)
        app.add_middleware(KnownProjects, projects=projects)
        app.add_middleware(faults.FaultDoor, shelf=shelf)
        app.add_middleware(AnswerFaults)
        show_live_sizes(context, expirations)
        check_inserted_rows(app, context)
        list_anonymous_rows(app, results)
        asyncio.get_running_loop().create_task(sweep(context, projects.main, expirations), name="expirations")
        return app

    server.create_app = create_app


class AnswerFaults:
    """Answers an internal fault with 501 and its text, SQL nested too deep with 400, a missing dataset with 404.

    bqemulator says 500 "internal error", which Google's clients repeat for ten minutes before they show anything.
    """

    def __init__(self, app: Untyped) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Serve a request (ASGI)."""
        from starlette.responses import JSONResponse

        begun = False

        async def note(message: dict[str, Untyped]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, note)
        except Exception as error:  # an emulator's fault of any kind becomes an answer
            if begun or scope["type"] != "http":
                raise
            status, reason, message = _told(error)
            _log.warning("%s %s: %r", scope.get("method"), scope.get("path"), error)
            document = {"code": status, "message": message, "errors": [{"reason": reason, "message": message}]}
            await JSONResponse({"error": document}, status_code=status)(scope, receive, send)


def _told(error: Exception) -> tuple[int, str, str]:
    """Give status, reason and message of a fault that bqemulator did not foresee."""
    if missing := re.search(r"Schema with name (\S+?)__(\S+) does not exist", str(error)):
        return 404, "notFound", f"Not found: Dataset {missing[1]}:{missing[2]}"
    status, reason, message = 501, "notImplemented", "The local cloud's BigQuery cannot do this"
    if isinstance(error, RecursionError):
        status, reason, message = 400, "invalidQuery", "Query is too complex: it is nested too deep"
    return status, reason, f"{message}: {type(error).__name__}: {str(error)[:2000]}"


class KnownProjects:
    """Answers 403 for a project that is not there, as BigQuery does; bqemulator makes up any project it is asked for.

    A project's number is taken for its id.
    """

    def __init__(self, app: Untyped, projects: Projects) -> None:
        self._app = app
        self._projects = projects

    async def __call__(self, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Serve a request (ASGI)."""
        asked = re.match(r"((?:/resumable)?(?:/upload)?/bigquery/v2/projects/)([^/]+)(.*)", scope.get("path", ""))
        if asked is None:
            await self._app(scope, receive, send)
            return
        project = self._projects.find(asked.group(2))
        if project is not None:
            path = f"{asked.group(1)}{project}{asked.group(3)}"
            await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)
            return
        from starlette.responses import JSONResponse

        message = f"Access Denied: Project {asked.group(2)}: it does not exist, or you may not use it."
        detail = {"reason": "accessDenied", "message": message, "domain": "global"}
        body = {"error": {"code": 403, "message": message, "errors": [detail], "status": "PERMISSION_DENIED"}}
        await JSONResponse(body, status_code=403)(scope, receive, send)


def show_live_sizes(context: Untyped, expirations: Expirations) -> None:
    """Show a table's rows, bytes, types and expiration as they are; bqemulator counts only some kinds of writes."""
    from bqemulator.api.routes import tables

    original, original_item = tables._table_to_rest, tables._table_to_list_item

    def to_rest(table: Untyped) -> dict[str, Untyped]:
        resource: dict[str, Untyped] = original(table)
        if resource.get("schema", {}).get("fields"):
            resource["schema"]["fields"] = table_types.legacy_names(resource["schema"]["fields"])
        where = table.project_id, table.dataset_id, table.table_id
        if table.table_type == "TABLE":
            counted = context.engine.execute(f'SELECT count(*) FROM "{where[0]}__{where[1]}"."{where[2]}"')  # noqa: S608
            resource["numRows"] = str(counted.fetchone()[0])
            resource["numBytes"] = str(bytes_read.table_bytes(context.engine, *where, None))
        expires = expirations.get(".".join(where))
        return resource | ({"expirationTime": str(expires)} if expires is not None else {})

    def to_list_item(table: Untyped) -> dict[str, Untyped]:
        item: dict[str, Untyped] = original_item(table)
        expires = expirations.get(f"{table.project_id}.{table.dataset_id}.{table.table_id}")
        return item | ({"expirationTime": str(expires)} if expires is not None else {})

    tables._table_to_rest = to_rest
    tables._table_to_list_item = to_list_item


def check_inserted_rows(app: Untyped, context: Untyped) -> None:
    """Refuse streamed rows with unknown fields; bqemulator stores them as rows of NULL."""
    from bqemulator.api.routes import tabledata
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def insert_all(request: Untyped) -> JSONResponse:
        where = [request.path_params[name] for name in ("project", "dataset", "table")]
        body = await request.json()
        table = context.catalog.get_table(*where)
        known = {field.name.lower() for field in table.schema_.fields} if table else set()
        rows = [sorted(set(map(str.lower, row.get("json", {}))) - known) for row in body.get("rows", [])]
        if table is None or body.get("ignoreUnknownValues") or not any(rows):
            return JSONResponse(await tabledata.insert_all(*where, request, context))
        errors = [{"index": index, "errors": [_row_error(unknown)]} for index, unknown in enumerate(rows)]
        return JSONResponse({"kind": "bigquery#tableDataInsertAllResponse", "insertErrors": errors})

    path = "/bigquery/v2/projects/{project}/datasets/{dataset}/tables/{table}/insertAll"
    app.router.routes.insert(0, Route(path, insert_all, methods=["POST"]))  # before the one it replaces


def _row_error(unknown: list[str]) -> dict[str, str]:
    if not unknown:
        return {"reason": "stopped", "location": "", "debugInfo": "", "message": ""}
    return {"reason": "invalid", "location": unknown[0], "debugInfo": "", "message": f"no such field: {unknown[0]}."}


async def sweep(context: Untyped, project: str, expirations: Expirations) -> None:
    """Drop tables whose time has come, now and then."""
    from bqemulator.api.routes import jobs as job_routes

    while True:
        for name in expirations.take_due():
            statement = f"DROP TABLE IF EXISTS `{name}`"
            try:
                await job_routes.execute_query_job(project, f"expire-{name}", statement, None, context)
            except Exception as error:  # noqa: BLE001 - one table that cannot be dropped must not keep the others
                print(f"{name} has expired and could not be dropped: {error}", file=sys.stderr)
        await asyncio.sleep(_SWEEP_S)
