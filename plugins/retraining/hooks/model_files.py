"""The digest of a stored model, as the training's report has it.

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
        folder = ObjectAddress.parse(folder_uri.rstrip("/") + "/")
        prefix = folder.path
        listing = functools.partial(self._client.list_blobs, folder.bucket, prefix=prefix, retry=None)
        blobs = call(lambda: list(listing()), timeout_s=limits.LISTING_S)
        files = sorted((blob.name.removeprefix(prefix), blob) for blob in blobs if not blob.name.endswith("/"))
        if not files:
            return None
        digests = limits.ask_all(_digest, [blob for _, blob in files], READERS)
        lines = [f"{name} {digest}\n" for (name, _), digest in zip(files, digests, strict=True)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @cached_property
    def _client(self) -> Client:
        from retraining.hooks.transports import storage_client

        return storage_client(self._session)


def _digest(blob: Blob) -> str:
    return call(lambda: _sha256(blob), timeout_s=limits.TRANSFER_S, max_bytes=MAX_FILE_BYTES)


def _sha256(blob: Blob) -> str:
    digest = hashlib.sha256()
    with blob.open("rb", chunk_size=CHUNK_BYTES, retry=None) as file:
        while block := file.read(CHUNK_BYTES):
            digest.update(block)
    return digest.hexdigest()
