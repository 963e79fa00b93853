"""Patches views: one that comes by REST is a table without columns, and its query is looked at by nobody.

Beside it `tables.delete` drops tables alone, and what a view reads is in no query's `referencedTables`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from localcloud.bigquery.patches.query_bytes import tables_read
from localcloud.bigquery.types.columns import quoted
from localcloud.statements import statement
from localcloud.untyped import Untyped

VIEW = "VIEW"
_PLACE = ("project", "dataset", "table")


def tables_behind(ctx: Untyped, tables: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Return tables and views, each once, with all that those views read.

    Args:
        ctx: bqemulator's context.
        tables: Project, dataset and name of each.
    """
    found: dict[tuple[str, str, str], None] = {}
    left = list(tables)
    while left:
        where = left.pop()
        if where in found:
            continue
        found[where] = None
        stored = ctx.catalog.get_table(*where)
        if stored is not None and stored.table_type == VIEW and stored.view_query:
            left += tables_read(stored.view_query, stored.project_id)
    return sorted(found)


def apply(app: Untyped, context: Untyped) -> None:
    """Let a view that comes by REST be what one of CREATE VIEW is: with columns, of a query that is looked at."""
    from starlette.routing import Route

    calls = _Calls(context)
    path = "/bigquery/v2/projects/{project}/datasets/{dataset}/tables"
    for route in (
        Route(path, calls.insert, methods=["POST"]),
        Route(f"{path}/{{table}}", calls.change, methods=["PATCH", "PUT"]),
        Route(f"{path}/{{table}}", calls.delete, methods=["DELETE"]),
    ):
        app.router.routes.insert(0, route)  # before those that they replace


class _Calls:
    """The calls that make, change and delete tables, of which those about views are answered here."""

    def __init__(self, context: Untyped) -> None:
        self._context = context

    async def insert(self, request: Untyped) -> Untyped:
        """Make a table or a view."""
        from bqemulator.api.routes import tables
        from bqemulator.domain.errors import ResourceRef, resource_already_exists
        from starlette.responses import JSONResponse

        body, context = await request.json(), self._context
        query = _query_of(body)
        project, dataset = (request.path_params[name] for name in ("project", "dataset"))
        if query is None:
            return JSONResponse(await tables.insert_table(project, dataset, request, context))
        meta = tables._rest_to_table_meta(project, dataset, body, context.clock)
        where = project, dataset, meta.table_id
        if context.catalog.get_table(*where) is not None:
            raise resource_already_exists(ResourceRef("table", *where))
        await _make("CREATE VIEW", where, query, request, context)
        made = context.catalog.get_table(*where)
        stored = context.catalog.update_table(meta.model_copy(update={"schema_": made.schema_}))
        return JSONResponse(tables._table_to_rest(stored))

    async def change(self, request: Untyped) -> Untyped:
        """Change a table, or a view and with its query its columns."""
        from bqemulator.api.routes import tables
        from starlette.responses import JSONResponse

        where, context = tuple(request.path_params[name] for name in _PLACE), self._context
        existing, query = context.catalog.get_table(*where), _query_of(await request.json())
        if existing is not None and existing.table_type == VIEW and query not in (None, existing.view_query):
            await _make("CREATE OR REPLACE VIEW", where, query, request, context)
            made = context.catalog.get_table(*where)
            context.catalog.update_table(existing.model_copy(update={"schema_": made.schema_}))
        answer = tables.update_table if request.method == "PUT" else tables.patch_table
        return JSONResponse(await answer(*where, request, context))

    async def delete(self, request: Untyped) -> Untyped:
        """Delete a table or a view."""
        from bqemulator.api.routes import tables
        from starlette.responses import Response

        where, context = [request.path_params[name] for name in _PLACE], self._context
        stored = context.catalog.get_table(*where)
        if stored is None or stored.table_type != VIEW:
            return await tables.delete_table(*where, context)
        async with context.engine.write_lock():
            name = f"{quoted(f'{where[0]}__{where[1]}')}.{quoted(where[2])}"
            context.engine.execute(statement("DROP VIEW IF EXISTS {view}", view=name))
            context.catalog.delete_table(*where)
        return Response(status_code=204)


def _query_of(body: Mapping[str, Untyped]) -> str | None:
    """Return the query of a view that a request describes; None of a table."""
    view = body.get("view")
    query = view.get("query") if isinstance(view, dict) else None
    return str(query) if query else None


async def _make(begin: str, where: tuple[str, ...], query: str, request: Untyped, context: Untyped) -> None:
    """Make a view as a query job does, which nobody is shown."""
    from bqemulator.api.dependencies import get_caller
    from bqemulator.api.routes import jobs

    job = f"view_{uuid.uuid4().hex}"
    sql = f"{begin} `{'.'.join(where)}` AS\n{query.strip().rstrip(';')}"
    try:
        await jobs.execute_query_job(where[0], job, sql, None, context, caller=get_caller(request))
    finally:
        context.catalog.delete_job(where[0], job, not_found_ok=True)
