"""Objects of Cloud Storage as a listing has them, and deleting exactly those.

In: prefixes. Out: pages of `StoredObject`. What was written again since it was listed has another generation and is not
deleted, whoever wrote it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from retraining.core.data.span_store import StoredObject
from retraining.core.naming.addresses import ObjectAddress
from retraining.hooks import limits
from retraining.hooks.session import Session, call

if TYPE_CHECKING:
    from google.cloud.storage import Blob, Client

PAGE = 1000
BATCH = 100
DELETERS = 8  # the client keeps ten connections


@dataclass(frozen=True, kw_only=True)
class Deleted:
    """Of one object: `gone` is False when it was written again since it was listed, and is therefore still there."""

    object: StoredObject
    gone: bool


class Objects:
    """Listings and deletions in buckets, by address.

    Args:
        session: Where and as whom.
        page_size: Objects per page of a listing.
    """

    def __init__(self, session: Session, page_size: int = PAGE) -> None:
        self._session = session
        self._page_size = page_size

    def walk(self, folder_uri: str) -> Iterator[StoredObject]:
        """Yield the objects in a folder and below, in order of names; one page of them is in memory.

        Args:
            folder_uri: Without a slash at the end.
        """
        for page in self._folder_pages(folder_uri):
            yield from page

    def directly_in(self, folder_uri: str) -> list[StoredObject]:
        """Return the objects in a folder, not those in folders below it."""
        return [item for page in self._folder_pages(folder_uri, delimiter="/") for item in page]

    def find_object(self, uri: str) -> StoredObject | None:
        """Return one object as a listing would have it; None when there is none."""
        address = ObjectAddress.parse(uri)
        blob = call(lambda: self._client.bucket(address.bucket).get_blob(address.path, retry=None))
        return None if blob is None else _stored(address.bucket, blob)

    def match(self, uri: str) -> list[StoredObject]:
        """Return the objects at an address, in order of names; one `*` in it stands for any text, slashes too."""
        from google.api_core.exceptions import NotFound

        address = ObjectAddress.parse(uri)
        beginning, wildcard, end = address.path.partition("*")
        if not wildcard:
            found = self.find_object(uri)
            return [] if found is None else [found]
        least = len(str(ObjectAddress(bucket=address.bucket, path=beginning + end)))
        try:
            listed = [item for page in self._pages(address.bucket, beginning) for item in page]
        except NotFound:
            return []
        return [item for item in listed if item.uri.endswith(end) and len(item.uri) >= least]

    def delete(self, objects: Iterable[StoredObject]) -> Iterator[Deleted]:
        """Delete each, if it is still the generation that was listed; one that is gone already counts as deleted.

        Several at a time, in batches: an error ends it after the batch in which it came.
        """
        left = iter(objects)
        while batch := list(islice(left, BATCH)):
            yield from limits.ask_all(self._delete, batch, DELETERS)

    def _delete(self, item: StoredObject) -> Deleted:
        from google.api_core.exceptions import NotFound, PreconditionFailed

        address = ObjectAddress.parse(item.uri)
        blob = self._client.bucket(address.bucket).blob(address.path)
        try:
            # Safe to repeat: after a lost response the second try finds nothing, or nothing of this generation.
            call(lambda: blob.delete(if_generation_match=item.generation, retry=None))
        except NotFound:
            return Deleted(object=item, gone=True)
        except PreconditionFailed:  # also what a service may say of an object that is gone
            return Deleted(object=item, gone=self.find_object(item.uri) is None)
        return Deleted(object=item, gone=True)

    def _folder_pages(self, folder_uri: str, **options: str) -> Iterator[list[StoredObject]]:
        folder = ObjectAddress.parse(folder_uri + "/")
        return self._pages(folder.bucket, folder.path, **options)

    def _pages(self, bucket: str, prefix: str, **options: str) -> Iterator[list[StoredObject]]:
        token: str | None = None
        while True:
            page, token = call(functools.partial(self._page, bucket, prefix, token, options))
            yield page
            if not token:
                return

    def _page(
        self, bucket: str, prefix: str, token: str | None, options: dict[str, str]
    ) -> tuple[list[StoredObject], str | None]:
        listing = self._client.list_blobs(
            bucket,
            prefix=prefix,
            page_token=token,
            page_size=self._page_size,
            fields="items(name,size,generation,timeCreated,contentType),nextPageToken",
            retry=None,
            **options,
        )
        page = next(listing.pages, ())
        # A name that ends so is a console's placeholder of an empty folder.
        return [_stored(bucket, blob) for blob in page if not blob.name.endswith("/")], listing.next_page_token

    @cached_property
    def _client(self) -> Client:
        from retraining.hooks.transports import storage_client

        return storage_client(self._session)


def _stored(bucket: str, blob: Blob) -> StoredObject:
    return StoredObject(
        uri=str(ObjectAddress(bucket=bucket, path=blob.name)),
        bytes=int(blob.size or 0),
        generation=int(blob.generation),
        created=blob.time_created,
        content_type=blob.content_type or "",
    )
