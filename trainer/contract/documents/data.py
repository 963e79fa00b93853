"""The data's documents: what is exported, what the span store has, and the run's manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

Part = Literal["train", "validation"]
FilePart = Literal["train", "validation", "golden"]
Split = Literal["train", "validation", "test", "golden"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the query: BigQuery's type name (INTEGER, FLOAT, …) and mode (NULLABLE, REQUIRED, REPEATED)."""

    name: str
    type: str
    mode: str


@dataclass(frozen=True, kw_only=True)
class PartWork:
    """How many rows a part of a span has and over how many shards they are spread."""

    part: Part
    rows: int
    shards: int


@dataclass(frozen=True, kw_only=True)
class SpanWork:
    """One day of examples: what its content is (`fingerprint`) and whether it must be exported."""

    span: str
    fingerprint: str
    parts: tuple[PartWork, ...]
    action: Literal["export", "reuse"]
    because: str


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How examples lie in TFRecords: features packed into `_numeric` (none: each on its own), rows per Example."""

    numeric: tuple[str, ...] = ()
    rows_per_record: int = 1


@dataclass(frozen=True, kw_only=True)
class ImageColumn:
    """A BYTES column of PNG or JPEG that is stored resized: raw is uint8, row-major, height x width x channels."""

    name: str
    height: int
    width: int
    channels: Literal[1, 3]
    encoding: Literal["raw", "png", "jpeg"]


@dataclass(frozen=True, kw_only=True)
class GoldenWork:
    """The frozen set: its own table, and whether it must be exported."""

    table: str
    fingerprint: str
    rows: int
    shards: int
    action: Literal["export", "reuse"]
    because: str


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """What the export job writes; `only` leaves out the spans before `test_start`."""

    kind: ClassVar[str] = "export_request"
    model: str
    run_key: str
    table: str
    schema: tuple[Column, ...]
    schema_hash: str
    compression: Literal["GZIP", "NONE"]
    spans_uri: str
    spans: tuple[SpanWork, ...]
    test_start: str
    manifest_uri: str
    quarantined: tuple[str, ...] = ()
    format: Literal["tfrecord", "csv"] = "tfrecord"
    layout: Layout = Layout()
    images: tuple[ImageColumn, ...] = ()
    only: Literal["all", "test"] = "all"
    golden: GoldenWork | None = None


@dataclass(frozen=True, kw_only=True)
class SpanFile:
    """One shard in the span store."""

    part: FilePart
    shard: int
    file_name: str
    rows: int
    bytes: int
    crc32c: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Span:
    """`span.json`: all shards of one span; its presence means that the span is complete."""

    kind: ClassVar[str] = "span"
    span: str
    fingerprint: str
    schema_hash: str
    files: tuple[SpanFile, ...]


@dataclass(frozen=True, kw_only=True)
class ManifestFile:
    """One shard of a split."""

    uri: str
    span: str
    part: FilePart
    rows: int
    bytes: int
    crc32c: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ManifestSplit:
    """The shards of a split, oldest span first."""

    rows: int
    files: tuple[ManifestFile, ...]


@dataclass(frozen=True, kw_only=True)
class ManifestSpan:
    """Why a span was exported or reused."""

    span: str
    fingerprint: str
    rows: int
    action: Literal["export", "reuse"]
    because: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Every shard of every split of one run."""

    kind: ClassVar[str] = "manifest"
    model: str
    run_key: str
    schema_hash: str
    compression: Literal["GZIP", "NONE"]
    schema: tuple[Column, ...]
    table: str
    splits: Mapping[str, ManifestSplit]
    spans: tuple[ManifestSpan, ...]
    exported_rows: int
    exported_bytes: int
    seconds: float
    format: Literal["tfrecord", "csv"] = "tfrecord"
    layout: Layout = Layout()
    images: tuple[ImageColumn, ...] = ()
    quarantined: tuple[str, ...] = ()
