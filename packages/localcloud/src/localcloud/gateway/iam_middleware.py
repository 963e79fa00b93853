"""The IAM table before the services that the gateway answers itself: Cloud Storage and the identity hosts.

In: requests and calls. Out: nothing, or a 403 in the service's own form.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from localcloud.access.iam import DeniedError, Iam, Resources, object_resource
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
        try:
            iam.check(principal, call.method, concerned(call))
        except DeniedError as error:
            return RefusedError(403, str(error)).respond(xml=call.xml)
        return None

    return permit


def concerned(call: Call) -> Resources:
    """Return the object or bucket of a call, and the objects that it reads to write it.

    A list's resource is the bucket, whatever prefix it asks for. A piece of a resumable upload concerns nothing: its
    session was begun by somebody who may create the object.
    """
    piece = call.upload not in ("", "start")
    return {
        "bucket": [object_resource(call.bucket, call.name)] if call.bucket and not piece else [],
        "source": sorted({object_resource(source.bucket, source.name) for source in call.sources}),
    }


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
