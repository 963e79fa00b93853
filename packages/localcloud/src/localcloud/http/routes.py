"""Which service stands behind which host name of Google's.

In: the services, the state directory of a local cloud, and the handlers that live in the gateway. Out:
`Routes.find_route(host)`, a `Route` with a gRPC address and a choice of REST target by path; None for every host that
is no part of the local cloud.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from localcloud.errors import LocalCloudError
from localcloud.http.http1 import HEAD_LIMIT_BYTES, Head, Request, Response
from localcloud.services import GATEWAY, Host, Service, services
from localcloud.state import State

Handler = Callable[[Request], Awaitable[Response]]


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
    """The table of hosts.

    Args:
        handlers: Service's name -> what answers its REST requests, for those that the gateway answers itself.

    Raises:
        LocalCloudError: One of these has none.
    """

    def __init__(self, state: State, handlers: Mapping[str, Handler]) -> None:
        self._state = state
        self._hosts = [(host, service) for service in services() for host in service.hosts]
        self._targets = {
            (host.name, service.name): self._target(host, service, handlers)
            for host, service in self._hosts
            if host.rest
        }

    def _target(self, host: Host, service: Service, handlers: Mapping[str, Handler]) -> Target:
        if host.rest != GATEWAY:
            return self._address(service, host.rest)
        if service.name not in handlers:
            raise LocalCloudError(
                f"service {service.name}",
                found=f"{host.name} leads to the gateway, where nothing answers for it",
                expected="a front of that name",
                way_out="Add it to localcloud/gateway/services.py",
            )
        return handlers[service.name]

    def _address(self, service: Service, socket: str) -> Address:
        return Address(service.name, self._state.socket_path(socket))

    def hosts(self) -> list[str]:
        """List the host names, those of regions and endpoints as patterns."""
        patterns = [host.name for host, _ in self._hosts if host.pattern]
        return [*patterns, *sorted({host.name for host, _ in self._hosts if not host.pattern})]

    def find_route(self, name: str) -> Route | None:
        """Return the route of a host, None for one that is not part of the local cloud."""
        found = [(host, service) for host, service in self._hosts if host.stands_for(name)]
        if not found:
            return None
        grpc = [self._address(service, host.grpc_socket) for host, service in found if host.grpc]

        def choose(head: Head) -> Target | None:
            targets = (
                self._targets[host.name, service.name]
                for host, service in found
                if host.rest and host.has_path(head.target)
            )
            return next(targets, None)

        return Route(host=name, grpc=grpc[0] if grpc else None, rest=choose)
