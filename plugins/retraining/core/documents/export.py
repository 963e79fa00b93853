"""Documents of the export: its request, what lies in the span store, and the manifest of a run."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints

from retraining.core.documents.document import (
    Address,
    Amount,
    Count,
    Crc32c,
    Day,
    Document,
    Fingerprint,
    ModelId,
    Positive,
    RequestDocument,
    ResultDocument,
    RunKey,
    SchemaHash,
    Sha256,
    TableName,
    Text,
    Value,
)
from retraining.core.documents.snapshot import Action, Column, GoldenWork, ManifestSplits, SpanWork

FilePart = Literal["train", "validation", "golden"]
"""By the example's key, for life; golden: the frozen set."""
Compression = Literal["GZIP", "NONE"]
ShardFormat = Literal["tfrecord", "csv"]
ImageEncoding = Literal["raw", "png", "jpeg"]
SpanName = Day | Literal["golden"]


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("one stands twice")
    return names


DistinctTexts = Annotated[tuple[Text, ...], AfterValidator(_distinct), Field(json_schema_extra={"uniqueItems": True})]


class ShardLayout(Value):
    """How examples lie in TFRecords."""

    numeric: DistinctTexts = ()
    """Features packed in this order into the list `_numeric`, NaN for NULL; none: each on its own."""
    rows_per_record: Positive = 1
    """Rows in one Example; above 1 `_rows` says how many of them are real."""


class ImageColumn(Value):
    """A BYTES column of PNG or JPEG that is stored resized."""

    name: Text
    height: Positive
    width: Positive
    channels: Literal[1, 3]
    encoding: ImageEncoding
    """raw: uint8, row-major, height x width x channels."""


class ExportRequest(RequestDocument):
    """What the exporter is asked: which days of a run table to write, and where their files go."""

    written_by: ClassVar[str] = "export"
    read_by: ClassVar[str] = "export job"
    kind: Literal["export_request"] = "export_request"
    model: ModelId
    run_key: RunKey
    table: TableName
    """The run table; it has the columns span, part, shard and row_hash beside its own."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] = Field(alias="schema")
    """The query's own columns, in its order."""
    schema_hash: SchemaHash
    compression: Compression
    spans_uri: Address
    spans: Annotated[tuple[SpanWork, ...], Field(min_length=1)]
    """Oldest first."""
    quarantined: tuple[Day, ...] = ()
    """Days that are left out because a check says so."""
    test_start: Day
    """First day of the test split: every part of the spans from this day on."""
    manifest_uri: Address
    format: ShardFormat = "tfrecord"
    layout: ShardLayout = Field(default_factory=ShardLayout)
    images: tuple[ImageColumn, ...] = ()
    only: Literal["all", "test"] = "all"
    """test: the spans before test_start are not exported; they are read from the table itself."""
    golden: GoldenWork | None = None


class SpanFile(Value):
    """One shard in the span store."""

    part: FilePart
    shard: Count
    file_name: Annotated[
        str, StringConstraints(pattern=r"^(train|validation|golden)-\d{5}-of-\d{5}\.(tfrecord|csv)(\.gz)?$")
    ]
    rows: Count
    bytes: Count
    crc32c: Crc32c
    sha256: Sha256


class Span(Document):
    """The files of a day of examples with their rows, bytes and checksums; written last, when all of them are there.

    The frozen set is the day `golden`.
    """

    written_by: ClassVar[str] = "export job"
    read_by: ClassVar[str] = "snapshot, later export jobs, `maintain`"
    kind: Literal["span"] = "span"
    span: SpanName
    fingerprint: Fingerprint
    schema_hash: SchemaHash
    files: Annotated[tuple[SpanFile, ...], Field(min_length=1)]


class ManifestFile(Value):
    """One shard of a split."""

    uri: Address
    span: SpanName
    part: FilePart
    rows: Count
    bytes: Count
    crc32c: Crc32c
    sha256: Sha256


class ManifestSplit(Value):
    """The shards of a split, oldest span first; none although there are rows: they are read from the table."""

    rows: Count
    files: tuple[ManifestFile, ...]


class ManifestSpan(Value):
    """Where a span's files came from."""

    span: Day
    fingerprint: Fingerprint
    rows: Count
    action: Action
    reason: Text


class Manifest(ResultDocument):
    """The data set of a run: every file of every split with its rows, bytes, CRC32C and SHA-256."""

    written_by: ClassVar[str] = "export job"
    read_by: ClassVar[str] = "train and evaluate jobs, report"
    kind: Literal["manifest"] = "manifest"
    model: ModelId
    run_key: RunKey
    schema_hash: SchemaHash
    compression: Compression
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] = Field(alias="schema")
    """The query's own columns, in its order."""
    table: TableName
    """The run table."""
    format: ShardFormat = "tfrecord"
    layout: ShardLayout = Field(default_factory=ShardLayout)
    images: tuple[ImageColumn, ...] = ()
    splits: ManifestSplits[ManifestSplit]
    quarantined: tuple[Day, ...] = ()
    """Days that are left out because a check says so."""
    spans: tuple[ManifestSpan, ...]
    exported_rows: Count
    """Rows of the spans with action export."""
    exported_bytes: Count
    """Bytes of their files."""
    seconds: Amount
    """Wall time of the replica that finished last."""
