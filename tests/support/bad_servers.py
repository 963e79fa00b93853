"""Servers on loopback that never answer whole: silent, drop by drop, or without an end."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HEADER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
DROP_S = 0.05
ZEROS = b"0" * 1_000_000


class BadServer:
    """One that was asked `asked` times.

    Args:
        begins: What it says at once, after the first bytes of a request.
        drop: What it then says every `DROP_S` seconds, or as fast as it goes; nothing: it is silent.
        slow: Whether it waits between two drops.
    """

    def __init__(self, begins: bytes = b"", drop: bytes = b"", *, slow: bool = True) -> None:
        self.asked = 0
        self._begins, self._drop, self._slow = begins, drop, slow
        self._ends = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        """Take connections until the end."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def end(self) -> None:
        """Let go of all."""
        self._ends.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                if not connection.recv(1):
                    return
                self.asked += 1
                connection.sendall(self._begins)
                while not self._ends.wait(DROP_S if self._slow else 0):
                    connection.sendall(self._drop)
            except OSError:
                return


def silent() -> BadServer:
    """One that takes a request and says nothing."""
    return BadServer()


def dripping_header() -> BadServer:
    """One whose header goes on, a byte at a time."""
    return BadServer(HEADER + b"X-Long: ", b"x")


def dripping_body() -> BadServer:
    """One whose answer goes on, a byte at a time."""
    return BadServer(HEADER + b"\r\n", b" ")


def endless() -> BadServer:
    """One whose answer goes on, as fast as it is read."""
    return BadServer(HEADER + b"\r\n", b" " * 65536, slow=False)


def bomb() -> BadServer:
    """One whose answer is a thousand times larger than what comes over the wire."""
    packed = gzip.compress(ZEROS * 50)
    length = f"Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    return BadServer(HEADER + length + packed)


@contextmanager
def serving(server: BadServer) -> Iterator[BadServer]:
    """Let a server take connections."""
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield server
    finally:
        server.end()
