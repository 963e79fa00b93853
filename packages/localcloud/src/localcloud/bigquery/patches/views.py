"""Patches views: `tables.delete` drops tables alone, and what a view reads is in no query's `referencedTables`."""

from __future__ import annotations

from localcloud.bigquery.patches.query_bytes import tables_read
from localcloud.bigquery.types.columns import quoted
from localcloud.statements import statement
from localcloud.untyped import Untyped

VIEW = "VIEW"


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
    """Let `tables.delete` delete views too."""
    from bqemulator.api.routes import tables
    from starlette.responses import Response
    from starlette.routing import Route

    async def delete(request: Untyped) -> Response:
        where = [request.path_params[name] for name in ("project", "dataset", "table")]
        stored = context.catalog.get_table(*where)
        if stored is None or stored.table_type != VIEW:
            answer: Response = await tables.delete_table(*where, context)
            return answer
        async with context.engine.write_lock():
            name = f"{quoted(f'{where[0]}__{where[1]}')}.{quoted(where[2])}"
            context.engine.execute(statement("DROP VIEW IF EXISTS {view}", view=name))
            context.catalog.delete_table(*where)
        return Response(status_code=204)

    path = "/bigquery/v2/projects/{project}/datasets/{dataset}/tables/{table}"
    app.router.routes.insert(0, Route(path, delete, methods=["DELETE"]))  # before the one it replaces
