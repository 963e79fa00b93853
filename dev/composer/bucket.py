"""The bucket of a Composer environment: whose it is, what lies in it, and what an upload writes.

Every write and removal holds only for the object as it was listed, so nothing that somebody wrote meanwhile is lost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.api_core.exceptions import Forbidden, NotFound, PreconditionFailed
from google.cloud import storage

from composer.changes import Change, Digests, Kind, Left

FOLDERS = ("dags", "plugins")
RECORD = "retraining-deployed.json"
ENVIRONMENT_LABEL = "goog-composer-environment"
_NOT_THERE = 0  # Cloud Storage's generation of an object that does not exist
_SECONDS = 60
_AT_ONCE = 8
_RECORD_VERSION = 2  # of version 1 the digests are CRC32C, which whoever changes a file can keep
_WITHOUT_RECORD = "delete it; what differs in the bucket then needs FORCE=1, and nothing that is gone is removed"


class DeployError(Exception):
    """What keeps an upload from its end, with the way out."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What lies in both folders, and what the uploads before left there."""

    found: dict[str, str]
    generations: dict[str, int]
    left: dict[str, frozenset[str]]
    record_generation: int
    commit: str


class EnvironmentBucket:
    """The bucket, asked by the machine's own credentials."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._bucket = storage.Client().bucket(name)

    def require_environment(self, environment: str) -> str:
        """Refuse the bucket of another environment; return what is to be said of it.

        Raises:
            DeployError: There is no such bucket, or it is another environment's.
        """
        try:
            self._bucket.reload(timeout=_SECONDS)
        except NotFound:
            raise DeployError(
                f"gs://{self.name}: no such bucket. `gcloud composer environments describe {environment} "
                "--format='value(config.dagGcsPrefix)'` names the environment's"
            ) from None
        except Forbidden:
            return f"gs://{self.name} does not say whose it is: storage.buckets.get is missing"
        owner = self._bucket.labels.get(ENVIRONMENT_LABEL)
        if owner is None:
            return f"gs://{self.name} does not say whose it is: it has no label {ENVIRONMENT_LABEL}"
        if owner != environment:
            raise DeployError(f"gs://{self.name} is the bucket of the environment {owner!r}, not of {environment!r}")
        return f"gs://{self.name} is the bucket of {environment}"

    def list(self, names: Collection[str]) -> Listing:
        """Return what is there; files that may be ours are read for their digests, as the service has none to go by.

        Args:
            names: Of the bundle; those of the record are looked at too.

        Raises:
            DeployError: The record is of a later release, or no record.
        """
        blobs = [blob for folder in FOLDERS for blob in self._bucket.list_blobs(prefix=f"{folder}/", timeout=_SECONDS)]
        record, generation = self._read_record()
        provable = record.get("schema_version") == _RECORD_VERSION
        left = {name: frozenset(digests if provable else ()) for name, digests in record.get("files", {}).items()}
        ours = [blob for blob in blobs if blob.name in left or blob.name in names]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            digests = dict(zip((blob.name for blob in ours), pool.map(self._digest, ours), strict=True))
        return Listing(
            found={name: digest for name, digest in digests.items() if digest},
            generations={blob.name: blob.generation for blob in blobs},
            left=left,
            record_generation=generation,
            commit=str(record.get("commit", "")),
        )

    def apply(self, change: Change, listing: Listing, folder: Path) -> None:
        """Write or remove one file.

        Raises:
            DeployError: Somebody changed it since it was listed.
        """
        blob, generation = self._bucket.blob(change.name), listing.generations.get(change.name, _NOT_THERE)
        try:
            if change.kind is Kind.REMOVE:
                blob.delete(if_generation_match=generation, timeout=_SECONDS)
            else:
                content = (folder / change.name).read_bytes()
                blob.upload_from_string(content, if_generation_match=generation, checksum="crc32c", timeout=_SECONDS)
        except (PreconditionFailed, NotFound):
            raise DeployError(
                f"gs://{self.name}/{change.name} was changed by somebody while this upload ran: run it again"
            ) from None

    def write_record(self, files: Left, commit: str, generation: int) -> int:
        """Write which files came from here; return the record's new generation.

        Raises:
            DeployError: Another upload wrote it.
        """
        blob = self._bucket.blob(RECORD)
        record = {
            "schema_version": _RECORD_VERSION,
            "commit": commit,
            "files": {name: sorted(files[name]) for name in sorted(files)},
        }
        try:
            blob.upload_from_string(
                json.dumps(record, indent=1).encode() + b"\n",
                content_type="application/json",
                if_generation_match=generation,
                timeout=_SECONDS,
            )
        except PreconditionFailed:
            raise DeployError(
                f"another upload to gs://{self.name} runs, or ran meanwhile: run this one again when it has ended"
            ) from None
        return int(blob.generation or _NOT_THERE)

    def _digest(self, blob: storage.Blob) -> str | None:
        """Return an object's digest as it was listed; None: it is gone, or another one by now."""
        try:
            content = self._bucket.blob(blob.name).download_as_bytes(
                if_generation_match=blob.generation, timeout=_SECONDS
            )
        except (NotFound, PreconditionFailed):
            return None
        return _sha256(content)

    def _read_record(self) -> tuple[Mapping[str, Any], int]:
        blob = self._bucket.get_blob(RECORD, timeout=_SECONDS)
        if blob is None:
            return {}, _NOT_THERE
        address = f"gs://{self.name}/{RECORD}"
        try:
            record = json.loads(blob.download_as_bytes(timeout=_SECONDS))
        except ValueError as error:
            raise DeployError(f"{address}: no JSON ({error}): {_WITHOUT_RECORD}") from None
        if not isinstance(record, dict) or record.get("schema_version") not in (1, _RECORD_VERSION):
            raise DeployError(f"{address}: expected schema_version 1 or 2: use the release that wrote it")
        if not _is_list_of_digests(record.get("files")):
            raise DeployError(f"{address}: files: expected a list of digests by name: {_WITHOUT_RECORD}")
        return record, int(blob.generation)


def digests_of(folder: Path) -> Digests:
    """Return the digest of every file of a bundle.

    Raises:
        DeployError: One of the folders has none: what is in the bucket would all be removed.
    """
    found = {
        path.relative_to(folder).as_posix(): _sha256(path.read_bytes())
        for name in FOLDERS
        for path in sorted((folder / name).rglob("*"))
        if path.is_file()
    }
    if empty := [name for name in FOLDERS if not any(file.startswith(f"{name}/") for file in found)]:
        raise DeployError(f"{folder / empty[0]} has no file: build it by `make bundle` in the checkout")
    return found


def _is_list_of_digests(files: object) -> bool:
    return isinstance(files, dict) and all(
        isinstance(digests, list) and all(isinstance(digest, str) for digest in digests) for digests in files.values()
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
