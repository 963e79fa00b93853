"""Documents about the examples: the snapshot, the export and its manifest."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field

from retraining.core.documents.document import (
    Count,
    Crc32c,
    Day,
    Document,
    Fingerprint,
    ModelId,
    Number,
    RunKey,
    SchemaHash,
    Sha256,
    Text,
    Uri,
    Value,
)

PartName = Literal["train", "validation"]
SplitName = Literal["train", "validation", "test"]
FilePart = Literal["train", "validation", "golden"]
Compression = Literal["GZIP", "NONE"]
ShardFormat = Literal["tfrecord", "csv"]


_S = TypeVar("_S", bound=str)
_T = TypeVar("_T")


def _all_three(splits: dict[_S, _T]) -> dict[_S, _T]:
    missing = {"train", "validation", "test"} - set(splits)
    if missing:
        raise ValueError(f"splits lack {', '.join(sorted(missing))}")
    return splits


AllSplits = Annotated[
    dict[SplitName, _T],
    AfterValidator(_all_three),
    Field(json_schema_extra={"required": ["test", "train", "validation"]}),
]


class Column(Value):
    """One column of the examples query: BigQuery's name, type (`INTEGER`, `FLOAT`, …) and mode."""

    name: Text
    type: Text
    mode: Literal["NULLABLE", "REQUIRED", "REPEATED"]


class Part(Value):
    """Rows and shard count of one part of a span."""

    part: PartName
    rows: Count
    shards: Annotated[int, Field(ge=1)]


class SnapshotSpan(Value):
    """One day of examples: what it holds, and whether its files are made tonight or taken from the span store.

    `because` begins with `changed` when the store has the day with other content.
    """

    span: Day
    fingerprint: Fingerprint
    parts: tuple[Part, ...]
    action: Literal["export", "reuse"]
    because: Text


class LeftOut(Value):
    """What the query gave and no span holds: events after the day of the snapshot, and events without a time."""

    future: Count
    latest: Day | None
    undated: Count


class GoldenWork(Value):
    """The frozen set: its own table, and whether the span store has it already."""

    table: Text
    fingerprint: Fingerprint
    rows: Count
    shards: Annotated[int, Field(ge=1)]
    action: Literal["export", "reuse"]
    because: Text


class FrozenSet(Document):
    """What the query of a frozen set gave when it was first run: it must stay so for as long as the query is used."""

    kind: Literal["golden"] = "golden"
    model: ModelId
    run_key: RunKey
    query: Text
    sql_sha256: Sha256
    table: Text
    fingerprint: Fingerprint
    rows: Annotated[int, Field(ge=1)]
    shards: Annotated[int, Field(ge=1)]


class Snapshot(Document):
    """The run table: its schema (the query's own columns), its spans, and the frozen set beside it.

    `explain` says in a line per span what is done with it, because of what.
    """

    kind: Literal["snapshot"] = "snapshot"
    model: ModelId
    run_key: RunKey
    table: Text
    bytes_processed: Count
    columns: tuple[Column, ...] = Field(alias="schema")
    schema_hash: SchemaHash
    spans_uri: Uri
    spans: tuple[SnapshotSpan, ...]
    golden: GoldenWork | None = None
    left_out: LeftOut | None = None
    explain: tuple[Text, ...] = ()


class ShardLayout(Value):
    """How examples lie in TFRecords: features packed into one list (none: each on its own), rows per Example."""

    numeric: tuple[Text, ...] = ()
    rows_per_record: Annotated[int, Field(ge=1)] = 1


class ImageColumn(Value):
    """A BYTES column of PNG or JPEG that is stored resized: raw is uint8, row-major, height x width x channels."""

    name: Text
    height: Annotated[int, Field(ge=1)]
    width: Annotated[int, Field(ge=1)]
    channels: Literal[1, 3]
    encoding: Literal["raw", "png", "jpeg"]


class ExportRequest(Document):
    """What the exporter is asked: the spans of a run table, and where their files go.

    `only: test` exports the spans from `test_start` on; the others are read from the table itself.
    """

    kind: Literal["export_request"] = "export_request"
    model: ModelId
    run_key: RunKey
    table: Text
    columns: tuple[Column, ...] = Field(alias="schema")
    schema_hash: SchemaHash
    compression: Compression
    spans_uri: Uri
    spans: tuple[SnapshotSpan, ...]
    quarantined: tuple[Day, ...] = ()
    test_start: Day
    manifest_uri: Uri
    format: ShardFormat = "tfrecord"
    layout: ShardLayout = Field(default_factory=ShardLayout)
    images: tuple[ImageColumn, ...] = ()
    only: Literal["all", "test"] = "all"
    golden: GoldenWork | None = None


class File(Value):
    """One shard in the span store. `crc32c` is base64, as Cloud Storage writes it."""

    part: FilePart
    shard: Count
    file_name: Text
    rows: Count
    bytes: Count
    crc32c: Crc32c
    sha256: Sha256


class Span(Document):
    """`span.json` beside a span's files: they are all there. The frozen set is the span `golden`."""

    kind: Literal["span"] = "span"
    span: Day | Literal["golden"]
    fingerprint: Fingerprint
    schema_hash: SchemaHash
    files: Annotated[tuple[File, ...], Field(min_length=1)]


class ManifestFile(Value):
    """One shard of a split."""

    uri: Uri
    span: Day | Literal["golden"]
    part: FilePart
    rows: Count
    bytes: Count
    crc32c: Crc32c
    sha256: Sha256


class ManifestSplit(Value):
    """The shards of a split."""

    rows: Count
    files: tuple[ManifestFile, ...]


class ManifestSpan(Value):
    """Where a span's files came from."""

    span: Day
    fingerprint: Fingerprint
    rows: Count
    action: Literal["export", "reuse"]
    because: Text


class Manifest(Document):
    """The data set of a run: every file of every split with its checksums."""

    kind: Literal["manifest"] = "manifest"
    model: ModelId
    run_key: RunKey
    schema_hash: SchemaHash
    compression: Compression
    columns: tuple[Column, ...] = Field(alias="schema")
    table: Text
    format: ShardFormat = "tfrecord"
    layout: ShardLayout = Field(default_factory=ShardLayout)
    images: tuple[ImageColumn, ...] = ()
    splits: Annotated[dict[SplitName | Literal["golden"], ManifestSplit], AfterValidator(_all_three)]
    quarantined: tuple[Day, ...] = ()
    spans: tuple[ManifestSpan, ...]
    exported_rows: Count
    exported_bytes: Count
    seconds: Number
