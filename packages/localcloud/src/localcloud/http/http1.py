"""HTTP/1.1 as the gateway speaks it: h11 reads and writes the messages, here are limits, streams and small values.

In: asyncio streams. Out: `Peer`, the client of a connection that we serve; `Exchange`, one request to a server behind
the gateway; `Head`, `Request` and `Response`. What is no HTTP/1.1, too long or too slow ends in
`MalformedMessageError`, which has the status to answer.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import h11

CHUNK_BYTES = 256 * 1024
HEAD_LIMIT_BYTES = 128 * 1024
BODY_LIMIT_BYTES = 512 * 1024 * 1024  # of what is answered inside the gateway; what is passed on has the server's limit
HEAD_TIMEOUT_S = 30.0  # from a head's first byte to its last
BODY_TIMEOUT_S = 60.0  # between two pieces of a body
IDLE_TIMEOUT_S = 600.0  # between two requests
_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
# TensorFlow's gs:// says that the body is as it is; h11 and Go's HTTP server know chunks only.
_IDENTITY = re.compile(rb"\r\ntransfer-encoding:[ \t]*identity[ \t]*(?=\r\n)", re.IGNORECASE)
_OF_CONNECTIONS = ("connection", "keep-alive", "proxy-connection", "transfer-encoding")


class MalformedMessageError(Exception):
    """The peer did not speak HTTP/1.1, or not in time; `status` is the answer to it."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


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
        return self.first_line.split(" ")[1]

    @property
    def status(self) -> int:
        """A response's status code."""
        return int(self.first_line.split(" ", 2)[1])

    def get(self, name: str, default: str = "") -> str:
        """Return a field's value, default for a missing one."""
        lowered = name.lower()
        return next((value for key, value in self.fields if key.lower() == lowered), default)

    def without(self, *names: str) -> Head:
        """Return the head without some fields."""
        lowered = {name.lower() for name in names}
        kept = [(key, value) for key, value in self.fields if key.lower() not in lowered]
        return Head(first_line=self.first_line, fields=kept)

    def is_chunked(self) -> bool:
        """Return whether the body comes in chunks."""
        return "chunked" in self.get("transfer-encoding").lower()


@dataclass(kw_only=True)
class Request:
    """A request that is answered inside the gateway; `principal` is the caller's e-mail address."""

    host: str
    principal: str = ""
    head: Head
    body: AsyncIterator[bytes]

    @property
    def method(self) -> str:
        """GET, POST and so on."""
        return self.head.method

    @property
    def path(self) -> str:
        """The target without its query."""
        return urlsplit(self.head.target).path

    @property
    def query(self) -> dict[str, str]:
        """The query's values, the last one of each name."""
        return dict(parse_qsl(urlsplit(self.head.target).query, keep_blank_values=True))

    async def read_body(self) -> bytes:
        """Read the whole body.

        Raises:
            MalformedMessageError: it is longer than anything that is answered here.
        """
        pieces, length = [], 0
        async for piece in self.body:
            pieces.append(piece)
            length += len(piece)
            if length > BODY_LIMIT_BYTES:
                raise MalformedMessageError(f"The request's body is longer than {BODY_LIMIT_BYTES} bytes.", 413)
        return b"".join(pieces)


@dataclass(kw_only=True)
class Response:
    """An answer made inside the gateway; `stream` is a long body, of `length` bytes where that is known."""

    status: int = 200
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    length: int | None = None
    content_type: str = "application/json; charset=UTF-8"
    fields: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_json(cls, document: object, status: int = 200) -> Response:
        """Make a JSON answer."""
        return cls(status=status, body=json.dumps(document).encode())

    @classmethod
    def of_error(cls, status: int, message: str, grpc_status: str, fields: dict[str, str] | None = None) -> Response:
        """Make an error in the JSON form that Google's REST APIs use."""
        response = cls.of_json({"error": {"code": status, "message": message, "status": grpc_status}}, status)
        response.fields.update(fields or {})
        return response

    @property
    def all_fields(self) -> list[tuple[str, str]]:
        """The header fields, with type and length."""
        length = self.length if self.stream is not None or self.length is not None else len(self.body)
        told = [] if length is None else [("Content-Length", str(length))]
        return [("Content-Type", self.content_type), *told, *self.fields.items()]

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body piece by piece."""
        if self.stream is not None:
            async for piece in self.stream:
                yield piece
        elif self.body:
            yield self.body

    def encode(self) -> bytes:
        """Return the bytes of the whole message, as a part of another one holds it."""
        lines = [f"HTTP/1.1 {self.status} {_PHRASES.get(self.status, 'Unknown')}"]
        lines += [f"{key}: {value}" for key, value in self.all_fields]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


class Peer:
    """The client of a connection that we serve, one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT_BYTES)
        self._idle_s = HEAD_TIMEOUT_S
        self._method = b""

    async def receive(self) -> Head | None:
        """Read the next request's head; None when the client closed the connection.

        Raises:
            MalformedMessageError: it is cut off, too long, too slow, or not HTTP.
        """
        event = _next(self._h11)
        if event is h11.NEED_DATA:
            raw = await self._read_head()
            self._h11.receive_data(raw)
            event = _next(self._h11)
        if isinstance(event, h11.Request):
            self._idle_s, self._method = IDLE_TIMEOUT_S, event.method
            version = event.http_version.decode()
            return _head(f"{event.method.decode()} {event.target.decode('latin-1')} HTTP/{version}", event)
        if isinstance(event, h11.ConnectionClosed):
            return None
        raise MalformedMessageError("The request's head is cut off.")

    async def _read_head(self) -> bytes:
        """Read until a head is whole; b"" when the client closed the connection, or was silent, before it."""
        raw = self._h11.trailing_data[0]
        known, limit_s = len(raw), self._idle_s
        end = asyncio.get_running_loop().time() + HEAD_TIMEOUT_S
        while b"\r\n\r\n" not in raw and b"\n\n" not in raw:
            if len(raw) > HEAD_LIMIT_BYTES:
                raise MalformedMessageError(f"The request's head is longer than {HEAD_LIMIT_BYTES} bytes.", 431)
            try:
                piece = await _read_chunk(self._reader, limit_s, "the request's head")
            except MalformedMessageError:
                if raw:
                    raise
                piece = b""
            if not piece:
                return raw[known:]
            if not raw:
                end = asyncio.get_running_loop().time() + HEAD_TIMEOUT_S
            raw += piece
            limit_s = max(0.0, end - asyncio.get_running_loop().time())
        return _IDENTITY.sub(b"", raw[known:])

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the request's body piece by piece.

        Raises:
            MalformedMessageError: it is cut off, too slow, or its chunks are not chunks.
        """
        while True:
            event = _next(self._h11)
            if event is h11.NEED_DATA:
                if self._h11.they_are_waiting_for_100_continue:
                    self._writer.write(self._h11.send(h11.InformationalResponse(status_code=100, headers=[])))
                self._h11.receive_data(await _read_chunk(self._reader, BODY_TIMEOUT_S, "the request's body"))
            elif isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return
            else:
                raise MalformedMessageError("The request's body is cut off.")

    async def respond(self, response: Response) -> None:
        """Send a whole answer, dated as every server of Google's does."""
        await self.begin(response.status, [("Date", formatdate(usegmt=True)), *response.all_fields])
        if self._method != b"HEAD" and response.status not in _WITHOUT_BODY:
            async for piece in response.pieces():
                await self.send(piece)
        await self.end()

    async def begin(self, status: int, fields: list[tuple[str, str]]) -> None:
        """Send the head of an answer; without a Content-Length its body goes in chunks."""
        reason = _PHRASES.get(status, "Unknown").encode()
        self._write(h11.Response(status_code=status, headers=_wire(fields), reason=reason))
        await self._writer.drain()

    async def send(self, piece: bytes) -> None:
        """Send a piece of an answer's body; one to HEAD has none."""
        self._write(h11.Data(data=piece))
        await self._writer.drain()

    async def end(self) -> None:
        """Send the end of an answer."""
        self._write(h11.EndOfMessage())
        await self._writer.drain()

    def next_request(self) -> bool:
        """Make ready for another request on this connection; tell whether there may be one."""
        if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
            return False
        self._h11.start_next_cycle()
        return True

    @property
    def can_answer(self) -> bool:
        """Whether nothing of an answer to this request was sent yet."""
        return self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE)

    def _write(self, event: Any) -> None:  # noqa: ANN401 - h11's events share no type
        data = self._h11.send(event)
        if data:
            self._writer.write(data)


class Exchange:
    """One request to a server behind the gateway, and its answer."""

    def __init__(self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], head: Head) -> None:
        self._reader, self._writer = streams
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT_BYTES)
        chunked = [("Transfer-Encoding", "chunked")] if head.is_chunked() else []
        fields = [*head.without(*_OF_CONNECTIONS, "expect").fields, *chunked, ("Connection", "close")]
        self._write(h11.Request(method=head.method, target=head.target, headers=_wire(fields)))

    async def send_body(self, pieces: AsyncIterator[bytes] | None) -> None:
        """Send the request's body, piece by piece, to its end."""
        if pieces is not None:
            async for piece in pieces:
                self._write(h11.Data(data=piece))
                await self._writer.drain()
        self._write(h11.EndOfMessage())
        await self._writer.drain()

    async def receive(self) -> Head:
        """Wait for the head of the answer.

        Raises:
            ConnectionResetError: the server closed the connection before it.
        """
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return _head(f"HTTP/1.1 {event.status_code} {event.reason.decode('latin-1')}", event)
            if not isinstance(event, h11.InformationalResponse):
                raise ConnectionResetError("the server closed the connection without an answer")

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the answer's body piece by piece."""
        while isinstance(event := await self._event(), h11.Data):
            yield bytes(event.data)

    def close(self) -> None:
        """Close the connection to the server."""
        self._writer.close()

    async def _event(self) -> Any:  # noqa: ANN401 - h11's events share no type
        while (event := _next(self._h11)) is h11.NEED_DATA:
            self._h11.receive_data(await self._reader.read(CHUNK_BYTES))
        return event

    def _write(self, event: Any) -> None:  # noqa: ANN401 - h11's events share no type
        try:
            data = self._h11.send(event)
        except h11.LocalProtocolError as error:  # a body that is not as long as its head says
            raise MalformedMessageError(f"The request cannot be passed on: {error}.") from None
        if data:
            self._writer.write(data)


def passed_on(head: Head) -> list[tuple[str, str]]:
    """Return the fields of an answer that are not about the connection it came on."""
    return head.without(*_OF_CONNECTIONS).fields


def _next(connection: h11.Connection) -> Any:  # noqa: ANN401 - h11's events share no type
    try:
        return connection.next_event()
    except h11.RemoteProtocolError as error:
        raise MalformedMessageError(f"Malformed HTTP: {error}.", error.error_status_hint) from None


async def _read_chunk(reader: asyncio.StreamReader, timeout_s: float, what: str) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(CHUNK_BYTES), timeout_s)
    except TimeoutError:
        raise MalformedMessageError(f"Timed out after {timeout_s:.0f} s of waiting for {what}.", 408) from None


def _head(first_line: str, event: h11.Request | h11.Response) -> Head:
    fields = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in event.headers.raw_items()]
    return Head(first_line=first_line, fields=fields)


def _wire(fields: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(key.encode("latin-1"), value.encode("latin-1", "replace")) for key, value in fields]
