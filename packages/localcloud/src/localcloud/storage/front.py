"""Where requests to Cloud Storage come in: each is read once, asked about, and answered.

In: requests. Out: answers. Faults and the IAM table name calls by the methods of the JSON API
(https://cloud.google.com/storage/docs/json_api/v1): `storage.objects.insert gs://bucket/name`. A resumable upload is
one insert for its start and one, without the object's name, for each of its pieces.
"""

from __future__ import annotations

from localcloud.codes import HTTP_STATUS
from localcloud.errors import CallError
from localcloud.faults import FaultStore, InjectedError
from localcloud.http.fronts import Front, Permit, guarded
from localcloud.http.http1 import Request, Response
from localcloud.storage.batch import answer_batch
from localcloud.storage.calls import Call
from localcloud.storage.permissions import Table, answer_question, read_question
from localcloud.storage.refusals import RefusedError
from localcloud.storage.requests import is_xml, read_call
from localcloud.storage.service import StorageService

# Storage answers a precondition that does not hold with 412, where Google's other APIs say 400.
_STATUS = {**HTTP_STATUS, "FAILED_PRECONDITION": 412}


class StorageFront(Front[Call]):
    """Answers all requests to the hosts of Cloud Storage.

    Args:
        permit: Asks the IAM table.
        table: The IAM table, which callers may ask about themselves.
    """

    def __init__(self, service: StorageService, faults: FaultStore, permit: Permit[Call], table: Table) -> None:
        self._service = service
        self._table = table
        self._answer_one = guarded(self, permit, faults)

    async def answer(self, request: Request) -> Response:
        """Answer a request, or each part of a batch."""
        if request.path == "/batch" or request.path.startswith("/batch/storage/"):
            return await answer_batch(request, self._answer_one)
        return await self._answer_one(request)

    async def read_call(self, request: Request) -> Call:
        """Read a request."""
        return read_question(request) or await read_call(request, self._service.uploads.find_object)

    async def answer_call(self, call: Call) -> Response:
        """Answer a call."""
        if call.method.endswith(("IamPermissions", "IamPolicy")):
            self._service.require_bucket(call.bucket)
        return answer_question(call, self._table) or await self._service.answer(call)

    def refuse(self, request: Request, error: CallError) -> Response:
        """Put a refusal into the form of the API that was asked; that of a fault into the JSON API's."""
        if isinstance(error, InjectedError):
            return Response.of_error(_STATUS[error.code], error.message, error.code)
        refused = error if isinstance(error, RefusedError) else RefusedError(_STATUS[error.code], error.message)
        return refused.respond(xml=is_xml(request.head.target))
