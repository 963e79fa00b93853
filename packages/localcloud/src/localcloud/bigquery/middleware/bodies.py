"""Bodies of requests that are looked at before their application reads them (ASGI)."""

from __future__ import annotations

from localcloud.untyped import Untyped


async def read_body(receive: Untyped) -> bytes:
    """Read a request's whole body."""
    pieces = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


def replay_body(body: bytes, receive: Untyped) -> Untyped:
    """Return a body that was read once more, then what comes after it."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Untyped:
        return waiting.pop() if waiting else await receive()

    return next_message
