"""Patches streamed rows: unknown fields become NULL, NULLs of REQUIRED columns a fault, and `insertId` is lost.

In: rows. Out: those that the table takes, or the errors of each row; a row that comes again with its `insertId` within
a minute is not stored again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from localcloud.untyped import Untyped

_MINUTE_S = 60
_REMEMBERED = 100_000


class InsertIds:
    """The ids of rows that were streamed lately."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: OrderedDict[tuple[str, str], float] = OrderedDict()

    def take(self, table: str, insert_id: str | None) -> bool:
        """Return whether a row is new; from then on it is not."""
        if not insert_id:
            return True
        key, now = (table, insert_id), self._now()
        if now - self._seen.get(key, -_MINUTE_S) < _MINUTE_S:
            return False
        self._seen.pop(key, None)
        self._seen[key] = now
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return True


def apply(app: Untyped, context: Untyped) -> None:
    """Refuse streamed rows that the table does not take, and store none twice."""
    from bqemulator.api.routes import tabledata
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    ids = InsertIds()

    async def insert_all(request: Untyped) -> JSONResponse:
        where = [request.path_params[name] for name in ("project", "dataset", "table")]
        body = await request.json()
        table = context.catalog.get_table(*where)
        if table is None:
            return JSONResponse(await tabledata.insert_all(*where, request, context))
        rows = body.get("rows", [])
        wrong = {index: error for index, row in enumerate(rows) if (error := _error_of(row, table, body))}
        stops = bool(wrong) and not body.get("skipInvalidRows")
        errors = [
            {"index": index, "errors": [wrong.get(index, _STOPPED)]}
            for index in range(len(rows))
            if stops or index in wrong
        ]
        if not stops:
            name = f"{'.'.join(where)} {table.creation_time}"
            good = [row for index, row in enumerate(rows) if index not in wrong and ids.take(name, row.get("insertId"))]
            request._json = {**body, "rows": good}  # what the route reads
            answer = await tabledata.insert_all(*where, request, context)
            errors += answer["insertErrors"]
            note_change(context, *where)
        return JSONResponse({"kind": "bigquery#tableDataInsertAllResponse", "insertErrors": errors})

    path = "/bigquery/v2/projects/{project}/datasets/{dataset}/tables/{table}/insertAll"
    app.router.routes.insert(0, Route(path, insert_all, methods=["POST"]))  # before the one it replaces


def note_change(ctx: Untyped, project: str, dataset: str, table: str) -> None:
    """Note that a table's rows have changed now."""
    stored = ctx.catalog.get_table(project, dataset, table)
    if stored is not None:
        ctx.catalog.update_table(stored.model_copy(update={"last_modified_time": ctx.clock.now()}))


_STOPPED = {"reason": "stopped", "location": "", "debugInfo": "", "message": ""}


def _error_of(row: dict[str, Any], table: Untyped, body: dict[str, Any]) -> dict[str, str] | None:
    """Return what is wrong with a row, None for one that the table takes."""
    values = {name.lower(): value for name, value in row.get("json", {}).items()}
    known = {field.name.lower() for field in table.schema_.fields}
    unknown = [] if body.get("ignoreUnknownValues") else sorted(values.keys() - known)
    if unknown:
        return {
            "reason": "invalid",
            "location": unknown[0],
            "debugInfo": "",
            "message": f"no such field: {unknown[0]}.",
        }
    for field in table.schema_.fields:
        if field.mode == "REQUIRED" and values.get(field.name.lower()) is None:
            message = f"Missing required field: {field.name}."
            return {"reason": "invalid", "location": field.name, "debugInfo": "", "message": message}
        value = values.get(field.name.lower())
        if field.mode == "REPEATED" and isinstance(value, list) and None in value:
            message = f"Only optional fields can be set to NULL. Field: {field.name}; Value: NULL"
            return {"reason": "invalid", "location": field.name, "debugInfo": "", "message": message}
    return None
