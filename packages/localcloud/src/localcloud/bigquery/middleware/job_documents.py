"""Reads a new job's document as the service means it, before anybody looks at it.

In: `jobs.insert` and `jobs.query`, as clients send them. Out: the same without fields that are null (Airflow's
operators give every option, most of them null; other calls keep theirs: a patch takes a field away by null), values of
query parameters as texts, which they are in the service's documents, and `jobs.query` with its default dataset before
the names of tables, which bqemulator heeds in `jobs.insert` alone.
"""

from __future__ import annotations

import json
import re

from localcloud.bigquery.middleware.bodies import read_body, replay_body
from localcloud.nulls import without_nulls
from localcloud.untyped import Untyped

_JOBS = re.compile(r"/bigquery/v2/projects/(?P<project>[^/]+)/(?P<kind>jobs|queries)")


def install() -> None:
    """Put this before all that stands before the REST application once it is made."""
    from bqemulator import server

    original = server.create_app

    def create_app(context: Untyped) -> Untyped:
        app = original(context)
        app.add_middleware(JobDocuments)
        return app

    server.create_app = create_app


class JobDocuments:
    """Takes the nulls out of a new job, and writes the default dataset out (ASGI)."""

    def __init__(self, app: Untyped) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Serve a request."""
        job = _JOBS.fullmatch(scope.get("path", "")) if scope.get("method") == "POST" else None
        if job is None:
            await self._app(scope, receive, send)
            return
        body = await read_body(receive)
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict):
            document = without_nulls(document)
            _write_values(document.get("queryParameters"))
            query = (document.get("configuration") or {}).get("query")
            _write_values(query.get("queryParameters") if isinstance(query, dict) else None)
            if job["kind"] == "queries":
                document = _with_default_dataset(document, job["project"])
            body = json.dumps(document).encode()
            headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
            scope = {**scope, "headers": [*headers, (b"content-length", str(len(body)).encode())]}
        await self._app(scope, replay_body(body, receive), send)


def _write_values(node: Untyped) -> None:
    """Write the numbers and truth values of query parameters as texts."""
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for each in inner:
        _write_values(each)
    if isinstance(node, dict) and isinstance(node.get("value"), bool | int | float):
        node["value"] = json.dumps(node["value"])


def _with_default_dataset(document: dict[str, Untyped], project: str) -> dict[str, Untyped]:
    from bqemulator.api.routes import jobs

    sql = document.get("query")
    if not isinstance(sql, str):
        return document
    return {**document, "query": jobs._apply_default_dataset(sql, document, request_project_id=project)}
