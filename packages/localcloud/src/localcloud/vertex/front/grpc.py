"""The gRPC server: any method of the table, without generated code.

Comes in: a path and bytes. Goes out: bytes, or a gRPC status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent import futures
from pathlib import Path

import grpc

from localcloud.access.bearer import Bearers
from localcloud.access.grpc_middleware import GrpcMiddleware, authorization_of
from localcloud.vertex.front.dispatch import Dispatcher
from localcloud.vertex.wire.errors import ApiError, InvalidArgument, Unimplemented
from localcloud.vertex.wire.methods import Method

Answer = Callable[[bytes, grpc.ServicerContext], bytes]
# A waiting WaitOperation or a slow prediction holds a thread each.
WORKERS = 48
MAX_MESSAGE_BYTES = 64 * 1024 * 1024


def bind_grpc(dispatcher: Dispatcher, methods: Iterable[Method], socket_path: Path, bearers: Bearers) -> grpc.Server:
    """Listen for gRPC on a unix socket; gives the server, which answers once it is started."""
    options = [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ]
    server = grpc.server(
        futures.ThreadPoolExecutor(WORKERS, thread_name_prefix="grpc"),
        options=options,
        interceptors=[GrpcMiddleware(bearers)],
    )
    server.add_generic_rpc_handlers((_Handler(dispatcher, methods, bearers),))
    socket_path.unlink(missing_ok=True)  # of a server that was killed: this state directory is ours
    server.add_insecure_port(f"unix:{socket_path}")
    return server


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc publishes no types
    def __init__(self, dispatcher: Dispatcher, methods: Iterable[Method], bearers: Bearers) -> None:
        self._dispatcher = dispatcher
        self._bearers = bearers
        self._methods = {method.path: method for method in methods}

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        method = self._methods.get(details.method)
        if method is None or not method.unary:
            return grpc.unary_unary_rpc_method_handler(_refuse(details.method))
        return grpc.unary_unary_rpc_method_handler(self._answer(method))

    def _answer(self, method: Method) -> Answer:
        def answer(data: bytes, context: grpc.ServicerContext) -> bytes:
            try:
                try:
                    request = method.read_request(data)
                except Exception as error:  # protobuf raises DecodeError or a plain RuntimeError
                    raise InvalidArgument(f"The request is not a {method.name}Request: {error}.") from error
                principal = self._bearers.principal(authorization_of(context.invocation_metadata()))
                response, headers = self._dispatcher.call(method, request, _authority(context), principal)
                if headers:
                    context.set_trailing_metadata([(key.lower(), value) for key, value in headers.items()])
                return method.write(response)
            except ApiError as error:
                context.abort(getattr(grpc.StatusCode, error.code), error.message)
                raise AssertionError("abort always raises") from error

        return answer


def _authority(context: grpc.ServicerContext) -> str:
    """Return the `:authority` that the caller addressed; gRPC for Python keeps it where only its own code looks."""
    event = getattr(context, "_rpc_event", None)
    host = getattr(getattr(event, "call_details", None), "host", b"")
    return host.decode() if isinstance(host, bytes) else str(host)


def _refuse(path: str) -> Answer:
    def refuse(data: bytes, context: grpc.ServicerContext) -> bytes:
        del data
        error = Unimplemented(f"The local cloud does not offer {path.strip('/').replace('/', '.')}.")
        context.abort(getattr(grpc.StatusCode, error.code), error.message)
        raise AssertionError("abort always raises")

    return refuse
