"""Which service stands behind which host name of Google's.

In: the state directory of a local cloud and the handlers that live in the gateway. Out: `Routes.find_route(host)`, a
`Route` with a gRPC address and a choice of REST target by path; None for every host that is no part of the local cloud.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from localcloud.http.http1 import HEAD_LIMIT_BYTES, Head, Request, Response
from localcloud.state import State

Handler = Callable[[Request], Awaitable[Response]]
_VERTEX = re.compile(r"([a-z0-9-]+-)?aiplatform\.googleapis\.com|[a-z0-9-]+\.[a-z0-9-]+\.prediction\.vertexai\.goog")


@dataclass(frozen=True)
class Address:
    """A server of the local cloud on a unix socket."""

    name: str
    path: Path

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to it."""
        return await asyncio.open_unix_connection(self.path, limit=HEAD_LIMIT_BYTES)


Target = Address | Handler


@dataclass(frozen=True, kw_only=True)
class Route:
    """Where the requests for one host go."""

    host: str
    grpc: Address | None = None
    rest: Callable[[Head], Target | None] = lambda _head: None


class Routes:
    """The table of hosts."""

    def __init__(self, state: State, *, identity: Handler, logs: Handler, storage: Handler) -> None:
        self._vertex_rest = Address("vertex", state.socket_path("vertex_rest"))
        self._vertex_grpc = Address("vertex", state.socket_path("vertex_grpc"))
        bigquery = Address("bigquery", state.socket_path("bigquery_rest"))
        bigquery_grpc = Address("bigquery", state.socket_path("bigquery_grpc"))
        logs_grpc = Address("logging", state.socket_path("logging_grpc"))

        def by_path(head: Head) -> Target | None:
            if re.match(r"/(upload/|resumable/upload/)?bigquery/", head.target):
                return bigquery
            return storage if re.match(r"/((resumable/)?upload/|download/|batch/)?storage/", head.target) else None

        self._routes = {
            route.host: route
            for route in (
                Route(host="bigquery.googleapis.com", rest=lambda _head: bigquery),
                Route(host="bigquerystorage.googleapis.com", grpc=bigquery_grpc),
                Route(host="storage.googleapis.com", rest=lambda _head: storage),
                Route(host="www.googleapis.com", rest=by_path),
                Route(host="logging.googleapis.com", grpc=logs_grpc, rest=lambda _head: logs),
                Route(host="monitoring.googleapis.com", grpc=logs_grpc),
                Route(host="oauth2.googleapis.com", rest=lambda _head: identity),
                Route(host="iamcredentials.googleapis.com", rest=lambda _head: identity),
                Route(host="cloudresourcemanager.googleapis.com", grpc=logs_grpc, rest=lambda _head: identity),
            )
        }

    def hosts(self) -> list[str]:
        """List the host names, those of regions and endpoints as patterns."""
        patterns = ("<region>-aiplatform.googleapis.com", "<endpoint>.<region>-<number>.prediction.vertexai.goog")
        return [*patterns, *sorted(self._routes)]

    def find_route(self, host: str) -> Route | None:
        """Give the route of a host, None for one that is not part of the local cloud."""
        if _VERTEX.fullmatch(host):
            return Route(host=host, grpc=self._vertex_grpc, rest=lambda _head: self._vertex_rest)
        return self._routes.get(host)
