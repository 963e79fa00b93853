"""The IAM table, as the REST services that the gateway answers are held to it (`http.fronts`).

In: who calls, and what they call. Out: nothing, or `DeniedError`.
"""

from __future__ import annotations

from localcloud.access.iam import Iam, Resources, object_resource
from localcloud.http import fronts
from localcloud.http.fronts import Permit
from localcloud.storage.calls import Call


def permit_calls(iam: Iam) -> Permit[fronts.Call]:
    """Return what asks the table about a call that says itself what it concerns."""
    return lambda principal, call: iam.check(principal, call.method, call.resources)


def permit_storage(iam: Iam) -> Permit[Call]:
    """Return what asks the table about a call of Cloud Storage: the value that is acted on, not the request."""
    return lambda principal, call: iam.check(principal, call.method, concerned(call))


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
