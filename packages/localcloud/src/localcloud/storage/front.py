"""Where requests to Cloud Storage come in: each is read once, asked about, and answered.

In: requests. Out: answers. The IAM table and the faults look at the value that the service acts on, so nothing that
one of them did not see can be done.
"""

from __future__ import annotations

from collections.abc import Callable

from localcloud.faults import FaultShelf
from localcloud.http.http1 import Request, Response
from localcloud.storage.batch import answer_batch
from localcloud.storage.calls import Call
from localcloud.storage.faults import answer_or_fail
from localcloud.storage.refusals import RefusedError
from localcloud.storage.requests import is_xml, read_call
from localcloud.storage.service import StorageService

Permit = Callable[[str, Call], Response | None]
"""Gives the refusal of a call, by the caller's e-mail address and the call; None lets it pass."""


class StorageFront:
    """Answers all requests to the hosts of Cloud Storage.

    Args:
        permit: Asks the IAM table.
    """

    def __init__(self, service: StorageService, shelf: FaultShelf, permit: Permit) -> None:
        self._service = service
        self._shelf = shelf
        self._permit = permit

    async def answer(self, request: Request) -> Response:
        """Answer a request, or each part of a batch."""
        if request.path == "/batch" or request.path.startswith("/batch/storage/"):
            return await answer_batch(request, self._answer_one)
        return await self._answer_one(request)

    async def _answer_one(self, request: Request) -> Response:
        try:
            call = await read_call(request, self._service.uploads.find_object)
            refusal = self._permit(request.principal, call)
            return refusal or await answer_or_fail(self._shelf, call, self._service.answer)
        except RefusedError as refused:
            return refused.respond(xml=is_xml(request.head.target))
