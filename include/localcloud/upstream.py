"""One call of a REST server behind the gateway, for those who need its whole answer before they give theirs.

In: an address, a request. Out: a `Response` with status, body and the fields that a client cares about.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from localcloud import http1
from localcloud.http1 import Head, Response
from localcloud.routes import Address

# What belongs to the connection behind the gateway, or is written anew with the answer.
_NOT_PASSED_ON = ("connection", "keep-alive", "transfer-encoding", "content-length", "content-type")


async def call(
    server: Address, method: str, target: str, fields: list[tuple[str, str]], body: AsyncIterator[bytes] | None
) -> Response:
    """Send one request and read the whole answer.

    Args:
        server: Who is asked.
        method: GET, POST and so on.
        target: Path and query.
        fields: Header fields; one of them tells the body's length.
        body: Pieces of the body, None for none.

    Raises:
        ConnectionError: It closed the connection without an answer.
    """
    reader, writer = await server.connect()
    try:
        head = [("Host", "storage.googleapis.com"), ("X-Forwarded-Proto", "https"), *fields]
        writer.write(Head(first_line=f"{method} {target} HTTP/1.1", fields=head).encode())
        if body is not None:
            async for piece in body:
                writer.write(piece)
                await writer.drain()
        answer = await http1.read_head(reader)
        if answer is None:
            raise ConnectionResetError(f"{server.name} closed the connection without an answer")
        document = b"".join([piece async for piece in http1.read_response_body(reader, answer, method, raw=False)])
        return Response(
            status=answer.status,
            body=document,
            content_type=answer.get("content-type", "text/plain"),
            fields=dict(answer.without(*_NOT_PASSED_ON).fields),
        )
    finally:
        writer.close()
