"""Patches `jobs.query` that fails: it answers 200 and puts the error into the document.

Google's client takes that for a query without rows: `query_and_wait` would hide every error.
"""

from __future__ import annotations

import json
import re
from http import HTTPStatus

from localcloud.untyped import Untyped

# https://cloud.google.com/bigquery/docs/error-messages#errortable
_STATUS_OF_REASON = {
    **dict.fromkeys(("accessDenied", "quotaExceeded", "rateLimitExceeded", "responseTooLarge"), HTTPStatus.FORBIDDEN),
    **dict.fromkeys(("backendError", "internalError"), HTTPStatus.SERVICE_UNAVAILABLE),
    "notFound": HTTPStatus.NOT_FOUND,
    "duplicate": HTTPStatus.CONFLICT,
    "notImplemented": HTTPStatus.NOT_IMPLEMENTED,
}


class FailedQueries:
    """Answers a failed `jobs.query` with its error (ASGI)."""

    def __init__(self, app: Untyped) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Serve a request."""
        if scope.get("method") != "POST" or not re.fullmatch(r"/bigquery/v2/projects/[^/]+/queries", scope["path"]):
            await self._app(scope, receive, send)
            return
        messages: list[dict[str, Untyped]] = []

        async def keep_message(message: dict[str, Untyped]) -> None:
            messages.append(message)

        await self._app(scope, receive, keep_message)
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
