"""The kinds of storage: `disk.py` and `gcs.py`, what `trainer.storage` asks of either, and what they share.

Documents are held in memory only as large as any document of this system can be.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from trainer.errors import DataError


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """An object that a listing found."""

    uri: str
    bytes: int


class Backend(Protocol):
    """What a kind of storage must be able to do. Addresses are whole URIs."""

    def read_object(self, uri: str, generation: int | None = None) -> bytes | None:
        """Return the content; None where there is no such object, or no longer of this generation."""

    def size(self, uri: str) -> int | None:
        """Return the bytes of the object; None where there is none."""

    def sha256(self, uri: str) -> str | None:
        """Return the content's SHA-256 in hex, in bounded memory; None where there is no such object."""

    def publish(self, uri: str, file: IO[bytes]) -> bool:
        """Make the file's content appear under the address; False if there is an object already."""

    def replace(self, uri: str, content: bytes) -> None:
        """Write the object, over an older one if need be."""

    def download(self, uri: str, path: Path) -> bool:
        """Copy the object to a local path; False where there is none."""

    def list_objects(self, prefix: str) -> list[StoredObject]:
        """Return the objects whose address starts with `prefix`, sorted by address."""

    def delete_object(self, uri: str) -> None:
        """Remove the object; it may be gone already."""

    def scratch(self, uri: str) -> IO[bytes]:
        """Open an unnamed file to be published under the address later."""


MAX_DOCUMENT_BYTES = 256_000_000
_WAY_OUT = "Look who wrote it, delete it, and clear the task that should have written it"


class BoundedBuffer(io.BytesIO):
    """Bytes that end with an error where there are too many, however they were compressed.

    Args:
        uri: Of what is read, for the message.
    """

    def __init__(self, uri: str) -> None:
        super().__init__()
        self._uri = uri

    def write(self, data: Any) -> int:  # noqa: ANN401 - any buffer
        """Take more of them.

        Raises:
            DataError: There are too many.
        """
        require_small(self._uri, self.tell() + len(data))
        return super().write(data)


def require_small(uri: str, size: int) -> None:
    """Refuse a document that no memory should take.

    Raises:
        DataError: It is too large.
    """
    if size > MAX_DOCUMENT_BYTES:
        raise DataError(uri, f"more than {MAX_DOCUMENT_BYTES} bytes", "a document", _WAY_OUT)


_PIECE_BYTES = 1 << 18


def sha256_of(file: IO[bytes]) -> str:
    """Return the SHA-256 of the rest of a file, in hex."""
    digest = hashlib.sha256()
    while piece := file.read(_PIECE_BYTES):
        digest.update(piece)
    return digest.hexdigest()
