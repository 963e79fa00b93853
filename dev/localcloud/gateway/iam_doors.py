"""The IAM table before the services that the gateway answers itself: Cloud Storage and the identity hosts.

In: requests and calls. Out: nothing, or a 403 in the service's own form.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from localcloud.access.iam import DeniedError, Iam
from localcloud.access.iam_calls import project_of
from localcloud.http.http1 import Request, Response
from localcloud.http.routes import Handler
from localcloud.storage.calls import Call
from localcloud.storage.front import Permit
from localcloud.storage.refusals import RefusedError

_ACCOUNT = re.compile(r"/v1/projects/-/serviceAccounts/(?P<email>[^/:]+)[/:](?P<verb>\w+)")
_PROJECT = re.compile(r"/v[13]/(projects/[^/:]+)")


def permit_storage(iam: Iam) -> Permit:
    """Return what asks the table about a call of Cloud Storage: the value that is acted on, not the request."""

    def permit(principal: str, call: Call) -> Response | None:
        resources = {
            "bucket": [f"buckets/{call.bucket}"] if call.bucket else [],
            "source": sorted({f"buckets/{source.bucket}" for source in call.sources}),
        }
        try:
            iam.check(principal, call.method, resources)
        except DeniedError as error:
            return RefusedError(403, str(error)).respond(xml=call.xml)
        return None

    return permit


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
