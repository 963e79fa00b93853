"""Checksums of uploads: those that a client says, and those of what came.

In: header fields, metadata, contents. Out: the refusal that the service answers with when they differ.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import google_crc32c

from localcloud.http1 import Head, Response


@dataclass(frozen=True, kw_only=True)
class Hashes:
    """The checksums of a content, in base64 as the JSON API writes them."""

    md5: str
    crc32c: str

    @classmethod
    def of(cls, pieces: Iterable[bytes]) -> Hashes:
        """Compute them over pieces in their order."""
        md5, crc32c = hashlib.md5(usedforsecurity=False), google_crc32c.Checksum()
        for piece in pieces:
            md5.update(piece)
            crc32c.update(piece)
        return cls(md5=base64.b64encode(md5.digest()).decode(), crc32c=base64.b64encode(crc32c.digest()).decode())


def check_hashes(declared: dict[str, str], found: Hashes) -> Response | None:
    """Give the answer to checksums (`md5Hash`, `crc32c`) that are not those of what came, else None."""
    for name, word, value in (("md5Hash", "MD5 hash", found.md5), ("crc32c", "CRC32C", found.crc32c)):
        if name in declared and declared[name] != value:
            message = f'Provided {word} "{declared[name]}" doesn\'t match calculated {word} "{value}".'
            return Response.of_error(400, message, "INVALID_ARGUMENT")
    return None


def declared_hashes(head: Head, metadata: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Give the checksums in an object's metadata, in `x-goog-hash: crc32c=…,md5=…` and in `Content-MD5`."""
    found = {name: str(metadata[name]) for name in ("md5Hash", "crc32c") if metadata and metadata.get(name)}
    found |= {"md5Hash": head.get("content-md5")} if head.get("content-md5") else {}
    for pair in head.get("x-goog-hash").split(","):
        name, _, value = pair.strip().partition("=")
        if name in ("md5", "crc32c"):
            found["md5Hash" if name == "md5" else name] = value
    return found
