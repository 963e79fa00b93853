"""Documents on Cloud Storage: written once, read by everybody.

In: `gs://` addresses and bytes. Out: bytes. An object is never overwritten but by `overwrite`, which is for what can
be derived again.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from retraining.core.errors import ContractError, SettingsError
from retraining.core.naming.addresses import ObjectAddress
from retraining.core.untyped import ApiJson
from retraining.hooks import limits
from retraining.hooks.session import Session, call

if TYPE_CHECKING:
    from google.cloud.storage import Blob, Bucket, Client
    from typing_extensions import Buffer

PARQUET_FOOTER_BYTES = 1_000_000
"""Of a file's end that are read: 9,996 columns in 100 row groups take more, but few have so many."""

_PARQUET_MAGIC = b"PAR1"
_PARQUET_LENGTH = 4


def parquet_column_names(end: bytes) -> list[str] | None:
    """Return the names of a file's columns, in its order; None: it is no Parquet file, or its footer is longer."""
    import pyarrow
    import pyarrow.parquet

    size = (
        int.from_bytes(end[-len(_PARQUET_MAGIC) - _PARQUET_LENGTH : -len(_PARQUET_MAGIC)], "little")
        + _PARQUET_LENGTH
        + len(_PARQUET_MAGIC)
    )
    if not end.endswith(_PARQUET_MAGIC) or len(end) < size:
        return None
    try:
        # The footer alone is a file without data: enough to be asked for its schema.
        return list(pyarrow.parquet.read_schema(pyarrow.BufferReader(_PARQUET_MAGIC + end[-size:])).names)
    except (pyarrow.ArrowException, OSError):
        return None


READERS = 10  # as many connections as urllib3 keeps to a host; with more it warns of each
MAX_DOCUMENT_BYTES = 64_000_000
"""Of one document, in a worker's memory; the manifest of 100,000 files has 40 MB."""


class Artifacts:
    """Objects in buckets, by address.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known_buckets: set[str] = set()

    def bucket_locations(self, bucket: str) -> tuple[str, ...] | None:
        """Return a bucket's location, and the regions of one that names two of its own.

        None when there is no such bucket, or when the account may not look at buckets: roles for objects do not say so.
        """
        from google.api_core.exceptions import Forbidden, NotFound

        try:
            found = call(lambda: self._client.get_bucket(bucket, retry=None))
        except (Forbidden, NotFound):
            return None
        return (found.location, *(found.data_locations or ())) if found.location else None

    def bucket_key(self, bucket: str) -> str | None:
        """Return the key that new objects of a bucket are encrypted with.

        Empty: Google's. None as `bucket_locations`.
        """
        from google.api_core.exceptions import Forbidden, NotFound

        try:
            return str(call(lambda: self._client.get_bucket(bucket, retry=None)).default_kms_key_name or "")
        except (Forbidden, NotFound):
            return None

    def read_object(self, uri: str) -> bytes | None:
        """Return an object's bytes, or None when there is none.

        Raises:
            SettingsError: The bucket does not exist.
            ContractError: It is larger than `MAX_DOCUMENT_BYTES`.
        """
        from google.api_core.exceptions import NotFound

        blob = self._blob(uri)
        try:
            data = call(functools.partial(_download, blob, uri))
        except NotFound:
            self._require_bucket(blob.bucket)
            return None
        return data

    def read_many(self, uris: list[str]) -> list[bytes]:
        """Return the bytes of several objects, in the order of their addresses; those that are gone are left out."""
        return list(self.read_some(uris).values())

    def read_some(self, uris: list[str]) -> dict[str, bytes]:
        """Return the addresses and bytes of the objects that are there, in the given order."""
        contents = zip(uris, limits.ask_all(self.read_object, uris, READERS), strict=True)
        return {uri: data for uri, data in contents if data is not None}

    def read_ranges(self, ranges: Mapping[str, tuple[int, int]]) -> dict[str, bytes]:
        """Return parts of objects by address, as stored: of each the bytes from, and up to (exclusive).

        Objects that are gone are left out.
        """
        from google.api_core.exceptions import NotFound

        def read(uri: str) -> bytes | None:
            start, end = ranges[uri]
            blob = self._blob(uri)
            try:
                data: bytes = call(
                    lambda: blob.download_as_bytes(start=start, end=end - 1, raw_download=True, retry=None)
                )
            except NotFound:
                return None
            return data

        contents = zip(ranges, limits.ask_all(read, ranges, READERS), strict=True)
        return {uri: data for uri, data in contents if data is not None}

    def parquet_columns(self, sizes: Mapping[str, int]) -> dict[str, list[str] | None]:
        """Return the names of the columns of Parquet files of known sizes; None of one that is no Parquet file."""
        ends = {uri: (max(0, size - PARQUET_FOOTER_BYTES), size) for uri, size in sizes.items() if size}
        return {uri: parquet_column_names(end) for uri, end in self.read_ranges(ends).items()}

    def exists(self, uri: str) -> bool:
        """Return whether there is an object at the address."""
        return bool(call(lambda: self._blob(uri).exists(retry=None)))

    def existing(self, uris: list[str]) -> list[str]:
        """Return those of the addresses that have an object, in the given order."""
        return [uri for uri, there in zip(uris, limits.ask_all(self.exists, uris, READERS), strict=True) if there]

    def write_once(self, uri: str, data: bytes, content_type: str = "application/json") -> bytes:
        """Write an object unless there is one; gives the bytes that are stored then.

        Raises:
            SettingsError: The bucket does not exist.
        """
        from google.api_core.exceptions import NotFound, PreconditionFailed

        blob = self._blob(uri)
        try:
            # Safe to repeat: after a lost response the second try meets the first one's object.
            call(lambda: blob.upload_from_string(data, content_type=content_type, if_generation_match=0, retry=None))
        except PreconditionFailed:
            stored = self.read_object(uri)
            return data if stored is None else stored
        except NotFound:
            self._require_bucket(blob.bucket)
            raise
        return data

    def overwrite(self, uri: str, data: bytes, content_type: str) -> None:
        """Write an object, whatever was there: for what is derived (a page, a cursor), never for a document."""
        call(lambda: self._blob(uri).upload_from_string(data, content_type=content_type, retry=None))

    def read_generation(self, uri: str) -> tuple[bytes, int]:
        """Return an object's bytes and generation, for `write_if`; no bytes and 0 when there is none."""
        from google.api_core.exceptions import NotFound

        blob = self._blob(uri)
        try:
            # The download takes the generation of what it brings from the response.
            data = call(functools.partial(_download, blob, uri))
        except NotFound:
            return b"", 0
        return data, int(blob.generation)

    def write_if(self, uri: str, data: bytes, generation: int, content_type: str = "application/json") -> int | None:
        """Write an object if it is still of this generation; give the new one, or None when somebody else was faster.

        Args:
            uri: Its address.
            data: JSON text. To tell one's own write from another's after a lost answer, it has what only this writer
                writes.
            generation: As `read_generation` gave it; 0: there is no object.
            content_type: Of what is written.
        """
        from google.api_core.exceptions import PreconditionFailed

        blob = self._blob(uri)
        try:
            call(
                lambda: blob.upload_from_string(
                    data, content_type=content_type, if_generation_match=generation, retry=None
                )
            )
        except PreconditionFailed:  # also when it was written and the answer got lost
            stored, current = self.read_generation(uri)
            return current if stored == data else None
        return int(blob.generation)

    def list_uris(self, folder_uri: str, *, start: str = "", end: str = "", suffix: str = "") -> list[str]:
        """Return the addresses of the objects in a folder and below, sorted.

        Args:
            folder_uri: Without a slash at the end.
            start: Only those whose path below the folder is this or after it, in order of bytes.
            end: Only those before it.
            suffix: Only those that end with it.
        """
        folder = ObjectAddress.parse(folder_uri + "/")
        prefix = folder.path
        options: ApiJson = {"fields": "items(name),nextPageToken"}
        if start:
            options["start_offset"] = prefix + start
        if end:
            options["end_offset"] = prefix + end
        listing = functools.partial(self._client.list_blobs, folder.bucket, prefix=prefix, retry=None, **options)
        blobs = call(lambda: list(listing()), timeout_s=limits.LISTING_S)
        paths = sorted(blob.name.removeprefix(prefix) for blob in blobs)
        return [
            f"{folder_uri}/{path}"
            for path in paths
            if path >= start and (not end or path < end) and path.endswith(suffix)
        ]

    def list_folders(self, folder_uri: str, *, end: str = "") -> list[str]:
        """Return the addresses of the folders directly in a folder, sorted; what is in them is not listed.

        Args:
            folder_uri: Without a slash at the end.
            end: Only those whose name is before it, in order of bytes.
        """
        folder = ObjectAddress.parse(folder_uri + "/")
        prefix = folder.path
        options = {"delimiter": "/", "fields": "prefixes,nextPageToken"}

        def list_prefixes() -> list[str]:
            pages = self._client.list_blobs(folder.bucket, prefix=prefix, retry=None, **options)
            for _ in pages:  # the folders are known once all pages are read
                pass
            return sorted(pages.prefixes)

        names = [path.removeprefix(prefix).rstrip("/") for path in call(list_prefixes, timeout_s=limits.LISTING_S)]
        return [f"{folder_uri}/{name}" for name in names if not end or name < end]

    @cached_property
    def _client(self) -> Client:
        from retraining.hooks.transports import storage_client

        return storage_client(self._session)

    def _blob(self, uri: str) -> Blob:
        address = ObjectAddress.parse(uri)
        return self._client.bucket(address.bucket).blob(address.path)

    def _require_bucket(self, bucket: Bucket) -> None:
        """Ask for a list of one object: asking for the bucket itself takes a right that no role for objects has."""
        from google.api_core.exceptions import NotFound

        if bucket.name in self._known_buckets:
            return
        listed = functools.partial(
            self._client.list_blobs, bucket.name, max_results=1, fields="items(name)", retry=None
        )
        try:
            call(lambda: next(iter(listed()), None))
        except NotFound:
            raise SettingsError(
                f"gs://{bucket.name}", "no such bucket", "the bucket of RETRAINING_BUCKET", "Create it or correct that"
            ) from None
        self._known_buckets.add(bucket.name)


class _Bounded(io.BytesIO):
    """Bytes that end with an error where a document would be too large, however it is compressed."""

    def __init__(self, uri: str) -> None:
        super().__init__()
        self._uri = uri

    def write(self, data: Buffer) -> int:
        """Write as BytesIO does."""
        if self.tell() + memoryview(data).nbytes > MAX_DOCUMENT_BYTES:
            raise ContractError(
                self._uri,
                f"more than {MAX_DOCUMENT_BYTES} bytes",
                "a document of this system, which is smaller",
                "Look who wrote it, delete it, and clear the task that should have written it",
            )
        return super().write(data)


def _download(blob: Blob, uri: str) -> bytes:
    file = _Bounded(uri)
    blob.download_to_file(file, retry=None)
    return file.getvalue()
