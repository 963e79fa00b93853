"""Documents of the export: its request, what lies in the span store, and the manifest of a run."""

from __future__ import annotations

from typing import Annotated, Literal

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
from retraining.core.documents.snapshot import Column, GoldenWork, SnapshotSpan
from retraining.core.documents.splits import SplitName, all_three

FilePart = Literal["train", "validation", "golden"]
Compression = Literal["GZIP", "NONE"]
ShardFormat = Literal["tfrecord", "csv"]


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
    splits: Annotated[dict[SplitName | Literal["golden"], ManifestSplit], AfterValidator(all_three)]
    quarantined: tuple[Day, ...] = ()
    spans: tuple[ManifestSpan, ...]
    exported_rows: Count
    exported_bytes: Count
    seconds: Number
