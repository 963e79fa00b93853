"""The span store by the names of its objects: which of them make a span, how old and how large each span is.

    gs://<results bucket>/jobs/<model>/spans/<schema hash>/<day or golden>/<fingerprint>/<file>

In: a listing, page by page, in order of names. Out: one value per span; the objects themselves are not kept in memory.
What does not lie like that is not a span, and nobody here touches it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from retraining.core.naming.addresses import ObjectAddress, folder_of
from retraining.core.naming.spans import MARKER, TOMBSTONE, SpanPlace, place_of


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredObject:
    """One object of a listing; `generation` changes with each write, `created` is when this generation was written.

    `content_type` is what its writer said of it, if anything.
    """

    uri: str
    bytes: int
    generation: int
    created: datetime
    content_type: str = ""

    @property
    def folder_uri(self) -> str:
        """Its folder, without a slash at the end."""
        return folder_of(self.uri)

    @property
    def name(self) -> str:
        """Last part of its address."""
        return ObjectAddress.parse(self.uri).name


@dataclass(frozen=True, kw_only=True)
class StoredSpan:
    """What lies in one folder.

    Attributes:
        place: The folder.
        objects: How many there are, without a tombstone.
        bytes: Of them all.
        newest: When the last of them was written; of a tombstone that is all that is left: when it was.
        marker: Generation of `span.json`; None: the span is not whole.
        tombstone: Whether its deletion has begun.
    """

    place: SpanPlace
    objects: int
    bytes: int
    newest: datetime
    marker: int | None
    tombstone: bool


def read_spans(objects: Iterable[StoredObject], spans_root: str) -> Iterator[StoredSpan | StoredObject]:
    """Yield the spans of a listing, each once; an object that belongs to none comes out as it is.

    Args:
        objects: All below `spans_root`, in order of names, as Cloud Storage lists them.
        spans_root: `gs://<results bucket>/jobs/<model>/spans`, or that of earlier releases.
    """
    for folder, inside in groupby(objects, lambda item: item.folder_uri):
        place = place_of(folder, spans_root)
        if place is None:
            yield from inside
        else:
            yield measure(place, inside)


def measure(place: SpanPlace, objects: Iterable[StoredObject]) -> StoredSpan:
    """Return what a folder holds; it must hold something."""
    count, size, marker, tombstone = 0, 0, None, None
    newest: datetime | None = None
    for item in objects:
        if item.name == TOMBSTONE:  # its time says when the deletion began, not when the span was last used
            tombstone = item
            continue
        count, size = count + 1, size + item.bytes
        newest = item.created if newest is None else max(newest, item.created)
        if item.name == MARKER:
            marker = item.generation
    if newest is None:
        assert tombstone is not None  # noqa: S101 - the caller's listing has an object of this folder
        newest = tombstone.created
    return StoredSpan(
        place=place, objects=count, bytes=size, newest=newest, marker=marker, tombstone=tombstone is not None
    )
