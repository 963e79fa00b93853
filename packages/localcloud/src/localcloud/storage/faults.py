"""Faults of Cloud Storage: lets a call go wrong when a fault says so.

In: a call, the shelf of faults, and who answers it. Out: that answer, or the fault's. Events are named by the methods
of the JSON API (https://cloud.google.com/storage/docs/json_api/v1): `storage.objects.insert gs://bucket/name`. A
resumable upload is one insert for its start and one, without the object's name, for each of its pieces.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from localcloud.codes import HTTP_STATUS
from localcloud.faults import FaultShelf, InjectedError
from localcloud.http.http1 import Response
from localcloud.storage.calls import Call

# Storage answers a precondition that does not hold with 412, where Google's other APIs say 400.
_STATUS = {**HTTP_STATUS, "FAILED_PRECONDITION": 412}


async def answer_or_fail(shelf: FaultShelf, call: Call, answer: Callable[[Call], Awaitable[Response]]) -> Response:
    """Answer a call as the first fault that it meets wants it; without one, as it is."""
    try:
        async with shelf.intercept(call.method, call.about):
            return await answer(call)
    except InjectedError as error:
        return Response.of_error(_STATUS[error.code], error.message, error.code)
