"""Batches of Cloud Storage: up to a hundred requests in the parts of one (https://cloud.google.com/storage/docs/batch).

In: a request to `/batch/storage/v1`. Out: what each of its parts would have got by itself, in the parts of one answer.
Contents are neither read nor written in one.
"""

from __future__ import annotations

import email.message
import email.parser
import email.policy
import re
import uuid
from collections.abc import AsyncIterator
from http import HTTPStatus
from urllib.parse import urlsplit

from localcloud.http.http1 import Head, Request, Response
from localcloud.http.routes import Handler

_MOST = 100
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")  # the Python client ends its lines with a line feed alone


async def answer_batch(request: Request, answer: Handler) -> Response:
    """Answer each part of a batch.

    Args:
        answer: Answers a single request.
    """
    content_type = request.head.get("content-type")
    begin = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1")
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(begin + await request.read_body())
    parts = [part for part in message.iter_parts() if isinstance(part, email.message.Message)]
    if not message.is_multipart() or len(parts) > _MOST:
        text = f"Failed to parse batch request: expected multipart/mixed with 1 to {_MOST} parts."
        return Response.of_error(400, text, "INVALID_ARGUMENT")
    boundary = f"batch_{uuid.uuid4().hex}"
    pieces = []
    for part in parts:
        answered = await _answer_part(request, part, answer)
        identity = str(part.get("Content-ID", "")).strip().lstrip("<")
        pieces.append(f"--{boundary}\r\nContent-Type: application/http\r\n".encode())
        pieces.append(f"Content-ID: <response-{identity}\r\n".encode() if identity else b"")
        pieces.append(b"\r\n" + answered.encode() + b"\r\n")
    pieces.append(f"--{boundary}--\r\n".encode())
    return Response(body=b"".join(pieces), content_type=f"multipart/mixed; boundary={boundary}")


async def _answer_part(request: Request, part: email.message.Message, answer: Handler) -> Response:
    payload = part.get_payload(decode=True)
    head_text, *rest = _END_OF_HEAD.split((payload if isinstance(payload, bytes) else b"").lstrip(), maxsplit=1)
    body = rest[0] if rest else b""
    first, *lines = head_text.decode("latin-1").strip().splitlines() or [""]
    parts = first.split(" ")
    if len(parts) != 3 or not all(":" in line for line in lines):
        text = "Failed to parse batch request: a part is not an HTTP request."
        return Response.of_error(HTTPStatus.BAD_REQUEST, text, "INVALID_ARGUMENT")
    split = urlsplit(parts[1])
    target = split._replace(scheme="", netloc="").geturl()
    if target.startswith(("/batch", "/upload/", "/resumable/", "/download/")):
        text = "A batch takes neither batches nor contents."
        return Response.of_error(HTTPStatus.BAD_REQUEST, text, "INVALID_ARGUMENT")
    fields = [(key, value.strip()) for key, _, value in (line.partition(":") for line in lines)]
    kept = Head(first_line=f"{parts[0]} {target} HTTP/1.1", fields=fields).without(
        "authorization", "content-length", "accept-encoding"
    )
    kept.fields += [("Authorization", request.head.get("authorization")), ("Content-Length", str(len(body)))]
    single = Request(host=request.host, principal=request.principal, head=kept, body=_only(body))
    response = await answer(single)
    if response.stream is not None:
        return Response.of_error(HTTPStatus.BAD_REQUEST, "A batch takes no contents.", "INVALID_ARGUMENT")
    return response


async def _only(body: bytes) -> AsyncIterator[bytes]:
    yield body
