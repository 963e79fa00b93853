"""The digest of a stored model, as the training's report has it.

In: a folder's address. Out: the SHA-256 over the sorted lines `<file name> <SHA-256>` of all files; `digest_folder` in
`trainer/saved_model/model.py` gives the same of a local folder.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from retraining.core.naming.addresses import ObjectAddress
from retraining.hooks.session import Session, call

if TYPE_CHECKING:
    from google.cloud.storage import Blob, Client

READERS = 8
CHUNK_BYTES = 8 << 20  # of a file in memory at a time


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
        blobs = call(lambda: list(self._client.list_blobs(folder.bucket, prefix=prefix)))
        files = sorted((blob.name.removeprefix(prefix), blob) for blob in blobs if not blob.name.endswith("/"))
        if not files:
            return None
        with ThreadPoolExecutor(READERS) as pool:
            digests = pool.map(lambda file: call(lambda: _sha256(file[1])), files)
            lines = [f"{name} {digest}\n" for (name, _), digest in zip(files, digests, strict=True)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @cached_property
    def _client(self) -> Client:
        from google.cloud import storage

        return storage.Client(project=self._session.project, credentials=self._session.credentials)


def _sha256(blob: Blob) -> str:
    digest = hashlib.sha256()
    with blob.open("rb", chunk_size=CHUNK_BYTES) as file:
        while block := file.read(CHUNK_BYTES):
            digest.update(block)
    return digest.hexdigest()
