"""What stands before every call of BigQuery's REST API: the IAM table, then the faults; each call is counted.

In: requests with the tokens of their callers. Out: the same requests, or an error in BigQuery's form: 403 with the
reason `accessDenied` by the table, a fault's by its code. What a caller may on a table (`testIamPermissions`) is
answered here.
"""

from __future__ import annotations

import json
import re

from localcloud.access.bearer import Bearers
from localcloud.access.iam import DeniedError, Iam
from localcloud.bigquery.middleware.bodies import read_body, replay_body
from localcloud.bigquery.middleware.faults import STATUS, error_document, event_of
from localcloud.bigquery.middleware.permissions import asked
from localcloud.calls import code_of
from localcloud.faults import FaultStore, InjectedError
from localcloud.untyped import Untyped

_ASKED = re.compile(r"/bigquery/v2/(?P<resource>projects/[^/]+/datasets/[^/]+/tables/[^/:]+):testIamPermissions")

# https://cloud.google.com/bigquery/docs/reference/rest/v2/datasets#Dataset.FIELDS.access
_OLD_NAMES = {"roles/bigquery.dataViewer": "READER", "roles/bigquery.dataEditor": "WRITER"}


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
        if scope.get("method") == "POST" and (table := _ASKED.fullmatch(scope.get("path", ""))):
            await self._test_permissions(table, scope, receive, send)
            return
        event, about = event_of(scope.get("method", ""), scope.get("path", ""))
        if not event:
            await self._app(scope, receive, send)
            return
        await self._answer(event, about, scope, receive, self._counting(event, send))

    def _counting(self, event: str, send: Untyped) -> Untyped:
        """Return what counts a call by the status that is sent."""

        async def count(message: dict[str, Untyped]) -> None:
            if message["type"] == "http.response.start":
                self._faults.count(event, code_of(message["status"]))
            await send(message)

        return count

    async def _answer(self, event: str, about: str, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        try:
            received = await self._permit(event, scope, receive)
            interception = self._faults.intercept(event, about)
            if event == "bigquery.datasets.get" and self._iam.in_force():
                send = self._with_access(scope["path"], send)
            async with interception:
                await self._app(scope, received, _swallow if interception.loses_response else send)
        except DeniedError as error:
            await _refuse(error.code, error_document(error.code, f"Access Denied: {error}"))(scope, receive, send)
        except InjectedError as error:
            document = error_document(error.code, error.message, error.reason)
            await _refuse(error.code, document)(scope, receive, send)

    def _with_access(self, path: str, send: Untyped) -> Untyped:
        """Return what sends a dataset's answer with the `access` that the table gives on the dataset itself."""
        started: list[dict[str, Untyped]] = []
        body = bytearray()

        async def add(message: dict[str, Untyped]) -> None:
            if message["type"] == "http.response.start":
                started.append(message)
                return
            body.extend(message.get("body", b""))
            if message.get("more_body"):
                return
            answer = bytes(body)
            if started[0]["status"] == 200:
                resource = path.partition("/bigquery/v2/")[2].rstrip("/")
                answer = json.dumps({**json.loads(answer), "access": _access(self._iam.policy(resource))}).encode()
            length = (b"content-length", str(len(answer)).encode())
            kept = [field for field in started[0]["headers"] if field[0].lower() != length[0]]
            await send({**started[0], "headers": [*kept, length]})
            await send({"type": "http.response.body", "body": answer})

        return add

    async def _test_permissions(
        self, table: re.Match[str], scope: dict[str, Untyped], receive: Untyped, send: Untyped
    ) -> None:
        """Answer a table's `testIamPermissions` from the IAM table."""
        from starlette.responses import JSONResponse

        document = json.loads(await read_body(receive) or b"{}")
        principal = self._bearers.principal(_fields(scope).get("authorization", ""))
        granted = self._iam.granted(principal, document.get("permissions", []), table["resource"])
        await JSONResponse({"permissions": granted} if granted else {})(scope, receive, send)

    async def _permit(self, event: str, scope: dict[str, Untyped], receive: Untyped) -> Untyped:
        """Hold a call against the table, which needs its body; return what gives the body once more.

        Raises:
            DeniedError: The table does not grant it.
        """
        if not self._iam.in_force():
            return receive
        has_document = scope["method"] == "POST" or event == "bigquery.routines.update"
        body = await read_body(receive) if has_document else b""
        method, resources = asked(event, scope["path"], body)
        self._iam.check(self._bearers.principal(_fields(scope).get("authorization", "")), method, resources)
        return replay_body(body, receive) if has_document else receive


def _access(policy: dict[str, Untyped]) -> list[dict[str, str]]:
    """Return a policy as a dataset has it: basic roles by their old names."""
    return [
        {"role": _OLD_NAMES.get(each["role"], each["role"]), "userByEmail": member.partition(":")[2]}
        for each in policy["bindings"]
        for member in each["members"]
    ]


def _fields(scope: dict[str, Untyped]) -> dict[str, str]:
    return {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _refuse(code: str, document: dict[str, Untyped]) -> Untyped:
    from starlette.responses import JSONResponse

    return JSONResponse(document, status_code=STATUS[code])


async def _swallow(_message: dict[str, Untyped]) -> None:
    """Take a piece of an answer that nobody gets."""
