"""What stands before every call of BigQuery's REST API: the IAM table, then the faults.

In: requests with the tokens of their callers. Out: the same requests, or an error in BigQuery's form: 403 with the
reason `accessDenied` by the table, a fault's by its code.
"""

from __future__ import annotations

from localcloud.access.bearer import Bearers
from localcloud.access.iam import DeniedError, Iam
from localcloud.bigquery.middleware.bodies import read_body, replay_body
from localcloud.bigquery.middleware.faults import STATUS, error_document, event_of
from localcloud.bigquery.middleware.permissions import asked
from localcloud.faults import FaultStore, InjectedError
from localcloud.untyped import Untyped


def install(iam: Iam, bearers: Bearers, faults: FaultStore) -> None:
    """Put this before the REST application once it is made."""
    from bqemulator import server

    original = server.create_app

    def create_app(context: Untyped) -> Untyped:
        app = original(context)
        app.add_middleware(Guard, iam=iam, bearers=bearers, faults=faults)
        return app

    server.create_app = create_app


class Guard:
    """Refuses REST calls that the table does not grant, answers others with the faults meant for them (ASGI)."""

    def __init__(self, app: Untyped, iam: Iam, bearers: Bearers, faults: FaultStore) -> None:
        self._app = app
        self._iam = iam
        self._bearers = bearers
        self._faults = faults

    async def __call__(self, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Serve a request."""
        event, about = event_of(scope.get("method", ""), scope.get("path", ""))
        if not event:
            await self._app(scope, receive, send)
            return
        try:
            received = await self._permit(event, scope, receive)
            interception = self._faults.intercept(event, about)
            async with interception:
                await self._app(scope, received, _swallow if interception.loses_response else send)
        except DeniedError as error:
            await _refuse(error.code, error_document(error.code, f"Access Denied: {error}"))(scope, receive, send)
        except InjectedError as error:
            document = error_document(error.code, error.message, error.reason)
            await _refuse(error.code, document)(scope, receive, send)

    async def _permit(self, event: str, scope: dict[str, Untyped], receive: Untyped) -> Untyped:
        """Hold a call against the table, which needs its body; return what gives the body once more.

        Raises:
            DeniedError: The table does not grant it.
        """
        if not self._iam.in_force():
            return receive
        body = await read_body(receive) if scope["method"] == "POST" else b""
        fields = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        method, resources = asked(event, scope["path"], body)
        self._iam.check(self._bearers.principal(fields.get("authorization", "")), method, resources)
        return replay_body(body, receive) if scope["method"] == "POST" else receive


def _refuse(code: str, document: dict[str, Untyped]) -> Untyped:
    from starlette.responses import JSONResponse

    return JSONResponse(document, status_code=STATUS[code])


async def _swallow(_message: dict[str, Untyped]) -> None:
    """Take a piece of an answer that nobody gets."""
