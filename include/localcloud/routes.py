"""Which service stands behind which host name of Google's.

In: the ports of a local cloud and the handlers that live in the gateway. Out: `Routes.find(host)`, a `Route` with a
gRPC address and a choice of REST target by path; None for every host that is not part of the local cloud.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from localcloud.http1 import HEAD_LIMIT_BYTES, Head, Request, Response
from localcloud.state import Settings

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Address:
    """A server of the local cloud on loopback."""

    name: str
    port: int

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to it."""
        return await asyncio.open_connection("127.0.0.1", self.port, limit=HEAD_LIMIT_BYTES)


Target = Address | Handler


@dataclass(frozen=True, kw_only=True)
class Route:
    """Where the requests for one host go."""

    host: str
    grpc: Address | None = None
    rest: Callable[[Head], Target | None] = lambda _head: None


class Routes:
    """The table of hosts."""

    def __init__(
        self, settings: Settings, *, identity: Handler, logs: Handler, storage: Callable[[Head], Target]
    ) -> None:
        ports = settings.ports
        self._vertex_rest = Address("vertex", ports["vertex_rest"])
        self._vertex_grpc = Address("vertex", ports["vertex_grpc"])
        bigquery = Address("bigquery", ports["bigquery_rest"])
        bigquery_grpc = Address("bigquery", ports["bigquery_grpc"])
        logs_grpc = Address("logging", ports["logging_grpc"])

        def by_path(head: Head) -> Target | None:
            if re.match(r"/(upload/|resumable/upload/)?bigquery/", head.target):
                return bigquery
            return (
                storage(head)
                if re.match(r"/(storage|upload/storage|download/storage|batch/storage)", head.target)
                else None
            )

        self._routes = {
            route.host: route
            for route in (
                Route(host="bigquery.googleapis.com", rest=lambda _head: bigquery),
                Route(host="bigquerystorage.googleapis.com", grpc=bigquery_grpc),
                Route(host="storage.googleapis.com", rest=storage),
                Route(host="www.googleapis.com", rest=by_path),
                Route(host="logging.googleapis.com", grpc=logs_grpc, rest=lambda _head: logs),
                Route(host="oauth2.googleapis.com", rest=lambda _head: identity),
                Route(host="iamcredentials.googleapis.com", rest=lambda _head: identity),
                Route(host="cloudresourcemanager.googleapis.com", grpc=logs_grpc, rest=lambda _head: identity),
            )
        }

    def hosts(self) -> list[str]:
        """List the host names, the regional one as a pattern."""
        return ["<region>-aiplatform.googleapis.com", *sorted(self._routes)]

    def find(self, host: str) -> Route | None:
        """Give the route of a host, None for one that is not part of the local cloud."""
        if re.fullmatch(r"([a-z0-9-]+-)?aiplatform\.googleapis\.com", host):
            return Route(host=host, grpc=self._vertex_grpc, rest=lambda _head: self._vertex_rest)
        return self._routes.get(host)
