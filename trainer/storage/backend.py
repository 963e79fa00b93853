"""The kinds of storage: `disk.py` and `gcs.py`, and what `trainer.storage` asks of either."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """An object that a listing found."""

    uri: str
    bytes: int


class Backend(Protocol):
    """What a kind of storage must be able to do. Addresses are whole URIs."""

    def read_object(self, uri: str, generation: int | None = None) -> bytes | None:
        """Give the content; None where there is no such object, or no longer of this generation."""

    def size(self, uri: str) -> int | None:
        """Give the bytes of the object; None where there is none."""

    def sha256(self, uri: str) -> str | None:
        """Give the content's SHA-256 in hex, in bounded memory; None where there is no such object."""

    def publish(self, uri: str, file: IO[bytes]) -> bool:
        """Make the file's content appear under the address; False if there is an object already."""

    def replace(self, uri: str, content: bytes) -> None:
        """Write the object, over an older one if need be."""

    def download(self, uri: str, path: Path) -> bool:
        """Copy the object to a local path; False where there is none."""

    def list_objects(self, prefix: str) -> list[StoredObject]:
        """Give the objects whose address starts with `prefix`, sorted by address."""

    def delete_object(self, uri: str) -> None:
        """Remove the object; it may be gone already."""

    def scratch(self, uri: str) -> IO[bytes]:
        """Open an unnamed file to be published under the address later."""
