"""Documents of the snapshot: the run table by spans and by its three splits, and the frozen set beside it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, Field

from retraining.core.documents.document import (
    Count,
    Day,
    Document,
    Fingerprint,
    ModelId,
    Positive,
    RunKey,
    SchemaHash,
    Sha256,
    Text,
    Uri,
    Value,
)

SplitName = Literal["train", "validation", "test"]
ManifestSplitName = Literal["train", "validation", "test", "golden"]
"""`golden` is the frozen set."""


_S = TypeVar("_S", bound=str)
_T = TypeVar("_T")


def all_three(splits: dict[_S, _T]) -> dict[_S, _T]:
    """Return splits that are all there.

    Raises:
        ValueError: One is missing.
    """
    for name in ("train", "validation", "test"):
        if name not in splits:
            raise ValueError(f"has no key {name!r}")
    return splits


AllSplits = Annotated[
    dict[SplitName, _T],
    AfterValidator(all_three),
    Field(json_schema_extra={"required": ["train", "validation", "test"]}),
]
ManifestSplits = Annotated[
    dict[ManifestSplitName, _T],
    AfterValidator(all_three),
    Field(json_schema_extra={"required": ["train", "validation", "test"]}),
]


PartName = Literal["train", "validation"]
"""By the example's key, for life."""


Action = Literal["export", "reuse"]


class Column(Value):
    """One column of the examples query."""

    name: Text
    type: Text
    """BigQuery type as the API names it: INTEGER, FLOAT, STRING, …"""
    mode: Literal["NULLABLE", "REQUIRED", "REPEATED"]


class PartWork(Value):
    """Rows and shard count of one part of a span."""

    part: PartName
    rows: Count
    shards: Positive


class SpanWork(Value):
    """One day of examples: what it holds, and whether its files are made in this run or taken from the span store.

    `because` begins with `changed` when the store has the day with other content.
    """

    span: Day
    fingerprint: Fingerprint
    parts: tuple[PartWork, ...]
    action: Action
    reason: Text


class LeftOut(Value):
    """What the query gave and no span holds: events after the day of the snapshot, and events without a time."""

    future: Count
    latest: Day | None
    undated: Count


class SourceTable(Value):
    """A table or view that the examples query reads, with its columns; none where the account may not look at it."""

    name: Text
    columns: tuple[Column, ...] = ()


class SourceFilesRead(Value):
    """The files that the examples came from: how many, their bytes, and a SHA-256 over names and generations."""

    count: Positive
    bytes: Count
    sha256: Sha256


class GoldenWork(Value):
    """The frozen set: its own table, and whether the span store has it already."""

    table: Text
    fingerprint: Fingerprint
    rows: Count
    shards: Positive
    action: Action
    reason: Text


class FrozenSet(Document):
    """What the query of a [frozen set](data.md#the-frozen-set) gave when it was first run: rows and fingerprint.

    It must stay so for as long as the query is used.
    """

    written_by: ClassVar[str] = "snapshot"
    read_by: ClassVar[str] = "later runs"
    kind: Literal["golden"] = "golden"
    model: ModelId
    run_key: RunKey
    query: Text
    sql_sha256: Sha256
    table: Text
    fingerprint: Fingerprint
    rows: Positive
    shards: Positive


class Snapshot(Document):
    """The run table, its schema, the tables that the query reads, and each day's fingerprint.

    Per day and for the frozen set it says whether it is exported or reused, and why; and what no day can hold.
    """

    written_by: ClassVar[str] = "snapshot"
    read_by: ClassVar[str] = "check_data, export"
    kind: Literal["snapshot"] = "snapshot"
    model: ModelId
    run_key: RunKey
    table: Text
    bytes_processed: Count
    columns: tuple[Column, ...] = Field(alias="schema")
    """The query's own columns."""
    schema_hash: SchemaHash
    spans_uri: Uri
    spans: tuple[SpanWork, ...]
    golden: GoldenWork | None = None
    left_out: LeftOut | None = None
    source_files: SourceFilesRead | None = None
    sources: tuple[SourceTable, ...] = ()
    """What BigQuery says that the query reads, by name; of a release before this one nothing."""
    explain: tuple[Text, ...] = ()
    """A line per day and for the frozen set: what is done with it, because of what."""
