"""Calls to servers of others, bounded as a whole: in seconds from the first to the last byte, and in bytes read.

A client's own time-out is of one wait: a server that sends a byte now and then, or that never ends its answer, keeps it
for ever. Here each read has what is left of the call's time, and the caller goes on when that is over, whatever a name
server, a proxy or a TLS handshake does meanwhile.
"""

from __future__ import annotations

import http.client
import io
import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from requests import PreparedRequest
    from requests.adapters import HTTPAdapter
    from typing_extensions import Buffer
    from urllib3.connectionpool import ConnectionPool

CHUNK_BYTES = 8192
_T = TypeVar("_T")


class OverLimitError(Exception):
    """A call took longer, or its answer was larger, than it may; the text holds nothing of either side."""


class Limits:
    """What a call may take as a whole.

    Args:
        seconds: From now on.
        most_bytes: That may be read.
    """

    def __init__(self, seconds: float, most_bytes: int) -> None:
        self._seconds, self._most_bytes = seconds, most_bytes
        self._end = time.monotonic() + seconds
        self._read = 0

    def left_s(self) -> float:
        """Return the seconds that are left.

        Raises:
            OverLimitError: None.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise OverLimitError(f"not done within {self._seconds:g} seconds")
        return left

    def count(self, number: int) -> int:
        """Count bytes that were read, and return how many these are.

        Raises:
            OverLimitError: They are too many by now.
        """
        self._read += number
        if self._read > self._most_bytes:
            raise OverLimitError(f"its answer has more than {self._most_bytes:,} bytes")
        return number

    def reader(self, connection: socket.socket) -> io.BufferedReader:
        """Return what reads from a connection as long as there is time, and as many bytes as there may be."""
        return io.BufferedReader(_Reader(connection, self))

    def run(self, function: Callable[[], _T]) -> _T:
        """Call a function in a thread of its own, and wait for it no longer than the time that is left.

        Raises:
            OverLimitError: It was not done in time. Its thread ends with its next read or wait.
        """
        done: Future[_T] = Future()

        def work() -> None:
            try:
                done.set_result(function())
            except Exception as error:  # noqa: BLE001 - it is raised again, where it is waited for
                done.set_exception(error)

        threading.Thread(target=work, name="bounded-call", daemon=True).start()
        try:
            return done.result(self.left_s())
        except TimeoutError:
            if done.done():  # the function's own
                raise
            raise OverLimitError(f"not done within {self._seconds:g} seconds") from None


class _Reader(io.RawIOBase):
    """The bytes that come over a connection."""

    def __init__(self, connection: socket.socket, limits: Limits) -> None:
        super().__init__()
        self._connection, self._limits = connection, limits

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        """Read what is there, or wait for it."""
        view = memoryview(buffer)[:CHUNK_BYTES]
        self._connection.settimeout(self._limits.left_s())
        try:
            number = self._connection.recv_into(view)
        except TimeoutError:
            self._limits.left_s()
            raise
        return self._limits.count(number)


def post_json(address: str, body: object, limits: Limits, wait_s: float) -> int:
    """Post JSON, and return the status of the answer, of whose body nothing is read. Redirects are not followed.

    Args:
        address: Where.
        body: What.
        limits: Of the call.
        wait_s: For a connection, and for one read, at most.
    """
    import requests

    with requests.Session() as session:
        adapter = _adapter(limits)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        left = min(wait_s, limits.left_s())
        with session.post(address, json=body, timeout=left, allow_redirects=False, stream=True) as answer:
            return int(answer.status_code)


def _adapter(limits: Limits) -> HTTPAdapter:
    from requests.adapters import HTTPAdapter
    from urllib3.connectionpool import HTTPConnectionPool

    class Answer(http.client.HTTPResponse):
        """An answer whose head is read within the limits."""

        def __init__(
            self, sock: socket.socket, debuglevel: int = 0, method: str | None = None, url: str | None = None
        ) -> None:
            super().__init__(sock, debuglevel, method, url)
            self.fp.close()
            self.fp = limits.reader(sock)

    class Adapter(HTTPAdapter):
        def get_connection_with_tls_context(
            self,
            request: PreparedRequest,
            verify: bool | str | None,
            proxies: Mapping[str, str] | None = None,
            cert: tuple[str, str] | str | None = None,
        ) -> ConnectionPool:
            """Return connections whose answers are read within the limits."""
            pool = super().get_connection_with_tls_context(request, verify, proxies, cert)
            if not isinstance(pool, HTTPConnectionPool):
                raise TypeError("the client made connections of its own")
            pool.ConnectionCls = type("Bounded", (pool.ConnectionCls,), {"response_class": Answer})
            return pool

    return Adapter()


class BoundedSmtp(smtplib.SMTP):
    """A mail client whose server answers within limits.

    Args:
        limits: Of the call.
        host: Of the server.
        port: 0: the usual one.
        timeout: Of one wait, in seconds.
        tls: As of `smtplib.SMTP_SSL`: its `context`.
    """

    def __init__(
        self, limits: Limits, host: str = "", port: int = 0, timeout: float | None = None, **tls: ssl.SSLContext | None
    ) -> None:
        self._limits = limits
        left = limits.left_s()
        super().__init__(host, port, timeout=min(timeout or left, left), **tls)  # type: ignore[arg-type]  # SMTP_SSL's

    def getreply(self) -> tuple[int, bytes]:
        """Read one answer."""
        if self.file is None and self.sock is not None:
            self.file = self._limits.reader(self.sock)
        try:
            return super().getreply()
        except OverLimitError:
            self.close()
            raise

    def send(self, s: Buffer | str) -> None:
        """Send, as long as there is time."""
        left = self._limits.left_s()
        if self.sock is not None:
            self.sock.settimeout(left)
        super().send(s)


class BoundedSmtpSsl(BoundedSmtp, smtplib.SMTP_SSL):
    """The same over TLS from the first byte on."""
