"""Checksums of uploads: those that a client says, and those of what came.

In: header fields, metadata, contents. Out: the refusal that the service answers with when they differ.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import google_crc32c

from localcloud.http.http1 import Head, Response

_TITLES = {"md5Hash": "MD5 hash", "crc32c": "CRC32C"}


async def check_hashes(declared: Mapping[str, str], pieces: Iterable[bytes]) -> Response | None:
    """Give the answer to checksums (`md5Hash`, `crc32c`) that are not those of what came, else None.

    Only the declared ones are computed, beside the event loop: others are served meanwhile.
    """
    computed = await asyncio.to_thread(_compute, declared, pieces)
    for name, title in _TITLES.items():
        if name in declared and declared[name] != computed[name]:
            message = f'Provided {title} "{declared[name]}" doesn\'t match calculated {title} "{computed[name]}".'
            return Response.of_error(400, message, "INVALID_ARGUMENT")
    return None


def _compute(declared: Mapping[str, str], pieces: Iterable[bytes]) -> dict[str, str]:
    """Give checksums in base64, as the JSON API writes them."""
    sums = {"md5Hash": hashlib.md5(usedforsecurity=False), "crc32c": google_crc32c.Checksum()}
    declared_sums = {name: value for name, value in sums.items() if name in declared}
    for piece in pieces if declared_sums else ():
        for each in declared_sums.values():
            each.update(piece)
    return {name: base64.b64encode(each.digest()).decode() for name, each in declared_sums.items()}


def declared_hashes(head: Head, metadata: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Give the checksums in an object's metadata, in `x-goog-hash: crc32c=…,md5=…` and in `Content-MD5`."""
    hashes = {name: str(metadata[name]) for name in ("md5Hash", "crc32c") if metadata and metadata.get(name)}
    hashes |= {"md5Hash": head.get("content-md5")} if head.get("content-md5") else {}
    for pair in head.get("x-goog-hash").split(","):
        name, _, value = pair.strip().partition("=")
        if name in ("md5", "crc32c"):
            hashes["md5Hash" if name == "md5" else name] = value
    return hashes
