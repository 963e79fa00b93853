"""The span store by the names of its objects: which of them make a span, how old and how large each span is.

    gs://<bucket>/<model>/spans/<schema hash>/<day or golden>/<fingerprint>/<file>

In: a listing, page by page, in order of names. Out: one value per span; the objects themselves are not kept in memory.
What does not lie like that is not a span, and nobody here touches it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby

GOLDEN = "golden"
"""The frozen set's name as a span."""

MARKER = "span.json"
"""Written last by the export: with it a span is whole, without it the next run exports it."""

TOMBSTONE = "deleted.json"
"""What the marker held, while a span is being deleted: with it the deletion goes on, or is taken back."""

_PLACE = re.compile(rf"([0-9a-f]{{16}})/(\d{{4}}-\d{{2}}-\d{{2}}|{GOLDEN})/([0-9a-f]{{32}})")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredObject:
    """One object of a listing; `generation` changes with each write, `created` is when this generation was written."""

    uri: str
    bytes: int
    generation: int
    created: datetime

    @property
    def folder_uri(self) -> str:
        """Its folder, without a slash at the end."""
        return self.uri.rpartition("/")[0]

    @property
    def name(self) -> str:
        """Last part of its address."""
        return self.uri.rpartition("/")[2]


@dataclass(frozen=True, kw_only=True)
class SpanPlace:
    """A folder of the span store. `day` is None for the frozen set."""

    uri: str
    span: str
    day: date | None
    fingerprint: str


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


def place_of(folder_uri: str, spans_root: str) -> SpanPlace | None:
    """The span whose folder this is; None when it is no folder of the store.

    Args:
        folder_uri: Without a slash at the end.
        spans_root: `gs://<bucket>/<model>/spans`.
    """
    inside = folder_uri.removeprefix(spans_root + "/")
    match = _PLACE.fullmatch(inside)
    if match is None or inside == folder_uri:
        return None
    try:
        day = None if match[2] == GOLDEN else date.fromisoformat(match[2])
    except ValueError:
        return None
    return SpanPlace(uri=folder_uri, span=match[2], day=day, fingerprint=match[3])


def read_spans(objects: Iterable[StoredObject], spans_root: str) -> Iterator[StoredSpan | StoredObject]:
    """Spans of a listing, each once; an object that belongs to none comes out as it is.

    Args:
        objects: All below `spans_root`, in order of names, as Cloud Storage lists them.
        spans_root: `gs://<bucket>/<model>/spans`.
    """
    for folder, inside in groupby(objects, lambda item: item.folder_uri):
        place = place_of(folder, spans_root)
        if place is None:
            yield from inside
        else:
            yield measure(place, inside)


def measure(place: SpanPlace, objects: Iterable[StoredObject]) -> StoredSpan:
    """What a folder holds; it must hold something."""
    count, size, marker, buried = 0, 0, None, None
    newest: datetime | None = None
    for item in objects:
        if item.name == TOMBSTONE:  # its time says when the deletion began, not when the span was last used
            buried = item
            continue
        count, size = count + 1, size + item.bytes
        newest = item.created if newest is None else max(newest, item.created)
        if item.name == MARKER:
            marker = item.generation
    if newest is None:
        assert buried is not None  # noqa: S101 - the caller's listing has an object of this folder
        newest = buried.created
    return StoredSpan(
        place=place, objects=count, bytes=size, newest=newest, marker=marker, tombstone=buried is not None
    )
