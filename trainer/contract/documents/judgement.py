"""The duel's documents: its request and what the judged models scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trainer.contract.documents.data import ManifestFile
from trainer.contract.documents.training import Feature, Label


@dataclass(frozen=True, kw_only=True)
class Challenger:
    """The model of this run, and the report whose digest it must have."""

    model_uri: str
    report_uri: str | None = None


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
class LiteOrder:
    """TF Lite models to be made of the challenger, and the folder that they go to."""

    forms: tuple[Literal["float16", "int8"], ...]
    folder_uri: str


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
    golden: bool = False
    prove_unseen: tuple[ManifestFile, ...] = ()
    unproven: str | None = None
    trained_on_known: bool = True
    lite: LiteOrder | None = None


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Of one model on one set of examples; `auc` is None where only one class is present.

    With several classes `auc` is the mean over classes of one against the rest, and `brier` the sum over classes.
    """

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
    """What one model scored. `confusion` counts examples by class (rows) and answer, where there are several."""

    metrics: Metrics
    slices: tuple[SliceMetrics, ...]
    confusion: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Of predicting the label rate, or the classes' shares, for every example."""

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
class GoldenScores:
    """Quality on the frozen set, the same examples every night."""

    rows: int
    shards: tuple[JudgedShard, ...]
    challenger: Metrics
    champion: Metrics | None


@dataclass(frozen=True, kw_only=True)
class LiteArtifact:
    """A TF Lite model of the challenger: how it was made, or why there is none; what follows is None then.

    `difference` is that of the request's metric, TF Lite minus full model; with `select_ops` an app must bring
    TensorFlow's own operations.
    """

    form: Literal["float16", "int8"]
    words: str
    uri: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    select_ops: bool | None = None
    metrics: Metrics | None = None
    difference: float | None = None


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What the judged models scored on the same examples.

    `label_rate` is of two classes; with several, `label_counts` has the examples of each. `champion_skipped` says why
    the request's champion could not be scored on these examples.
    """

    kind: ClassVar[str] = "evaluation"
    model: str
    run_key: str
    split: str
    rows: int
    label_rate: float | None
    shards: tuple[JudgedShard, ...]
    challenger: Judged
    champion: Judged | None
    baseline: Baseline
    difference: Difference | None
    golden: GoldenScores | None = None
    label_counts: tuple[int, ...] | None = None
    champion_skipped: str | None = None
    lite: tuple[LiteArtifact, ...] = ()
