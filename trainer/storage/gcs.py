"""Cloud Storage through Google's own client, unmodified: credentials and hosts come from the environment.

`trainer.storage` imports this only when it meets a `gs://` address: the client costs most of a second.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import google.api_core.exceptions
import google.auth.exceptions
import requests
from google.cloud import storage
from google.cloud.storage.retry import DEFAULT_RETRY

from trainer.errors import OUTAGE_S, RequestError, StorageError
from trainer.storage.backend import BoundedBuffer, StoredObject, sha256_of

_CONNECTIONS = 32
_RETRY = DEFAULT_RETRY.with_timeout(OUTAGE_S)
_PIECE_BYTES = 4 << 20  # of a large upload: what the client keeps in memory; by default it takes 100 MB


class CloudStorage:
    """Objects of any bucket. Transient answers (429, 5xx, lost connections) are retried for ten minutes."""

    def __init__(self) -> None:
        with _translated("Google credentials"):
            self._client = storage.Client()
        adapter = requests.adapters.HTTPAdapter(pool_connections=_CONNECTIONS, pool_maxsize=_CONNECTIONS)
        self._client._http.mount(
            "https://", adapter
        )  # the client has no setting for it: https://github.com/googleapis/python-storage/issues/253

    def read_object(self, uri: str, generation: int | None = None) -> bytes | None:
        """Return the content, its CRC32C checked by the client; None where there is no such object."""
        with _translated(uri):
            try:
                content = BoundedBuffer(uri)
                self._blob(uri, generation).download_to_file(content, retry=_RETRY)
            except google.api_core.exceptions.NotFound as error:
                self._require_bucket(uri, error)
                return None
            return content.getvalue()

    def size(self, uri: str) -> int | None:
        """Return the bytes of the object; None where there is none."""
        with _translated(uri):
            bucket_name, name = _split_uri(uri)
            blob = self._client.bucket(bucket_name).get_blob(name, retry=_RETRY)
            return None if blob is None else int(blob.size)

    def sha256(self, uri: str) -> str | None:
        """Return the content's SHA-256 in hex; None where there is no such object."""
        with self.scratch(uri) as file, _translated(uri):
            try:
                self._blob(uri).download_to_file(file, retry=_RETRY)
            except google.api_core.exceptions.NotFound as error:
                self._require_bucket(uri, error)
                return None
            file.seek(0)
            return sha256_of(file)

    def publish(self, uri: str, file: IO[bytes]) -> bool:
        """Upload the file if the name is free; False if it is taken.

        An upload whose answer was lost is retried and then finds its own object: that too counts as taken.
        """
        size = file.seek(0, os.SEEK_END)  # known, a small file goes up in one request instead of two
        with _translated(uri):
            blob = self._blob(uri)
            blob.chunk_size = _PIECE_BYTES
            try:
                blob.upload_from_file(
                    file, rewind=True, size=size, if_generation_match=0, checksum="crc32c", retry=_RETRY
                )
            except google.api_core.exceptions.PreconditionFailed:
                return False
            return True

    def replace(self, uri: str, content: bytes) -> None:
        """Upload the object; it appears when complete."""
        with _translated(uri):
            self._blob(uri).upload_from_string(
                content, content_type="application/octet-stream", checksum="crc32c", retry=_RETRY
            )

    def download(self, uri: str, path: Path) -> bool:
        """Copy the object to a local path, its CRC32C checked by the client; False where there is none."""
        with _translated(uri):
            try:
                self._blob(uri).download_to_filename(str(path), retry=_RETRY)
            except google.api_core.exceptions.NotFound as error:
                self._require_bucket(uri, error)
                return False
            return True

    def list_objects(self, prefix: str) -> list[StoredObject]:
        """Return the objects whose address starts with `prefix`."""
        with _translated(prefix):
            bucket_name, start = _split_uri(prefix)
            blobs = self._client.list_blobs(bucket_name, prefix=start, retry=_RETRY)
            objects = [StoredObject(uri=f"gs://{bucket_name}/{blob.name}", bytes=int(blob.size or 0)) for blob in blobs]
        return sorted((item for item in objects if not item.uri.endswith("/")), key=lambda item: item.uri)

    def delete_object(self, uri: str) -> None:
        """Remove the object; it may be gone already."""
        with _translated(uri), contextlib.suppress(google.api_core.exceptions.NotFound):
            self._blob(uri).delete(retry=_RETRY)

    def scratch(self, uri: str) -> IO[bytes]:
        """Open an unnamed file in the temporary folder."""
        try:
            return tempfile.TemporaryFile("w+b")
        except OSError as error:
            raise StorageError(uri, f"no temporary file: {error}", "room in the temporary folder") from error

    def _blob(self, uri: str, generation: int | None = None) -> storage.Blob:
        bucket_name, name = _split_uri(uri)
        return self._client.bucket(bucket_name).blob(name, generation=generation)

    def _require_bucket(self, uri: str, error: google.api_core.exceptions.NotFound) -> None:
        if "bucket" in str(error.message).lower() and "object" not in str(error.message).lower():
            raise _no_bucket(uri) from error


def _split_uri(uri: str) -> tuple[str, str]:
    bucket_name, _, name = uri.removeprefix("gs://").partition("/")
    return bucket_name, name


def _no_bucket(where: str) -> RequestError:
    return RequestError(where, "the bucket does not exist", "an existing bucket", "Create it or mend the address")


@contextlib.contextmanager
def _translated(where: str) -> Iterator[None]:
    """Turn what the client raises into the trainer's errors."""
    try:
        yield
    except (google.api_core.exceptions.Forbidden, google.api_core.exceptions.Unauthorized) as error:
        raise RequestError(
            where, f"access refused: {error.message}", "a service account with storage.objects.{get,list,create}"
        ) from error
    except google.api_core.exceptions.NotFound as error:
        raise _no_bucket(where) from error
    except google.auth.exceptions.DefaultCredentialsError as error:
        raise RequestError(where, str(error), "application default credentials") from error
    except (
        google.api_core.exceptions.GoogleAPIError,
        google.auth.exceptions.GoogleAuthError,
        requests.RequestException,
    ) as error:
        raise StorageError(where, f"storage did not answer: {error}", way_out="Start again") from error
