"""Documents of the evaluation: two models on the same rows, what was asked and what came of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.documents.document import (
    Address,
    Amount,
    Count,
    Document,
    ModelId,
    Number,
    Positive,
    RunKey,
    Sha256,
    Share,
    Text,
    UtcTime,
    Value,
)
from retraining.core.documents.export import DistinctTexts, ManifestFile
from retraining.core.documents.training import InstanceValue, Seed
from retraining.core.spec.evaluation import Metric
from retraining.core.spec.features import Feature, Label
from retraining.core.spec.training import LiteForm

Confidence = Annotated[float, Field(allow_inf_nan=False, gt=0.5, lt=1)]


class Challenger(Value):
    """The model of this run."""

    model_uri: Address
    report_uri: Address | None = None
    """Report of the training: a model of another digest is refused. null: of a request of an earlier release."""


class Champion(Value):
    """The version that serves: where it is, which run made it, and the time of its data."""

    model_uri: Address
    version_name: Text
    version_id: Text
    run_key: RunKey
    as_of: UtcTime


class Bootstrap(Value):
    """How the interval of the difference is drawn: paired resamples of the test rows."""

    samples: Annotated[int, Field(ge=100, le=10_000)]
    seed: Seed
    confidence: Confidence


class LiteRequest(Value):
    """TF Lite models to be made of the challenger, and the folder that they go to."""

    forms: Annotated[tuple[LiteForm, ...], Field(min_length=1)]
    folder_uri: Address


class EvaluateRequest(Document):
    """What the judge is asked: two models, the same shards."""

    kind: Literal["evaluate_request"] = "evaluate_request"
    model: ModelId
    run_key: RunKey
    manifest_uri: Address
    split: Literal["test"]
    features: Annotated[tuple[Feature, ...], Field(min_length=1)]
    label: Label
    key: Text
    challenger: Challenger
    champion: Champion | None
    """null: there is none to compare with."""
    champion_skipped: Text | None
    """Why an existing champion is not compared with."""
    golden: bool = False
    """Also score the frozen set."""
    prove_unseen: tuple[ManifestFile, ...] = ()
    """The champion's training shards that this run's fingerprints do not prove free of its test examples.

    The judge looks for their keys.
    """
    unproven: str | None = None
    """Why not even those shards prove that the champion has not seen the test examples; null: they do."""
    trained_on_known: bool = True
    """Whether the record of what the champion was trained on is there."""
    lite: LiteRequest | None = None
    """TF Lite models to be made of the challenger; null: none."""
    slices: DistinctTexts
    """Columns by whose values the metrics are also given."""
    min_slice_examples: Positive
    metric: Metric
    bootstrap: Bootstrap
    evaluation_uri: Address


class Shard(Value):
    """A file both models were scored on."""

    uri: Address
    sha256: Sha256
    rows: Count


class Metrics(Value):
    """Quality over some rows. `auc` and `accuracy`: higher is better; `log_loss` and `brier`: lower is better."""

    auc: Share | None
    """Area under the ROC curve, exact; null where only one class is present.

    With several classes the mean over classes of one against the rest.
    """
    log_loss: Amount
    accuracy: Share
    """Of the most likely class; with two classes at threshold 0.5."""
    brier: Annotated[float, Field(allow_inf_nan=False, ge=0, le=2)]
    """Mean squared error of the score; with several classes summed over them, so up to 2."""


class Slice(Value):
    """Quality over the rows with one value in one column."""

    column: Text
    value: InstanceValue
    """As text; empty: missing."""
    rows: Positive
    metrics: Metrics


class Scores(Value):
    """Quality of one model, whole and per slice."""

    metrics: Metrics
    slices: tuple[Slice, ...]
    confusion: tuple[tuple[Count, ...], ...] | None = None
    """Rows by class (outer) and most likely class (inner); null: the label is binary, or has over 100 classes."""


class Baseline(Value):
    """Quality of always predicting the base rate, or the classes' shares."""

    log_loss: Amount
    accuracy: Share


class Difference(Value):
    """Challenger minus champion in `metric` (of `log_loss` negative is a gain), and its interval.

    The interval is the two-sided one over paired resamples.
    """

    metric: Metric
    mean: Number
    low: Number
    high: Number
    confidence: Number
    samples: Count


class GoldenScores(Value):
    """Quality on the frozen set, the same examples every night."""

    rows: Positive
    shards: Annotated[tuple[Shard, ...], Field(min_length=1)]
    challenger: Metrics
    champion: Metrics | None


class LiteArtifact(Value):
    """A TF Lite model of the challenger."""

    form: LiteForm
    words: Text
    """How it was made, or why there is none: the rest is null then."""
    uri: Address | None = None
    bytes: Count | None = None
    sha256: Sha256 | None = None
    vocabulary_uri: Address | None = None
    """Ids of its categories, by text; null: it has none."""
    select_ops: bool | None = None
    """Of earlier releases: whether an app must bring TensorFlow's own operations; null: it need not."""
    metrics: Metrics | None = None
    difference: Number | None = None
    """In the request's metric, TF Lite minus full model."""


class Evaluation(Document):
    """How challenger and champion did on the same rows."""

    kind: Literal["evaluation"] = "evaluation"
    model: ModelId
    run_key: RunKey
    split: Literal["test"]
    rows: Positive
    label_rate: Share | None
    """Share of positive labels; null: the label has several classes."""
    label_counts: Annotated[tuple[Count, ...], Field(min_length=2)] | None = None
    """Rows of each class; null: the label is binary."""
    shards: Annotated[tuple[Shard, ...], Field(min_length=1)]
    challenger: Scores
    champion: Scores | None
    champion_skipped: str | None = None
    """Why the request's champion was not scored; null: it was, or there is none.

    It cannot read these examples, or answers another question.
    """
    baseline: Baseline
    difference: Difference | None
    """null: no champion."""
    golden: GoldenScores | None = None
    """null: there is no frozen set."""
    lite: tuple[LiteArtifact, ...] = ()
    """TF Lite models of the challenger on the same examples."""
