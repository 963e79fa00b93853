"""One call of a REST server behind the gateway, for those who need its whole answer before they give theirs.

In: an address, a request. Out: a `Response` with status, body and the fields that a client cares about.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

from localcloud.http.http1 import Exchange, Head, Request, Response
from localcloud.http.routes import Address, Target

_SERVER_FAULT = 500
# What fake-gcs-server says, with 500, of a document that it cannot read: the client's fault, not its own.
_UNREADABLE = re.compile(rb"json: |invalid character|unexpected E|end of JSON|cannot unmarshal|strconv\\.|multipart: ")
# What belongs to the connection behind the gateway, or is written anew with the answer.
_NOT_PASSED_ON = ("connection", "keep-alive", "transfer-encoding", "content-length", "content-type")


async def pass_on(target: Target, request: Request) -> Response:
    """Let a request be answered by whom it was chosen for, and give the whole answer."""
    if not isinstance(target, Address):
        return await target(request)
    head, body, length = request.head, request.body, request.head.get("content-length")
    if head.is_chunked() or not length:
        whole = await request.read_body()
        body, length = _pieces(whole), str(len(whole))
    kept = head.without("host", "transfer-encoding", "content-length", "connection", "expect").fields
    return await call(target, request.method, head.target, [*kept, ("Content-Length", length)], body)


def json_object(body: bytes) -> dict[str, Any] | None:
    """Read a body that is to be a JSON object; {} for an empty one, None for anything else."""
    try:
        document = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def call(
    server: Address, method: str, target: str, fields: list[tuple[str, str]], body: AsyncIterator[bytes] | None
) -> Response:
    """Send one request and read the whole answer.

    Args:
        method: GET, POST and so on.
        target: Path and query.
        fields: Header fields; one of them tells the body's length.
        body: Pieces of the body, None for none.

    Raises:
        ConnectionError: It closed the connection without an answer.
    """
    head = [("Host", "storage.googleapis.com"), ("X-Forwarded-Proto", "https"), *fields]
    exchange = Exchange(await server.connect(), Head(first_line=f"{method} {target} HTTP/1.1", fields=head))
    try:
        await exchange.send_body(body)
        answer = await exchange.receive()
        document = b"".join([piece async for piece in exchange.body()])
        if answer.status == _SERVER_FAULT and b"Error running compose" in document:
            return Response.of_error(404, "No such object among the sources of this composition.", "NOT_FOUND")
        if answer.status == _SERVER_FAULT and _UNREADABLE.search(document):
            return Response.of_error(400, f"Parse Error: {document.decode(errors='replace')[:500]}", "INVALID_ARGUMENT")
        return Response(
            status=answer.status,
            body=document,
            content_type=answer.get("content-type", "text/plain"),
            fields=dict(answer.without(*_NOT_PASSED_ON).fields),
        )
    finally:
        exchange.close()
