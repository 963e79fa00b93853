"""Google's clients, over connections that heed the limit of the call they are used in (`limits.py`).

In: a session. Out: clients of Cloud Storage and BigQuery (requests), of Vertex AI, Cloud Logging and Cloud Monitoring
(gRPC). Their own timeouts are of a single read, so that an answer may take forever in small pieces.
"""

from __future__ import annotations

import functools
import io
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import grpc
import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from retraining.core.untyped import Foreign
from retraining.hooks import limits

if TYPE_CHECKING:
    from google.cloud.bigquery import Client as BigQueryClient
    from google.cloud.storage import Client as StorageClient

    from retraining.hooks.session import Session

MAX_MESSAGE_BYTES = 64_000_000
"""Of one message of gRPC; a page of a list has some MB."""


class _Reader(socket.SocketIO):
    """What comes over a socket, as long as the call that reads it has time and bytes left."""

    def readinto(self, buffer: Foreign) -> int | None:
        """Read what has come, or wait until the end of the call at most."""
        limit = limits.current("A connection")
        connection: socket.socket = self._sock  # type: ignore[attr-defined]  # as socket.py has it
        connection.settimeout(limit.left("A connection"))
        count = super().readinto(buffer)
        limit.take(count or 0, "A connection")
        return count


class LimitedSocket:
    """A connected socket, of TLS or not, that waits no longer than the call that uses it may take."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Foreign:
        return getattr(self._connection, name)

    def sendall(self, data: Foreign) -> None:
        """Send all of it, or fail at the end of the call."""
        self._connection.settimeout(limits.current("A connection").left("A connection"))
        self._connection.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return what `http.client` reads an answer from."""
        if mode != "rb":
            raise ValueError(f"mode {mode!r}; http.client reads bytes alone")
        self._connection._io_refs += 1  # type: ignore[attr-defined]  # as socket.makefile does: closed after the last
        return io.BufferedReader(_Reader(self._connection, "r"))


class _HttpConnection(HTTPConnection):
    def connect(self) -> None:
        """Connect, and watch over the socket."""
        super().connect()
        self.sock = LimitedSocket(self.sock)


class _HttpsConnection(HTTPSConnection):
    def connect(self) -> None:
        """Connect, and watch over the socket."""
        super().connect()
        if isinstance(self.sock, socket.socket):  # not TLS within TLS, to a proxy of https
            self.sock = LimitedSocket(self.sock)

    def _tunnel(self) -> None:
        """Ask a proxy for the connection, and watch over its answer."""
        plain = self.sock
        self.sock = LimitedSocket(plain)
        super()._tunnel()
        self.sock = plain


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


_POOLS = {"http": _HttpPool, "https": _HttpsPool}


class _LimitedAdapter(HTTPAdapter):
    """Sends within the limit of a call, and refuses to without one."""

    holds_certificates: ClassVar[bool] = True

    def init_poolmanager(self, *arguments: Foreign, **options: Foreign) -> None:
        """Take connections that heed the limit."""
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, *arguments: Foreign, **options: Foreign) -> Foreign:
        """Take connections that heed the limit, through a proxy too."""
        manager = super().proxy_manager_for(*arguments, **options)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Foreign = None,
        verify: Foreign = True,
        cert: Foreign = None,
        proxies: Foreign = None,
    ) -> requests.Response:
        """Send a request, with what is left of the call's time; one number as `timeout` is of its connection alone."""
        what = f"{request.method} {str(request.url).partition('?')[0]}"
        limit = limits.current(what)
        left = limit.left(what)
        wait = min(timeout, left) if isinstance(timeout, int | float) else left
        held = verify if self.holds_certificates else False
        answer = super().send(request, stream=stream, timeout=wait, verify=held, cert=cert, proxies=proxies)
        raw: Foreign = answer.raw
        raw.stream = functools.partial(_unpacked, raw.stream, limit, what)
        return answer


class _UntrustingAdapter(_LimitedAdapter):
    """Holds no certificate against any authority, whatever the session, or its environment, says of them."""

    holds_certificates = False


def _unpacked(
    stream: Callable[..., Iterator[bytes]],
    limit: limits.Limit,
    what: str,
    *arguments: Foreign,
    **options: Foreign,
) -> Iterator[bytes]:
    """Yield the pieces of an answer as long as they are few: compressed, they came as much less."""
    size = 0
    for block in stream(*arguments, **options):
        size += len(block)
        limit.require(size, what)
        yield block


def limit_requests(session: requests.Session) -> requests.Session:
    """Let a session of requests ask nothing but within the limit of a call."""
    for scheme in ("https://", "http://"):
        session.mount(scheme, _LimitedAdapter())
    return session


def storage_client(session: Session) -> StorageClient:
    """Return a client of Cloud Storage."""
    from google.cloud import storage

    return _limited(storage.Client(project=session.project, credentials=session.credentials))


def bigquery_client(session: Session) -> BigQueryClient:
    """Return a client of BigQuery."""
    from google.cloud import bigquery

    project = session.placement.query_project or session.project
    return _limited(bigquery.Client(project=project, credentials=session.credentials, location=session.region))


def rest_session(session: Session) -> Foreign:
    """Return a session of requests for services that have no client here."""
    from google.auth.transport.requests import AuthorizedSession

    made = AuthorizedSession(session.credentials)
    limit_requests(made)
    limit_requests(made._auth_request_session)
    return made


def private_session(session: Session) -> Foreign:
    """Return a session of requests for endpoints in a network of one's own, whose certificate nobody has signed."""
    import urllib3

    made = rest_session(session)
    made.mount("https://", _UntrustingAdapter())
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return made


def open_connection(host: str, port: int) -> None:
    """Connect to a server and hang up, within the limit that is under way; nothing is sent.

    Raises:
        OSError: It cannot be reached.
    """
    wait = limits.current(host).left(host)
    socket.create_connection((host, port), wait).close()


def _limited(client: Foreign) -> Foreign:
    """Watch over a client's requests, and over those that bring it a token."""
    limit_requests(client._http)
    for_tokens = getattr(client._http, "_auth_request_session", None)
    if for_tokens is not None:
        limit_requests(for_tokens)
    return client


class _Details(NamedTuple):
    """Of a gRPC call: what its interceptors are told, with another timeout."""

    method: str
    timeout: float | None
    metadata: Foreign
    credentials: Foreign
    wait_for_ready: Foreign
    compression: Foreign


class _LimitedCalls(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]  # grpc has no types
    """Gives each call of gRPC the time that is left, and counts what it answers."""

    def intercept_unary_unary(self, continuation: Foreign, details: Foreign, request: Foreign) -> Foreign:
        """Ask within the limit of a call."""
        limit = limits.current(str(details.method))
        left = limit.left(str(details.method))
        shorter = left if details.timeout is None else min(left, details.timeout)
        known = _Details._make(getattr(details, name, None) for name in _Details._fields)
        outcome = continuation(known._replace(timeout=shorter), request)
        if outcome.exception() is None:
            limit.take(_size(outcome.result()), str(details.method))
        return outcome


def _size(message: Foreign) -> int:
    if isinstance(message, bytes):  # of an empty answer, which some clients leave as it came
        return len(message)
    plain = getattr(type(message), "pb", None)
    return int((plain(message) if plain else message).ByteSize())


def grpc_client(kind: Foreign, session: Session, **options: Foreign) -> Foreign:
    """Return a gRPC client of Google's, whose every call heeds the limit that it is made in.

    Args:
        kind: Its class.
        session: As whom.
        options: Of its constructor, beside the credentials.
    """
    transport = kind.get_transport_class("grpc")

    def channel(*arguments: Foreign, **given: Foreign) -> Foreign:
        sizes = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)]
        made = transport.create_channel(*arguments, **{**given, "options": sizes})
        return grpc.intercept_channel(made, _LimitedCalls())

    return kind(
        credentials=session.credentials, transport=lambda **given: transport(**{**given, "channel": channel}), **options
    )
