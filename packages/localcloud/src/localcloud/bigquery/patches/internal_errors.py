"""Patches faults that are not foreseen: 500 "internal error", which Google's clients repeat for ten minutes."""

from __future__ import annotations

import logging
import re

from localcloud.untyped import Untyped

_log = logging.getLogger("bigquery")


class InternalErrors:
    """Answers a fault with 501 and its text, SQL nested too deep with 400, a missing dataset with 404 (ASGI)."""

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
            status, reason, message = _error_of(error)
            _log.warning("%s %s: %r", scope.get("method"), scope.get("path"), error)
            document = {"code": status, "message": message, "errors": [{"reason": reason, "message": message}]}
            await JSONResponse({"error": document}, status_code=status)(scope, receive, send)


def _error_of(error: Exception) -> tuple[int, str, str]:
    """Return status, reason and message of a fault that bqemulator did not foresee."""
    if missing := re.search(r"Schema with name (\S+?)__(\S+) does not exist", str(error)):
        return 404, "notFound", f"Not found: Dataset {missing[1]}:{missing[2]}"
    status, reason, message = 501, "notImplemented", "The local cloud's BigQuery cannot do this"
    if isinstance(error, RecursionError):
        status, reason, message = 400, "invalidQuery", "Query is too complex: it is nested too deep"
    return status, reason, f"{message}: {type(error).__name__}: {str(error)[:2000]}"
