"""The IAM table before the services that the gateway answers itself: Cloud Storage and the identity hosts.

In: requests. Out: who would answer them, or a 403 in the service's own form.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote

from localcloud.access.bearer import Bearers
from localcloud.access.iam import DeniedError, Iam
from localcloud.access.iam_calls import project_of
from localcloud.http.http1 import Head, Request, Response
from localcloud.http.routes import Handler, Target
from localcloud.storage.faults import event_of

_BUCKET = re.compile(r"/b/([^/?]+)")
_ACCOUNT = re.compile(r"/v1/projects/-/serviceAccounts/(?P<email>[^/:]+)[/:](?P<verb>\w+)")
_PROJECT = re.compile(r"/v[13]/(projects/[^/:]+)")


class StorageIam:
    """Stands in front of all that storage is made of, but for batches, whose parts come by here one by one.

    Args:
        choose: Gives who answers a request that its caller may make.
        bearers: Knows who calls.
    """

    def __init__(self, choose: Callable[[Head], Target], iam: Iam, bearers: Bearers) -> None:
        self._inner = choose
        self._iam = iam
        self._bearers = bearers

    def choose(self, head: Head) -> Target:
        """Give the target of a request to a storage host."""
        if not self._iam.in_force():
            return self._inner(head)
        event = event_of(head)
        source = _BUCKET.search(head.target)
        named = event.about.removeprefix("gs://").partition("/")[0] or (unquote(source[1]) if source else "")
        resources = {"bucket": [f"buckets/{named}"], "source": [f"buckets/{unquote(source[1])}"] if source else []}
        try:
            self._iam.check(self._bearers.principal(head.get("authorization")), event.method, resources)
        except DeniedError as error:
            return _refusing(str(error))
        return self._inner(head)


def guard_identity(answer: Handler, iam: Iam) -> Handler:
    """Put the table before the identity hosts; who asks for a token there has none, and is not asked for permission."""

    async def guarded(request: Request) -> Response:
        if request.host == "oauth2.googleapis.com":
            return await answer(request)
        account, project = _ACCOUNT.fullmatch(unquote(request.path)), _PROJECT.fullmatch(request.path)
        method, resources = f"{request.host} {request.path}", dict[str, list[str]]()
        if account is not None:
            method = f"iamcredentials.{account['verb']}"
            resources["service_account"] = [
                f"projects/{project_of(account['email'])}/serviceAccounts/{account['email']}"
            ]
        elif project is not None:
            method, resources["project"] = "Projects.GetProject", [project[1]]
        try:
            iam.check(request.principal, method, resources)
        except DeniedError as error:
            return Response.of_error(403, str(error), "PERMISSION_DENIED")
        return await answer(request)

    return guarded


def _refusing(message: str) -> Handler:
    async def refuse(_request: Request) -> Response:
        detail = {"message": message, "domain": "global", "reason": "forbidden"}
        return Response.of_json({"error": {"code": 403, "message": message, "errors": [detail]}}, 403)

    return refuse
