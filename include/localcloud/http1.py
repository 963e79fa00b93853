"""As much HTTP/1.1 as a gateway needs: heads are parsed and mended, bodies are passed on as bytes.

In: asyncio streams. Out: `Head` (of a request or a response), body iterators, and `Response` for what is answered here.
Framing follows RFC 9112 section 6: a chunked body wins over a content length, and a response without either ends with
its connection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

CHUNK_BYTES = 256 * 1024
HEAD_LIMIT_BYTES = 1024 * 1024
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class MalformedMessageError(Exception):
    """The peer did not speak HTTP/1.1; the connection cannot go on."""


@dataclass(kw_only=True)
class Head:
    """First line and header fields of a message; field names keep their case and are compared without it."""

    first_line: str
    fields: list[tuple[str, str]]

    @property
    def method(self) -> str:
        """A request's method."""
        return self.first_line.split(" ", 1)[0]

    @property
    def target(self) -> str:
        """A request's target, for example `/storage/v1/b?project=p`."""
        parts = self.first_line.split(" ")
        return parts[1] if len(parts) > 1 else ""

    @property
    def status(self) -> int:
        """A response's status code."""
        return int(self.first_line.split(" ", 2)[1])

    def get(self, name: str, default: str = "") -> str:
        """Give a field's value, default for a missing one."""
        lowered = name.lower()
        return next((value for key, value in self.fields if key.lower() == lowered), default)

    def without(self, *names: str) -> Head:
        """Give the head without some fields."""
        lowered = {name.lower() for name in names}
        kept = [(key, value) for key, value in self.fields if key.lower() not in lowered]
        return Head(first_line=self.first_line, fields=kept)

    def closes(self) -> bool:
        """Tell whether the sender ends the connection after this message."""
        connection = self.get("connection").lower()
        return "close" in connection or (self.first_line.endswith("HTTP/1.0") and "keep-alive" not in connection)

    def is_chunked(self) -> bool:
        """Tell whether the body comes in chunks (`Transfer-Encoding: identity` means it does not)."""
        return "chunked" in self.get("transfer-encoding").lower()

    def encode(self) -> bytes:
        """Give the wire bytes, with the empty line."""
        lines = [self.first_line, *(f"{key}: {value}" for key, value in self.fields), "", ""]
        return "\r\n".join(lines).encode("latin-1")


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Read a message's head; None when the peer closed the connection before it.

    Raises:
        MalformedMessageError: it is cut off, too long, or not HTTP.
    """
    try:
        data = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise MalformedMessageError("a message head was cut off") from None
        return None
    except asyncio.LimitOverrunError:
        raise MalformedMessageError(f"a message head is longer than {HEAD_LIMIT_BYTES} bytes") from None
    first_line, *lines = data.decode("latin-1").strip("\r\n").split("\r\n")
    fields = []
    for line in lines:
        key, colon, value = line.partition(":")
        if not colon:
            raise MalformedMessageError(f"not a header field: {line!r}")
        fields.append((key, value.strip()))
    return Head(first_line=first_line, fields=fields)


async def read_request_body(reader: asyncio.StreamReader, head: Head, *, raw: bool) -> AsyncIterator[bytes]:
    """Give a request's body piece by piece; `raw` keeps the framing of chunks, to be passed on."""
    if head.is_chunked():
        async for piece in _read_chunked(reader, raw=raw):
            yield piece
    else:
        async for piece in _read_exactly(reader, int(head.get("content-length", "0"))):
            yield piece


async def read_response_body(
    reader: asyncio.StreamReader, head: Head, method: str, *, raw: bool = True
) -> AsyncIterator[bytes]:
    """Give a response's body piece by piece; until the end of the connection when it has no length."""
    if method == "HEAD" or head.status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        return
    if head.is_chunked():
        async for piece in _read_chunked(reader, raw=raw):
            yield piece
    elif length := head.get("content-length"):
        async for piece in _read_exactly(reader, int(length)):
            yield piece
    else:
        while piece := await reader.read(CHUNK_BYTES):
            yield piece


def has_length(head: Head, method: str) -> bool:
    """Tell whether a response's end can be seen without the end of its connection."""
    return (
        method == "HEAD"
        or head.status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
        or head.is_chunked()
        or bool(head.get("content-length"))
    )


async def _read_exactly(reader: asyncio.StreamReader, length: int) -> AsyncIterator[bytes]:
    while length > 0:
        piece = await reader.read(min(length, CHUNK_BYTES))
        if not piece:
            raise MalformedMessageError(f"a body ended {length} bytes early")
        length -= len(piece)
        yield piece


async def _read_chunked(reader: asyncio.StreamReader, *, raw: bool) -> AsyncIterator[bytes]:
    while True:
        line = await _read_line(reader)
        if raw:
            yield line
        try:
            length = int(line.split(b";")[0], 16)
        except ValueError:
            raise MalformedMessageError(f"not a chunk size: {line!r}") from None
        if length == 0:
            break
        async for piece in _read_exactly(reader, length):
            yield piece
        end = await _read_line(reader)
        if raw:
            yield end
    while (trailer := await _read_line(reader)) != b"\r\n":
        if raw:
            yield trailer
    if raw:
        yield b"\r\n"


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise MalformedMessageError("a chunked body was cut off") from None


@dataclass(kw_only=True)
class Request:
    """A request that is answered inside the gateway."""

    host: str
    head: Head
    body: AsyncIterator[bytes]

    @property
    def method(self) -> str:
        """GET, POST and so on."""
        return self.head.method

    @property
    def path(self) -> str:
        """The target's path."""
        return urlsplit(self.head.target).path

    @property
    def query(self) -> dict[str, str]:
        """The target's query parameters (the last of each name)."""
        return dict(parse_qsl(urlsplit(self.head.target).query, keep_blank_values=True))

    async def read(self) -> bytes:
        """Read the whole body."""
        return b"".join([piece async for piece in self.body])


@dataclass(kw_only=True)
class Response:
    """An answer made inside the gateway."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json; charset=UTF-8"
    fields: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_json(cls, document: object, status: int = 200) -> Response:
        """Make a JSON answer."""
        return cls(status=status, body=json.dumps(document).encode())

    @classmethod
    def of_error(cls, status: int, message: str, grpc_status: str) -> Response:
        """Make an error in the JSON form that Google's REST APIs use."""
        return cls.of_json({"error": {"code": status, "message": message, "status": grpc_status}}, status)

    def encode(self, *, close: bool = False) -> bytes:
        """Give the wire bytes."""
        phrase = _PHRASES.get(self.status, "Unknown")
        fields = [
            ("Content-Type", self.content_type),
            ("Content-Length", str(len(self.body))),
            *self.fields.items(),
            *([("Connection", "close")] if close else []),
        ]
        return Head(first_line=f"HTTP/1.1 {self.status} {phrase}", fields=fields).encode() + self.body
