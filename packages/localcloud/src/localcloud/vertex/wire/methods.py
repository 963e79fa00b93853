"""The whole API as a table, read from Google's own client library, so that no method is typed by hand.

Comes in: the `aiplatform_v1` package. Goes out: one `Method` per call, with its gRPC path, types and REST routes.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import grpc
from google.cloud.aiplatform_v1 import services
from google.longrunning import operations_pb2

# A protobuf message, plain or proto-plus: Google's packages publish no types.
Message = Any
PREFIX = "google.cloud.aiplatform.v1."
OPERATIONS = "google.longrunning.Operations"
_OPERATION_REQUESTS: dict[str, Any] = {
    "GetOperation": operations_pb2.GetOperationRequest,
    "ListOperations": operations_pb2.ListOperationsRequest,
    "WaitOperation": operations_pb2.WaitOperationRequest,
    "CancelOperation": operations_pb2.CancelOperationRequest,
    "DeleteOperation": operations_pb2.DeleteOperationRequest,
}


class Answer(NamedTuple):
    """A response, with header fields that go with it."""

    response: Message
    headers: Mapping[str, str] = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Route:
    """One REST address of a method.

    Args:
        verb: HTTP verb.
        template: Path with fields, `/v1/{parent=projects/*/locations/*}/customJobs`.
        body: Request field that the body is ('*': the whole request; None: there is no body).
    """

    verb: str
    template: str
    body: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
    """One call of the API."""

    service: str  # JobService
    name: str  # CreateCustomJob
    path: str  # /google.cloud.aiplatform.v1.JobService/CreateCustomJob
    request_type: Any
    unary: bool
    routes: tuple[Route, ...]

    @property
    def full_name(self) -> str:
        """`JobService.CreateCustomJob`, the name that handlers and faults go by."""
        return f"{self.service}.{self.name}"

    @property
    def handler_name(self) -> str:
        """`create_custom_job`, the function that answers it."""
        return snake_case(self.name)

    def read_request(self, data: bytes) -> Message:
        """Return the request in its wire bytes."""
        kind = self.request_type
        return kind.deserialize(data) if hasattr(kind, "deserialize") else kind.FromString(data)

    def write(self, response: Message) -> bytes:
        """Return wire bytes of a response."""
        return message_bytes(response)


def snake_case(name: str) -> str:
    """Return the form of a name that Python has: `CreateCustomJob` is `create_custom_job`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def message_bytes(message: Message) -> bytes:
    """Return wire bytes of a proto-plus or a plain protobuf message; maps have one order, as etags are made of it."""
    return bytes(raw(message).SerializeToString(deterministic=True))


def raw(message: Message) -> Message:
    """Return the plain protobuf message inside a proto-plus one (which shares its memory), or the message itself."""
    inner = type(message)
    return inner.pb(message) if hasattr(inner, "pb") else message


def load_methods() -> tuple[Method, ...]:
    """Return every method of every service of the client library, and those of long-running operations."""
    methods: list[Method] = []
    for module in pkgutil.iter_modules(services.__path__):
        methods.extend(_service_methods(module.name))
    methods.extend(_operation_methods())
    return tuple(methods)


@dataclasses.dataclass(eq=False)  # hashable: transports use their calls as keys
class _Call:
    path: str
    codec: dict[str, Any]
    unary: bool


class _RecordingChannel(grpc.Channel):  # type: ignore[misc]  # grpc publishes no types
    """A channel that only notes what a transport would call."""

    def unary_unary(self, method: str, *_: object, **codec: Message) -> _Call:
        return _Call(method, codec, True)

    def _streaming(self, method: str, *_: object, **codec: Message) -> _Call:
        return _Call(method, codec, False)

    unary_stream = stream_unary = stream_stream = _streaming

    def subscribe(self, callback: Callable[..., None], try_to_connect: bool = False) -> None:
        del callback, try_to_connect

    def unsubscribe(self, callback: Callable[..., None]) -> None:
        del callback

    def close(self) -> None:
        pass

    def __enter__(self) -> _RecordingChannel:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def _service_methods(module: str) -> Iterator[Method]:
    service = "".join(part.capitalize() for part in module.split("_"))
    transports = importlib.import_module(f"{services.__name__}.{module}.transports")
    kind = next(getattr(transports, name) for name in dir(transports) if name.endswith("GrpcTransport"))
    channel = _RecordingChannel()
    transport = kind(channel=channel)
    # The transport logs through a channel of its own making and remembers stubs: both must be ours.
    transport._logged_channel, transport._stubs = channel, {}
    routes = _service_routes(module)
    for attribute, value in vars(kind).items():
        if not isinstance(value, property) or attribute in ("operations_client", "grpc_channel"):
            continue
        call = getattr(transport, attribute)
        if not isinstance(call, _Call):
            continue
        owner, name = call.path.strip("/").split("/")
        if not owner.startswith(PREFIX):
            continue  # the mix-ins (operations, locations, IAM) are the same in every service
        service = owner.removeprefix(PREFIX)
        yield Method(
            service=service,
            name=name,
            path=call.path,
            request_type=call.codec["request_serializer"].__self__,
            unary=call.unary,
            routes=routes.get(name, ()),
        )


def _service_routes(module: str) -> dict[str, tuple[Route, ...]]:
    rest = importlib.import_module(f"{services.__name__}.{module}.transports.rest_base")
    holder = next(kind for name, kind in vars(rest).items() if re.fullmatch(r"_Base\w+RestTransport", name))
    routes: dict[str, tuple[Route, ...]] = {}
    for name, inner in vars(holder).items():
        if isinstance(inner, type) and hasattr(inner, "_get_http_options"):
            options = inner._get_http_options()
            routes[name.removeprefix("_Base")] = tuple(
                Route(verb=option["method"].upper(), template=option["uri"], body=option.get("body"))
                for option in options
            )
    return routes


def _operation_methods() -> Iterator[Method]:
    routes = _service_routes("job_service")
    for name, request_type in _OPERATION_REQUESTS.items():
        yield Method(
            service="Operations",
            name=name,
            path=f"/{OPERATIONS}/{name}",
            request_type=request_type,
            unary=True,
            routes=tuple(
                dataclasses.replace(route, template=route.template.replace("/v1/", f"/{version}/", 1))
                for version in ("v1", "v1beta1", "ui")  # clients of previews, and over REST, poll it there
                for route in routes[name]
                if route.template.startswith("/v1/")
            ),
        )
