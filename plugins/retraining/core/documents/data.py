"""Documents about the examples: the snapshot, its statistics and checks, the export and its manifest."""

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
from retraining.core.documents.planning import Window

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
    """One day of examples: what it holds, and whether its files are made tonight or taken from the span store."""

    span: Day
    fingerprint: Fingerprint
    parts: tuple[Part, ...]
    action: Literal["export", "reuse"]
    because: Text


class Snapshot(Document):
    """The run table: its schema (the query's own columns) and its spans."""

    kind: Literal["snapshot"] = "snapshot"
    model: ModelId
    run_key: RunKey
    table: Text
    bytes_processed: Count
    columns: tuple[Column, ...] = Field(alias="schema")
    schema_hash: SchemaHash
    spans_uri: Uri
    spans: tuple[SnapshotSpan, ...]


class NumericStatistics(Value):
    """Of one numeric feature in one split.

    `quantiles` are 21 numbers in 5 % steps. Without a value the numbers are null and there are no quantiles.
    """

    kind: Literal["numeric"]
    nulls: Count
    min: Number | None
    max: Number | None
    mean: Number | None
    stddev: Number | None
    quantiles: Annotated[tuple[Number, ...], Field(max_length=21)]


class ValueCount(Value):
    """A category and how often it was seen."""

    value: str
    count: Count


class CategoricalStatistics(Value):
    """Of one categorical feature in one split. `top` has at most 1000 values, most frequent first, then by value."""

    kind: Literal["categorical"]
    nulls: Count
    distinct: Count
    top: Annotated[tuple[ValueCount, ...], Field(max_length=1000)]


class ImageStatistics(Value):
    """Of one feature of images in one split: the sizes of the files. Without a value they are null."""

    kind: Literal["image"]
    nulls: Count
    min_bytes: Count | None
    max_bytes: Count | None
    mean_bytes: Number | None


FeatureStatistics = Annotated[NumericStatistics | CategoricalStatistics | ImageStatistics, Field(discriminator="kind")]


class OutsideLabels(Value):
    """Labels that are no class: how many, the least and the greatest (null: they are no numbers)."""

    rows: Annotated[int, Field(ge=1)]
    low: Number | None
    high: Number | None


class LabelStatistics(Value):
    """Mean of a binary label (null without a value), and missing values.

    With several classes `counts` has the rows of each, from class 0 on, and `outside` the labels that are none.
    """

    mean: Number | None
    nulls: Count
    counts: tuple[Count, ...] | None = None
    outside: OutsideLabels | None = None


class SplitStatistics(Value):
    """All features of one split."""

    rows: Count
    features: dict[str, FeatureStatistics]
    label: LabelStatistics


class KeyStatistics(Value):
    """Of the key column over the whole run table: a key that is missing or stands twice makes splits unsafe."""

    distinct: Count
    nulls: Count


class Statistics(Document):
    """One pass over the run table: for checks, normalisation, vocabularies, and the baseline of drift."""

    kind: Literal["statistics"] = "statistics"
    model: ModelId
    run_key: RunKey
    table: Text
    window: Window
    keys: KeyStatistics
    splits: AllSplits[SplitStatistics]


class Finding(Value):
    """What one check found, what it wanted, and a sentence for a human."""

    check: Text
    severity: Literal["block", "warn"]
    feature: str | None
    found: str
    expected: str
    words: Text


Check = Finding  # the word operators use


class Checks(Document):
    """The verdict on the data: passed when no finding blocks."""

    kind: Literal["checks"] = "checks"
    model: ModelId
    run_key: RunKey
    passed: bool
    findings: tuple[Finding, ...]


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


class GoldenWork(Value):
    """The frozen set: its own table, and whether the span store has it already."""

    table: Text
    fingerprint: Fingerprint
    rows: Count
    shards: Annotated[int, Field(ge=1)]
    action: Literal["export", "reuse"]
    because: Text


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
