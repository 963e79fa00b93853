"""What there is to export: spans, their shards, and where each one's file goes.

Comes in: an export request. Goes out: its spans (the frozen set is one of them), their shards, and which of
them are a replica's: shard i belongs to replica i mod N. Nothing here depends on what is stored already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trainer.contract.documents import ExportRequest, FilePart, GoldenWork, SpanWork
from trainer.storage import join_uri

FROZEN_SET = "golden"
"""The frozen set's name as a span and as a part."""


@dataclass(frozen=True, kw_only=True, order=True)
class Unit:
    """The least piece of export work: it becomes one shard file."""

    span: str
    part: FilePart
    shard: int


@dataclass(frozen=True, kw_only=True)
class PartRows:
    """How many rows a part has and over how many shards they are spread."""

    part: FilePart
    rows: int
    shards: int


@dataclass(frozen=True, kw_only=True)
class Work:
    """A span's folder in the store and what belongs there.

    Attributes:
        span: Day, or `golden`.
        table: Where its rows are, project.dataset.table.
        fingerprint: Of its content.
        folder_uri: Its folder; one content, one folder.
        parts: What it consists of.
        action: Whether it must be there already.
    """

    span: str
    table: str
    fingerprint: str
    folder_uri: str
    parts: tuple[PartRows, ...]
    action: Literal["export", "reuse"]

    @property
    def span_uri(self) -> str:
        """Address of the document that says that the span is complete."""
        return join_uri(self.folder_uri, "span.json")


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A unit with its place.

    Attributes:
        unit: Which rows.
        table: Of these rows.
        uri: Of the file.
        rows: How many there are; of a part with several shards: on average.
        exact: Whether `rows` is exact.
    """

    unit: Unit
    table: str
    uri: str
    rows: int
    exact: bool

    @property
    def sidecar_uri(self) -> str:
        """Address of the file's rows and digests."""
        return f"{self.uri}.json"


def works_of(request: ExportRequest) -> tuple[Work, ...]:
    """Return the request's spans in its order, then the frozen set; without spans that are not exported at all."""
    spans = [
        _span_work(request, span)
        for span in request.spans
        if span.span not in request.quarantined and (request.only == "all" or span.span >= request.test_start)
    ]
    return (*spans, *([_frozen_work(request, request.golden)] if request.golden else []))


def shards_of(work: Work, suffix: str) -> list[Shard]:
    """Return a span's shards.

    Args:
        suffix: Of the file names, with its dots.
    """
    return [
        Shard(
            unit=Unit(span=work.span, part=part.part, shard=shard),
            table=work.table,
            uri=join_uri(work.folder_uri, f"{part.part}-{shard:05d}-of-{part.shards:05d}{suffix}"),
            rows=part.rows // part.shards,
            exact=part.shards == 1,
        )
        for part in work.parts
        for shard in range(part.shards)
    ]


def share(shards: Sequence[Shard], index: int, count: int) -> list[Shard]:
    """Return replica `index`'s share of all shards, in their order.

    They are numbered from the largest to the smallest, and each `count`-th is the replica's: numbered span by span, a
    small part would follow each large one, and one of two replicas would get all that is large.
    """
    ranked = sorted(shards, key=lambda shard: (-shard.rows, shard.uri))
    mine = set(ranked[index::count])
    return [shard for shard in shards if shard in mine]


def _span_work(request: ExportRequest, span: SpanWork) -> Work:
    return Work(
        span=span.span,
        table=request.table,
        fingerprint=span.fingerprint,
        folder_uri=join_uri(request.spans_uri, span.span, span.fingerprint),
        parts=tuple(PartRows(part=part.part, rows=part.rows, shards=part.shards) for part in span.parts),
        action=span.action,
    )


def _frozen_work(request: ExportRequest, frozen_set: GoldenWork) -> Work:
    return Work(
        span=FROZEN_SET,
        table=frozen_set.table,
        fingerprint=frozen_set.fingerprint,
        folder_uri=join_uri(request.spans_uri, FROZEN_SET, frozen_set.fingerprint),
        parts=(PartRows(part="golden", rows=frozen_set.rows, shards=frozen_set.shards),),
        action=frozen_set.action,
    )
