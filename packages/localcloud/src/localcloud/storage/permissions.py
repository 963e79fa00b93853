"""What a caller may on a bucket, and what is bound on it: `testIamPermissions` and `getIamPolicy` of the JSON API.

In: requests, and the IAM table as the gateway hands it in. Out: a `Call` that says what is asked, and its answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from localcloud.http.http1 import Request, Response
from localcloud.storage.calls import Call
from localcloud.storage.names import check_bucket_name
from localcloud.storage.refusals import RefusedError

_ADDRESS = re.compile(r"/storage/v1/b/(?P<bucket>[^/]+)/iam(?P<test>/testPermissions)?")
_PARAMETERS = {"permissions", "prettyPrint", "alt", "userProject"}
_OF_POLICIES = {"optionsRequestedPolicyVersion", "prettyPrint", "alt", "userProject"}
_FORM = re.compile(r"storage\.\w+\.\w+")


class Table(Protocol):
    """The IAM table."""

    def granted(self, principal: str, permissions: Sequence[str], resource: str) -> list[str]:
        """Return those of some permissions that a principal has on a resource."""

    def policy(self, resource: str) -> dict[str, Any]:
        """Return what is bound on a resource."""


def read_question(request: Request) -> Call | None:
    """Read a request; None: it asks for something else.

    Raises:
        RefusedError: It has other parameters, or permissions that no bucket has.
    """
    address = urlsplit(request.head.target)
    found = _ADDRESS.fullmatch(unquote(address.path))
    if found is None or request.method != "GET":
        return None
    query = parse_qsl(address.query, keep_blank_values=True)
    known = _PARAMETERS if found["test"] else _OF_POLICIES
    if unknown := [name for name, _ in query if name not in known]:
        raise RefusedError(400, f"Unknown parameter {unknown[0]!r}. Expected one of: {', '.join(sorted(known))}.")
    permissions = tuple(value for name, value in query if name == "permissions")
    if found["test"] and not permissions:
        raise RefusedError(400, "Required parameter: permissions")
    if wrong := [each for each in permissions if not _FORM.fullmatch(each)]:
        raise RefusedError(400, f"Permission {wrong[0]!r} is not valid for this resource.")
    return Call(
        method=f"storage.buckets.{'testIamPermissions' if found['test'] else 'getIamPolicy'}",
        bucket=check_bucket_name(found["bucket"]),
        permissions=permissions,
        principal=request.principal,
        host=request.host,
    )


def answer_question(call: Call, table: Table) -> Response | None:
    """Answer what `read_question` read, of a bucket that is there; None: the call is another."""
    resource = f"buckets/{call.bucket}"
    if call.method == "storage.buckets.getIamPolicy":
        policy = {"kind": "storage#policy", "resourceId": f"projects/_/{resource}", **table.policy(resource)}
        return Response.of_json(policy)
    if call.method == "storage.buckets.testIamPermissions":
        granted = table.granted(call.principal, call.permissions, resource)
        kept = {"permissions": granted} if granted else {}
        return Response.of_json({"kind": "storage#testIamPermissionsResponse", **kept})
    return None
