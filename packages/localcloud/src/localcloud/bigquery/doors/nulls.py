"""A field of a job's configuration that is null is one that is not there, in every configuration.

In: `jobs.insert` and `jobs.query`, as clients send them: Airflow's operators give every option, most of them null.
Out: the same without those fields, before anybody looks at them. Other calls keep theirs: a patch takes a field away
by null.
"""

from __future__ import annotations

import json
import re

from localcloud.bigquery.doors.permissions import read_body, replay_body
from localcloud.nulls import without_nulls
from localcloud.untyped import Untyped

_JOBS = re.compile(r"/bigquery/v2/projects/[^/]+/(jobs|queries)")


def install() -> None:
    """Put this before all that stands before the REST application once it is made."""
    from bqemulator import server

    original = server.create_app

    def create_app(context: Untyped) -> Untyped:
        app = original(context)
        app.add_middleware(AbsentNulls)
        return app

    server.create_app = create_app


class AbsentNulls:
    """Takes the nulls out of a new job (ASGI)."""

    def __init__(self, app: Untyped) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Serve a request."""
        if scope.get("method") != "POST" or not _JOBS.fullmatch(scope.get("path", "")):
            await self._app(scope, receive, send)
            return
        body = await read_body(receive)
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict):
            body = json.dumps(without_nulls(document)).encode()
            headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
            scope = {**scope, "headers": [*headers, (b"content-length", str(len(body)).encode())]}
        await self._app(scope, replay_body(body, receive), send)
