"""Patches streamed rows with unknown fields: they are stored as rows of NULL."""

from __future__ import annotations

from localcloud.untyped import Untyped


def apply(app: Untyped, context: Untyped) -> None:
    """Refuse streamed rows with unknown fields."""
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
