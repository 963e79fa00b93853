"""The digest of a stored model, as the training's report has it; and its files brought to another folder.

In: a folder's address. Out: the SHA-256 over the sorted lines `<file name> <SHA-256>` of all files; `digest_folder` in
`trainer/saved_model/model.py` gives the same of a local folder.
"""

from __future__ import annotations

import functools
import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

from retraining.core.naming.addresses import ObjectAddress
from retraining.hooks import limits
from retraining.hooks.session import Session, call

if TYPE_CHECKING:
    from google.cloud.storage import Blob, Client

READERS = 8
COPIES = 8  # at a time; the client keeps ten connections
CHUNK_BYTES = 8 << 20  # of a file in memory at a time
MAX_FILE_BYTES = 1 << 40
"""Of one file of a model, streamed; Vertex AI serves none that is larger."""


class ModelFiles:
    """Folders of models in buckets.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def digest(self, folder_uri: str) -> str | None:
        """Return the digest of all files in a folder and below.

        None when there is none. Files are streamed, not kept.
        """
        files = self._files(folder_uri)
        if not files:
            return None
        digests = limits.ask_all(_digest, [blob for _, blob in files], READERS)
        lines = [f"{name} {digest}\n" for (name, _), digest in zip(files, digests, strict=True)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def copy_missing(self, source_uri: str, target_uri: str) -> int:
        """Copy the files of a folder to another one, of any bucket; return how many were not there yet.

        The service copies: no byte comes here. Each is copied as it was listed and made only where there is none, so
        that it may be repeated after a death anywhere.
        """
        target = ObjectAddress.parse(target_uri.rstrip("/"))
        bucket = self._client.bucket(target.bucket)
        pairs = [(blob, bucket.blob(f"{target.path}/{name}")) for name, blob in self._files(source_uri)]
        return sum(limits.ask_all(_copy, pairs, COPIES))

    def _files(self, folder_uri: str) -> list[tuple[str, Blob]]:
        """Return the files in a folder and below, with their paths in it, sorted by these."""
        folder = ObjectAddress.parse(folder_uri.rstrip("/") + "/")
        prefix = folder.path
        listing = functools.partial(self._client.list_blobs, folder.bucket, prefix=prefix, retry=None)
        blobs = call(lambda: list(listing()), timeout_s=limits.LISTING_S)
        named = [(blob.name.removeprefix(prefix), blob) for blob in blobs if not blob.name.endswith("/")]
        return sorted(named, key=lambda each: each[0])

    @cached_property
    def _client(self) -> Client:
        from retraining.hooks.transports import storage_client

        return storage_client(self._session)


def _digest(blob: Blob) -> str:
    return call(lambda: _sha256(blob), timeout_s=limits.TRANSFER_S, max_bytes=MAX_FILE_BYTES)


def _copy(pair: tuple[Blob, Blob]) -> bool:
    """Copy a file; False: there is one already, which may be this very copy, whose answer got lost."""
    from google.api_core.exceptions import PreconditionFailed

    source, target = pair
    token: str | None = None
    while True:
        try:
            token, _, _ = call(functools.partial(_rewrite, source, target, token), timeout_s=limits.TRANSFER_S)
        except PreconditionFailed:
            return False
        if token is None:  # else it is a large one, which takes several calls
            return True


def _rewrite(source: Blob, target: Blob, token: str | None) -> tuple[str | None, int, int]:
    found: tuple[str | None, int, int] = target.rewrite(
        source,
        token=token,
        if_generation_match=0,
        if_source_generation_match=source.generation,
        retry=None,
    )
    return found


def _sha256(blob: Blob) -> str:
    digest = hashlib.sha256()
    with blob.open("rb", chunk_size=CHUNK_BYTES, retry=None) as file:
        while block := file.read(CHUNK_BYTES):
            digest.update(block)
    return digest.hexdigest()
