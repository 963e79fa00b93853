"""What stands before every call of the REST services that the gateway answers: the IAM table, then the faults.

In: a `Front`, which reads a request once, and answers what it read. Out: a handler of requests. Table and faults look
at the value that is acted on, so nothing that one of them did not see can be done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from localcloud.codes import HTTP_STATUS
from localcloud.errors import CallError
from localcloud.faults import FaultStore
from localcloud.http.http1 import Request, Response
from localcloud.http.routes import Handler


class Event(Protocol):
    """A call, as faults name it."""

    @property
    def method(self) -> str:
        """Its name in `service.json`."""

    @property
    def about(self) -> str:
        """What it concerns, as a fault's target may name it; "" for nothing."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call that was read; a service whose calls have more to say inherits from it.

    Attributes:
        method: Its name in `service.json`.
        resources: What it concerns, by the kinds that `service.json` names.
        about: What it concerns, as a fault's target may name it.
    """

    method: str
    resources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    about: str = ""


AnyCall = TypeVar("AnyCall", bound=Event)
Permit = Callable[[str, AnyCall], None]
"""Lets a call of a caller, by the e-mail address, pass; raises `CallError` where the IAM table does not grant it."""


class Front(ABC, Generic[AnyCall]):
    """A service that answers REST inside the gateway."""

    @abstractmethod
    async def read_call(self, request: Request) -> AnyCall:
        """Read a request.

        Raises:
            CallError: It is none of this service's.
        """

    @abstractmethod
    async def answer_call(self, call: AnyCall) -> Response:
        """Answer a call.

        Raises:
            CallError: It is refused.
        """

    def refuse(self, request: Request, error: CallError) -> Response:
        """Put a refusal into the service's form; this one is that of most of Google's."""
        del request  # a service with several APIs looks at it
        return Response.of_error(HTTP_STATUS[error.code], error.message, error.code)


def guarded(front: Front[AnyCall], permit: Permit[AnyCall], faults: FaultStore) -> Handler:
    """Return what answers the requests to a service, after the IAM table and the faults were asked."""

    async def answer(request: Request) -> Response:
        try:
            call = await front.read_call(request)
            faults.count(call.method)
            permit(request.principal, call)
            async with faults.intercept(call.method, call.about):
                return await front.answer_call(call)
        except CallError as error:
            return front.refuse(request, error)

    return answer
