"""Checksums of uploads: those that a client says, and those of what came.

In: header fields, metadata, contents. Out: the refusal that the service answers with when they differ.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import google_crc32c

from localcloud.storage.refusals import RefusedError

_TITLES = {"md5Hash": "MD5 hash", "crc32c": "CRC32C"}


class Sums:
    """Both checksums of bytes that come piece by piece, in base64, as the JSON API writes them."""

    def __init__(self) -> None:
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._crc32c = google_crc32c.Checksum()

    def update(self, piece: bytes) -> None:
        """Take the next piece."""
        self._md5.update(piece)
        self._crc32c.update(piece)

    def values(self) -> dict[str, str]:
        """Return the checksums of all that came."""
        return {
            "md5Hash": base64.b64encode(self._md5.digest()).decode(),
            "crc32c": base64.b64encode(self._crc32c.digest()).decode(),
        }


def check_hashes(declared: Mapping[str, str], computed: Mapping[str, str]) -> None:
    """Let contents pass that have the checksums which the caller says.

    Raises:
        RefusedError: They have others.
    """
    for name, title in _TITLES.items():
        if name in declared and declared[name] != computed[name]:
            message = f'Provided {title} "{declared[name]}" doesn\'t match calculated {title} "{computed[name]}".'
            raise RefusedError(400, message, xml_code="BadDigest")


def declared_hashes(fields: Mapping[str, str], resource: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the checksums in an object's metadata, in `x-goog-hash: crc32c=…,md5=…` and in `Content-MD5`."""
    hashes = {name: str(resource[name]) for name in ("md5Hash", "crc32c") if resource and resource.get(name)}
    hashes |= {"md5Hash": fields["content-md5"]} if fields.get("content-md5") else {}
    for pair in fields.get("x-goog-hash", "").split(","):
        name, _, value = pair.strip().partition("=")
        if name in ("md5", "crc32c"):
            hashes["md5Hash" if name == "md5" else name] = value
    return hashes
