"""What each service of the local cloud is, as its folder's `service.json` says; everybody reads it here.

In: the `service.json` files of this package. Out: `services()`. The gateway reads the hosts, the supervisor and
`localcloud status` the servers and their sockets, the IAM table the methods, roles and resources, and the
documentation its table of servers. The files are JSON because `access` reads them, which the folders import.

    name, title, made_of  how other files name the service, how people do, and what it is made of
    server                the module that is run for it; without one the gateway answers
    hosts                 host name -> `grpc` and `rest`, each the socket that answers there, or `gateway`; `pattern`
                          where a host's name varies; `path`, the beginning of addresses, where services share a host
    methods               method, as faults name it too -> the permissions that it needs, each with the kind of resource
                          that it is needed on; a method that has no row is refused while an IAM table is in force
    roles                 role -> those of this service's permissions that it has (roles themselves have more:
                          https://cloud.google.com/iam/docs/roles-permissions)
    resources             kind -> the form of what a role can be given on, a capital letter for each name; a gRPC call
                          concerns those that its request names
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from localcloud.errors import LocalCloudError

GATEWAY = "gateway"
GATEWAY_SOCKET = "logging_grpc"  # where the gateway answers gRPC itself
_PACKAGE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host name, and which sockets answer for it ("": none)."""

    name: str
    pattern: str = ""
    grpc: str = ""
    rest: str = ""
    path: str = ""

    def stands_for(self, host: str) -> bool:
        """Return whether a host's name is this one."""
        return re.fullmatch(self.pattern, host) is not None if self.pattern else host == self.name

    def has_path(self, target: str) -> bool:
        """Return whether requests to an address of the host are for this service."""
        return re.match(self.path, target) is not None

    @property
    def grpc_socket(self) -> str:
        """The socket that answers gRPC, "" for none."""
        return GATEWAY_SOCKET if self.grpc == GATEWAY else self.grpc


@dataclass(frozen=True, kw_only=True)
class Service:
    """One service."""

    name: str
    title: str
    made_of: str
    server: str = f"localcloud.{GATEWAY}.server"
    hosts: tuple[Host, ...]
    methods: Mapping[str, Mapping[str, str]]
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Server:
    """A process of the local cloud: its module, and the sockets that it listens on."""

    name: str
    module: str
    sockets: tuple[str, ...]


@cache
def services() -> tuple[Service, ...]:
    """Return all services, in the order of their folders."""
    return tuple(read_service(path) for path in sorted(_PACKAGE.rglob("service.json")))


@cache
def servers() -> tuple[Server, ...]:
    """Return the processes that answer for the services."""
    sockets: dict[tuple[str, str], dict[str, None]] = {}
    for service in services():
        name = GATEWAY if service.server == Service.server else service.name
        own = sockets.setdefault((name, service.server), {})
        for host in service.hosts:
            own.update(dict.fromkeys(each for each in (host.rest, host.grpc_socket) if each not in ("", GATEWAY)))
    return tuple(Server(name=name, module=module, sockets=tuple(own)) for (name, module), own in sockets.items())


def read_service(path: Path) -> Service:
    """Read a `service.json`.

    Raises:
        LocalCloudError: It is no JSON, or has other keys.
    """
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        document.pop("#", None)
        hosts = tuple(Host(name=name, **host) for name, host in document.pop("hosts").items())
        roles = {role: tuple(permissions) for role, permissions in document.pop("roles", {}).items()}
        return Service(hosts=hosts, roles=roles, **document)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LocalCloudError(
            str(path),
            found=f"{type(error).__name__}: {error}",
            expected=f"a JSON object of {', '.join(each.name for each in fields(Service))}",
            way_out="localcloud/services.py says what each key is",
        ) from error
