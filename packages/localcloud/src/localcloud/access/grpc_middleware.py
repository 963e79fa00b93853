"""What stands before every gRPC method of the local cloud: who calls, what they may do, what goes wrong.

In: calls. Out: UNAUTHENTICATED for nobody we know, PERMISSION_DENIED by the IAM table, INVALID_ARGUMENT for bytes that
are not the method's request, the code of a `CallError` (a fault that was asked for is one), INTERNAL for a fault of
ours; gRPC for Python would say UNKNOWN or INTERNAL to all of them, and print a traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import grpc

from localcloud.access.bearer import BearerError, Bearers
from localcloud.access.iam import DeniedError, Iam
from localcloud.access.iam_calls import about, asked, name_of
from localcloud.errors import CallError
from localcloud.faults import FaultStore

_log = logging.getLogger("grpc")

Details = Any  # grpc.HandlerCallDetails: grpc publishes no types
Around = Callable[[Any], AbstractContextManager[None]]
"""Returns what a fault does to the call of a request, as a context around its work."""


class GrpcMiddleware(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc publishes no types
    """Stands before the methods of one server.

    Args:
        bearers: Knows who calls.
        iam: The IAM table; None for a server that asks it itself.
        faults: The faults in force, and where calls are counted; None for a server that does both itself.
    """

    def __init__(self, bearers: Bearers, iam: Iam | None = None, faults: FaultStore | None = None) -> None:
        self._bearers = bearers
        self._iam = iam
        self._faults = faults

    def intercept_service(
        self,
        continuation: Callable[[Details], grpc.RpcMethodHandler | None],
        handler_call_details: Details,
    ) -> grpc.RpcMethodHandler | None:
        """Return the handler of a call (grpc's interface)."""
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        read = handler.request_deserializer or (lambda data: data)
        try:
            principal = self._bearers.principal(authorization_of(handler_call_details.invocation_metadata))
            read = self._permitting(read, principal, handler_call_details.method)
        except BearerError as error:
            read = _refusing(str(error))
        make = (
            grpc.unary_stream_rpc_method_handler if handler.response_streaming else grpc.unary_unary_rpc_method_handler
        )
        around = self._around(handler_call_details.method)
        behaviour = _stream(handler, read, around) if handler.response_streaming else _single(handler, read, around)
        return make(behaviour, None, handler.response_serializer)

    def _permitting(self, read: Callable[[bytes], Any], principal: str, path: str) -> Callable[[bytes], Any]:
        def permit(data: bytes) -> object:
            request = read(data)
            if self._iam is not None and self._iam.in_force():
                self._iam.check(principal, *asked(path, request))
            return request

        return permit

    def _around(self, path: str) -> Around:
        def intercept(request: object) -> AbstractContextManager[None]:
            if self._faults is None:
                return nullcontext()
            self._faults.count(name_of(path))
            if self._faults.is_empty():
                return nullcontext()
            method, resources = asked(path, request)
            return self._faults.intercept(method, about(resources))

        return intercept


class _Refusal(Exception):
    """The call is not for us."""


def authorization_of(metadata: object) -> str:
    """Return the `authorization` entry of a call's metadata ("" for none)."""
    pairs = metadata if isinstance(metadata, tuple | list) else ()
    return next((str(value) for key, value in pairs if key == "authorization"), "")


def _refusing(message: str) -> Callable[[bytes], Any]:
    def refuse(_data: bytes) -> object:
        raise _Refusal(message)

    return refuse


def _read_request(read: Callable[[bytes], Any], data: bytes, context: grpc.ServicerContext) -> Any:  # noqa: ANN401 - a message
    try:
        return read(data)
    except _Refusal as refusal:
        context.abort(grpc.StatusCode.UNAUTHENTICATED, str(refusal))
    except DeniedError as denied:
        context.abort(grpc.StatusCode.PERMISSION_DENIED, str(denied))
    except Exception as error:  # noqa: BLE001 - protobuf raises DecodeError or a plain RuntimeError
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"The request cannot be read: {error}.")
    raise AssertionError("abort always raises")


def _single(
    handler: grpc.RpcMethodHandler, read: Callable[[bytes], Any], around: Around
) -> Callable[[bytes, Any], Any]:
    def answer(data: bytes, context: grpc.ServicerContext) -> object:
        request = _read_request(read, data, context)
        with _ending(context), around(request):
            return handler.unary_unary(request, context)

    return answer


def _stream(
    handler: grpc.RpcMethodHandler, read: Callable[[bytes], Any], around: Around
) -> Callable[[bytes, Any], Iterator[Any]]:
    def answer(data: bytes, context: grpc.ServicerContext) -> Iterator[object]:
        request = _read_request(read, data, context)
        with _ending(context), around(request):
            yield from handler.unary_stream(request, context)

    return answer


@contextmanager
def _ending(context: grpc.ServicerContext) -> Iterator[None]:
    """End a call that fails with a status that its client can read."""
    try:
        yield
    except CallError as error:
        context.abort(grpc.StatusCode[error.code], error.message)
    except Exception as error:  # whatever a handler raises, and what `abort` does: the client gets a status
        _end(error, context)
        raise


def _end(error: Exception, context: grpc.ServicerContext) -> None:
    if context.code() is not None:  # a refusal on its way out: `abort` raises
        return
    _log.exception("a call failed")
    context.abort(
        grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}. See the log of the local cloud's server."
    )
