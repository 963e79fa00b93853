"""Bytes by address: `gs://bucket/name`, or a path where a trainer is run by hand."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from google.api_core.exceptions import NotFound, PreconditionFailed
from google.cloud import storage

from trainer_kit.errors import RequestError
from trainer_kit.json_text import read_json


class Storage:
    """Objects, and files."""

    def __init__(self) -> None:
        self._client: storage.Client | None = None

    def read(self, uri: str) -> bytes | None:
        """Return an object's content; None: there is none."""
        if not uri.startswith("gs://"):
            return Path(uri).read_bytes() if Path(uri).is_file() else None
        try:
            return bytes(self._blob(uri).download_as_bytes())
        except NotFound:
            return None

    def exists(self, uri: str) -> bool:
        """Return whether there is an object."""
        return bool(self._blob(uri).exists()) if uri.startswith("gs://") else Path(uri).is_file()

    def write(self, uri: str, content: bytes) -> None:
        """Write an object, over an older one."""
        if uri.startswith("gs://"):
            self._blob(uri).upload_from_string(content, checksum="crc32c")
            return
        Path(uri).parent.mkdir(parents=True, exist_ok=True)
        Path(uri).write_bytes(content)

    def write_once(self, uri: str, content: bytes) -> None:
        """Write an object unless there is one: whoever was first is right."""
        if not uri.startswith("gs://"):
            Path(uri).parent.mkdir(parents=True, exist_ok=True)
            if not Path(uri).exists():
                Path(uri).write_bytes(content)
            return
        try:
            self._blob(uri).upload_from_string(content, checksum="crc32c", if_generation_match=0)
        except PreconditionFailed:
            return

    def read_json(self, uri: str, kind: str) -> dict[str, Any]:
        """Return a document.

        Raises:
            RequestError: There is none, or it is of another kind.
        """
        return parse_document(self.read_document(uri, kind), uri, kind)

    def read_document(self, uri: str, kind: str) -> bytes:
        """Return a document's bytes.

        Raises:
            RequestError: There is none.
        """
        content = self.read(uri)
        if content is None:
            raise RequestError(uri, "there is no such document", f"one of kind {kind!r}")
        return content

    def upload_folder(self, folder: Path, uri: str) -> None:
        """Copy every file below a folder to the same place below an address."""
        for file in files_of(folder):
            self.write(f"{uri.rstrip('/')}/{file.relative_to(folder).as_posix()}", file.read_bytes())

    def download_folder(self, uri: str, folder: Path) -> None:
        """Copy every object below an address to the same place below a folder.

        Raises:
            RequestError: There is none; or the name of one leads elsewhere, and none is copied.
        """
        prefix = f"{uri.rstrip('/')}/"
        if uri.startswith("gs://"):
            bucket, _, name = prefix.removeprefix("gs://").partition("/")
            blobs = self._connected().list_blobs(bucket, prefix=name)
            uris = [f"gs://{bucket}/{blob.name}" for blob in blobs if not blob.name.endswith("/")]
        else:
            uris = [f"{prefix}{file.relative_to(uri).as_posix()}" for file in files_of(Path(uri))]
        if not uris:
            raise RequestError(uri, "there is no model", "a folder of its files", "Clear the train task of its run")
        paths = {item: path_below(folder, item.removeprefix(prefix)) for item in uris}  # all, before the first
        for item, path in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.read(item) or b"")

    def _connected(self) -> storage.Client:
        self._client = self._client or storage.Client()
        return self._client

    def _blob(self, uri: str) -> storage.Blob:
        bucket, _, name = uri.removeprefix("gs://").partition("/")
        return self._connected().bucket(bucket).blob(name)


def parse_document(content: bytes, uri: str, kind: str) -> dict[str, Any]:
    """Return the document that its bytes say.

    Raises:
        RequestError: They are none, or one of another kind.
    """
    try:
        document: Any = read_json(content)
    except ValueError as error:
        raise RequestError(uri, f"is not JSON ({error})", f"a document of kind {kind!r}") from error
    found = document.get("kind") if isinstance(document, dict) else type(document).__name__
    if found != kind or document.get("schema_version") != 1:
        raise RequestError(uri, f"a document of kind {found!r}", f"kind {kind!r}, schema_version 1")
    return dict(document)


def files_of(folder: Path) -> list[Path]:
    """Return the files below a folder, by their names."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(files, key=lambda path: path.relative_to(folder).as_posix())


def path_below(folder: Path, name: str) -> Path:
    """Return the local place of an object by its name below an address; names of objects may hold anything.

    Raises:
        RequestError: It leads out of the folder.
    """
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise RequestError(
            f"an object named {name!r}",
            "no place below a folder",
            "names without empty parts, '.' and '..'",
            "Delete it: nothing of this system writes such a name",
        )
    return folder / name


def require_digest(uri: str, folder: Path, expected: str | None) -> str:
    """Return the digest of a model's files, before anything of them is loaded: what is loaded may be code.

    Args:
        uri: Where they come from.
        folder: Where they are.
        expected: Digest of the training report; None: not known.

    Raises:
        RequestError: They have another one.
    """
    digest = digest_folder(folder)
    if expected and digest != expected:
        raise RequestError(
            uri,
            f"a model with SHA-256 {digest}: it was written again since its training",
            f"that of its training report, {expected}",
            "Bring its files back as they were, or train again with Force",
        )
    return digest


def digest_folder(folder: Path) -> str:
    """Return the SHA-256 over the sorted lines `<file name> <SHA-256>` of all files, as a report states it."""
    digest = hashlib.sha256()
    for path in files_of(folder):
        name = path.relative_to(folder).as_posix()
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
