"""The documents as frozen dataclasses, field by field as in `include/contracts`.

Shapes and units stand in the schemas; here are the types that the trainer's code is written against. `kind` is the
class variable that ties a class to its schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

Part = Literal["train", "validation"]
Split = Literal["train", "validation", "test"]
HyperparameterValue = float | int | str | bool | tuple[int, ...] | list[int]


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
class ExportRequest:
    """What the export job writes."""

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


@dataclass(frozen=True, kw_only=True)
class SpanFile:
    """One shard in the span store."""

    part: Part
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
    part: Part
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
    splits: Mapping[str, ManifestSplit]
    spans: tuple[ManifestSpan, ...]
    exported_rows: int
    exported_bytes: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A column that the model reads.

    `normalize` and `missing` are of numeric ones, `embedding_dim` and `max_vocabulary` of categorical ones.
    """

    name: str
    kind: Literal["numeric", "categorical"]
    normalize: bool = True
    missing: Literal["mean", "zero"] = "mean"
    embedding_dim: int | None = None
    max_vocabulary: int = 1000


@dataclass(frozen=True, kw_only=True)
class Label:
    """The column that the model learns to predict."""

    name: str
    kind: Literal["binary"]


@dataclass(frozen=True, kw_only=True)
class Training:
    """Architecture, length and hyperparameters of a training; `batch_size` is per replica."""

    model: str
    epochs: int
    batch_size: int
    hyperparameters: Mapping[str, HyperparameterValue]
    early_stopping_patience: int


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """What the training job trains, on what, and where it writes."""

    kind: ClassVar[str] = "train_request"
    model: str
    run_key: str
    manifest_uri: str
    statistics_uri: str
    features: tuple[Feature, ...]
    label: Label
    key: str
    training: Training
    seed: int
    model_uri: str
    report_uri: str
    checkpoint_uri: str
    tensorboard_uri: str


@dataclass(frozen=True, kw_only=True)
class Framework:
    """Versions that a training ran with."""

    python: str
    tensorflow: str
    tf_keras: str
    trainer: str


@dataclass(frozen=True, kw_only=True)
class Seconds:
    """Where a training's wall time went."""

    startup: float
    read: float
    train: float
    save: float
    total: float


@dataclass(frozen=True, kw_only=True)
class Signature:
    """dtype by name of the stored model's `serving_default`; every shape is [batch]."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Golden:
    """An example and what the stored model answers to it."""

    instance: Mapping[str, float | str]
    prediction: float


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a training job did."""

    kind: ClassVar[str] = "report"
    model: str
    run_key: str
    framework: Framework
    strategy: str
    hyperparameters: Mapping[str, HyperparameterValue]
    history: Mapping[str, tuple[float, ...]]
    best_epoch: int
    epochs_run: int
    resumed_from_epoch: int | None
    metrics: Mapping[str, float | None]
    train_rows: int
    validation_rows: int
    steps: int
    examples_per_second: float
    seconds: Seconds
    parameters: int
    model_uri: str
    model_digest: str
    signature: Signature
    golden: tuple[Golden, ...]


@dataclass(frozen=True, kw_only=True)
class Challenger:
    """The model of this run."""

    model_uri: str


@dataclass(frozen=True, kw_only=True)
class Champion:
    """The model in production."""

    model_uri: str
    version_name: str
    version_id: str
    run_key: str
    as_of: str


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """How the interval of the difference is drawn."""

    samples: int
    seed: int
    confidence: float


@dataclass(frozen=True, kw_only=True)
class EvaluateRequest:
    """Which models are judged, on which examples, by what."""

    kind: ClassVar[str] = "evaluate_request"
    model: str
    run_key: str
    manifest_uri: str
    split: Literal["test"]
    features: tuple[Feature, ...]
    label: Label
    key: str
    challenger: Challenger
    champion: Champion | None
    champion_skipped: str | None
    slices: tuple[str, ...]
    min_slice_examples: int
    metric: Literal["auc", "log_loss", "accuracy", "brier"]
    bootstrap: Bootstrap
    evaluation_uri: str


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Of one model on one set of examples; `auc` is None where only one class is present."""

    auc: float | None
    log_loss: float
    accuracy: float
    brier: float


@dataclass(frozen=True, kw_only=True)
class SliceMetrics:
    """Metrics of the examples with one value of one column."""

    column: str
    value: str
    rows: int
    metrics: Metrics


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What one model scored."""

    metrics: Metrics
    slices: tuple[SliceMetrics, ...]


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Of predicting the label rate for every example."""

    log_loss: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Challenger minus champion, with a two-sided interval."""

    metric: str
    mean: float
    low: float
    high: float
    confidence: float
    samples: int


@dataclass(frozen=True, kw_only=True)
class JudgedShard:
    """A shard that the models were judged on."""

    uri: str
    sha256: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What the judged models scored on the same examples."""

    kind: ClassVar[str] = "evaluation"
    model: str
    run_key: str
    split: str
    rows: int
    label_rate: float
    shards: tuple[JudgedShard, ...]
    challenger: Judged
    champion: Judged | None
    baseline: Baseline
    difference: Difference | None
