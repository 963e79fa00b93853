"""Documents of the evaluation: two models on the same rows, what was asked and what came of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.documents.document import (
    Count,
    Document,
    ModelId,
    Number,
    RunKey,
    Sha256,
    Text,
    Uri,
    UtcTime,
    Value,
)
from retraining.core.documents.export import ManifestFile
from retraining.core.documents.training import InstanceValue
from retraining.core.spec.evaluation import Metric
from retraining.core.spec.features import Feature, Label
from retraining.core.spec.training import LiteForm


class Challenger(Value):
    """The model of this run, and the report whose digest it must have (null: of a request of an earlier release)."""

    model_uri: Uri
    report_uri: Uri | None = None


class Champion(Value):
    """The version that serves: where it is, which run made it, and the time of its data."""

    model_uri: Uri
    version_name: Text
    version_id: Text
    run_key: RunKey
    as_of: UtcTime


class Bootstrap(Value):
    """How the interval of the difference is drawn: paired resamples of the test rows."""

    samples: Annotated[int, Field(ge=100)]
    seed: int
    confidence: Annotated[Number, Field(gt=0.5, lt=1)]


class LiteOrder(Value):
    """TF Lite models to be made of the challenger, and the folder that they go to."""

    forms: Annotated[tuple[LiteForm, ...], Field(min_length=1)]
    folder_uri: Uri


class EvaluateRequest(Document):
    """What the judge is asked: two models, the same shards.

    `golden` adds the frozen set. `prove_unseen` are the champion's training shards that the fingerprints of this run
    do not prove free of its test examples: the judge looks for their keys. `unproven` says what not even that proves;
    `trained_on_known` is False when the record of what the champion was trained on is gone.
    """

    kind: Literal["evaluate_request"] = "evaluate_request"
    model: ModelId
    run_key: RunKey
    manifest_uri: Uri
    split: Literal["test"]
    features: tuple[Feature, ...]
    label: Label
    key: Text
    challenger: Challenger
    champion: Champion | None
    champion_skipped: str | None
    golden: bool = False
    prove_unseen: tuple[ManifestFile, ...] = ()
    unproven: str | None = None
    trained_on_known: bool = True
    lite: LiteOrder | None = None
    slices: tuple[str, ...]
    min_slice_examples: Annotated[int, Field(ge=1)]
    metric: Metric
    bootstrap: Bootstrap
    evaluation_uri: Uri


class Shard(Value):
    """A file both models were scored on."""

    uri: Uri
    sha256: Sha256
    rows: Count


class Metrics(Value):
    """Quality over some rows. `auc` and `accuracy`: higher is better; `log_loss` and `brier`: lower is better.

    With several classes `auc` is the mean over classes of one against the rest, and `brier` the sum over classes: up
    to 2.
    """

    auc: Annotated[Number, Field(ge=0, le=1)] | None
    log_loss: Number
    accuracy: Annotated[Number, Field(ge=0, le=1)]
    brier: Annotated[Number, Field(ge=0, le=2)]


class Slice(Value):
    """Quality over the rows with one value in one column."""

    column: Text
    value: InstanceValue
    rows: Count
    metrics: Metrics


class Scores(Value):
    """Quality of one model, whole and per slice.

    `confusion` counts the rows by their class (first index) and the model's answer, for up to 100 classes.
    """

    metrics: Metrics
    slices: tuple[Slice, ...]
    confusion: tuple[tuple[Count, ...], ...] | None = None


class Baseline(Value):
    """Quality of always predicting the base rate, or the classes' shares."""

    log_loss: Number
    accuracy: Number


class Difference(Value):
    """Challenger minus champion in `metric`, its mean and interval over paired resamples."""

    metric: Metric
    mean: Number
    low: Number
    high: Number
    confidence: Number
    samples: Count


class GoldenScores(Value):
    """Quality on the frozen set, the same examples every night."""

    rows: Annotated[int, Field(ge=1)]
    shards: tuple[Shard, ...]
    challenger: Metrics
    champion: Metrics | None


class LiteArtifact(Value):
    """A TF Lite model of the challenger: how it was made, or why there is none; the rest is null then.

    `difference` is that of the request's metric, TF Lite minus full model; with `select_ops` an app must bring
    TensorFlow's own operations.
    """

    form: LiteForm
    words: Text
    uri: Uri | None
    bytes: Count | None
    sha256: Sha256 | None
    select_ops: bool | None
    metrics: Metrics | None
    difference: Number | None


class Evaluation(Document):
    """How challenger and champion did on the same rows.

    `label_rate` is of two classes; with several, `label_counts` has the rows of each. `champion_skipped` says why the
    request's champion could not be scored on these rows.
    """

    kind: Literal["evaluation"] = "evaluation"
    model: ModelId
    run_key: RunKey
    split: Literal["test"]
    rows: Annotated[int, Field(ge=1)]
    label_rate: Number | None
    label_counts: tuple[Count, ...] | None = None
    shards: tuple[Shard, ...]
    challenger: Scores
    champion: Scores | None
    champion_skipped: str | None = None
    baseline: Baseline
    difference: Difference | None
    golden: GoldenScores | None = None
    lite: tuple[LiteArtifact, ...] = ()
