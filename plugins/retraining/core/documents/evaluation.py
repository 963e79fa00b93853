"""Documents of the evaluation: two models on the same rows, what was asked, what came of it, and the verdict."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from retraining.core.documents.answers import (
    AnswerCounts,
    Answers,
    Confidence,
    Curves,
    Serving,
    ThresholdRule,
    ThresholdScores,
    WorstExample,
)
from retraining.core.documents.document import (
    Address,
    Amount,
    Count,
    Document,
    ModelId,
    Number,
    Positive,
    RequestDocument,
    ResultDocument,
    RunKey,
    Sha256,
    Share,
    Text,
    UtcTime,
    Value,
)
from retraining.core.documents.export import DistinctTexts, ManifestFile
from retraining.core.documents.training import InstanceValue, Seed, Signature
from retraining.core.metrics import Metric, NumberMetrics, Quality
from retraining.core.spec.features import Feature, Label
from retraining.core.spec.packages import Package
from retraining.core.spec.training import LiteForm

LEAST_ROWS = 20
LEAST_GROUPS = 5
"""From which on simulated intervals err no more often than they say (docs/evaluation.md)."""
LEAST_DAYS = 14
"""Test days from which on rows are drawn by day."""


class Challenger(Value):
    """The model of this run."""

    model_uri: Address
    report_uri: Address | None = None
    """Report of the training: a model of another digest is refused. null: of a request of an earlier release."""
    scores_uri: Address | None = None
    """Document `scores` that the model's own trainer writes; null: the judge scores the model."""
    signature: Signature | None = None
    """By its training report; null: not known."""
    model_digest: Sha256 | None = None
    """By its training report, proven before the model is loaded; null: not known."""


class Champion(Value):
    """The version that serves: where it is, which run made it, and the time of its data."""

    model_uri: Address
    version_name: Text
    version_id: Text
    run_key: RunKey
    as_of: UtcTime
    scores_uri: Address | None = None
    """As the challenger's."""
    signature: Signature | None = None
    """As the challenger's."""
    model_digest: Sha256 | None = None
    """As the challenger's."""


class Initial(Value):
    """The version whose weights the challenger began with, or that it is, where the judge does not meet it."""

    version_id: Text
    run_key: RunKey
    prove_unseen: tuple[ManifestFile, ...]
    """Its training shards in which the judge looks for keys of this run's test examples."""


class Bootstrap(Value):
    """How the interval of the difference is drawn: paired resamples of the test rows."""

    samples: Annotated[int, Field(ge=100, le=10_000)]
    seed: Seed
    confidence: Confidence
    min_rows: Annotated[int, Field(ge=2, exclude_if=lambda value: value == LEAST_ROWS)] = LEAST_ROWS
    """Effective rows of each class, of a number effective rows, below which nothing is judged."""
    min_groups: Annotated[int, Field(ge=2, exclude_if=lambda value: value == LEAST_GROUPS)] = LEAST_GROUPS
    """Effective groups, or days, below which nothing is judged, where rows are drawn by these."""
    min_days: Annotated[int, Field(ge=2, exclude_if=lambda value: value == LEAST_DAYS)] = LEAST_DAYS
    """Test days below which rows are not drawn by day."""


class ImportanceRequest(Value):
    """Within what it is measured which features the models rely on: test rows, repeats, and time."""

    rows: Annotated[int, Field(ge=20, le=100_000)]
    """At most so many test rows take values of other rows."""
    repeats: Annotated[int, Field(ge=1, le=20)]
    """How often each feature's values change rows."""
    seconds: Positive
    """For all features together: what is not measured by then is left out, and the evaluation says so."""
    ends_after: Positive
    """Seconds of the job's process from which on nothing more is measured: the job's time limit must not be met."""
    seed: Seed
    """Of which rows are drawn, and from which rows values come."""


class LiteRequest(Value):
    """TF Lite models to be made of the challenger, and the folder that they go to."""

    forms: Annotated[tuple[LiteForm, ...], Field(min_length=1)]
    folder_uri: Address


class ReferenceRequest(Value):
    """Within what reference lines are trained: a linear model and small boosted trees of the training shards."""

    rows: Positive
    """At most so many training rows."""
    seconds: Positive
    """For all lines together: one that takes longer is not judged."""
    seed: Seed
    """Of which files are read where there are more rows, and of what trees are held against."""


class EvaluateRequest(RequestDocument):
    """What the judge is asked: the same shards for the challenger and the champion, or why it meets no champion."""

    written_by: ClassVar[str] = "evaluate"
    read_by: ClassVar[str] = "evaluation job, decide"
    kind: Literal["evaluate_request"] = "evaluate_request"
    model: ModelId
    run_key: RunKey
    manifest_uri: Address
    split: Literal["test"]
    features: Annotated[tuple[Feature, ...], Field(min_length=1)]
    label: Label
    auxiliary_labels: tuple[Label, ...] = ()
    """Measured beside the label, for information; they may be NULL."""
    key: Text
    key_input: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Whether the challenger takes the key as an input, and gives it back."""
    weight: Text | None = None
    """Column that says how much an example counts; null: all count the same."""
    challenger: Challenger
    champion: Champion | None
    """null: there is none to compare with."""
    champion_skipped: Text | None
    """Why an existing champion is not compared with."""
    judge_best: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Whether the loss against the best champion of late is bounded too; false: of an earlier release."""
    best: Annotated[Champion | None, Field(exclude_if=lambda value: value is None)] = None
    """The best champion of late; null: the champion is it, or it cannot be asked."""
    best_skipped: Annotated[Text | None, Field(exclude_if=lambda value: value is None)] = None
    """Why the best champion of late cannot be asked."""
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
    initial: Annotated[Initial | None, Field(exclude_if=lambda value: value is None)] = None
    """Whose examples the challenger has seen by its first weights; null: none, or the champion's."""
    lite: LiteRequest | None = None
    """TF Lite models to be made of the challenger; null: none."""
    packages: tuple[Package, ...] = ()
    """Installed and imported before the models are loaded, where a model has operations of theirs."""
    slices: DistinctTexts
    """Columns by whose values the metrics are also given."""
    crossed_slices: tuple[Annotated[tuple[Text, ...], Field(min_length=2, max_length=2)], ...] = ()
    """Pairs of columns by whose values together they are given too."""
    group: Text | None = None
    """Column whose rows with one value are resampled together; null: each row by itself."""
    by_day: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Whether the rows of a day are resampled together, where there is no `group`; false: of an earlier release."""
    min_slice_examples: Positive
    metric: Metric
    threshold: ThresholdRule | None = None
    """Of a binary label; null: answers are measured as scores alone."""
    baselines: dict[Text, Text] = Field(default_factory=dict)
    """Columns whose values a regression is held against, by name."""
    bootstrap: Bootstrap
    scores_uri: Address | None = None
    """Folder in which the judge leaves the scores of models that it scores; null: of an earlier release, nowhere."""
    evaluation_uri: Address
    importance: Annotated[ImportanceRequest | None, Field(exclude_if=lambda value: value is None)] = None
    """Measure which features the models rely on; null: do not, or of an earlier release."""
    show_rows: bool = False
    """Also give the features' values of the examples that the challenger errs on most."""
    reference: Annotated[ReferenceRequest | None, Field(exclude_if=lambda value: value is None)] = None
    """Hold the challenger against reference lines; null: against none, or of an earlier release."""
    metrics_by_day: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Also give the metrics of each test day."""

    @property
    def needs_validation(self) -> bool:
        """Whether the threshold is chosen on the validation split."""
        return self.threshold is not None and self.threshold.rule != "number"


class Shard(Value):
    """A file both models were scored on."""

    uri: Address
    sha256: Sha256
    rows: Count


DrawnBy = Literal["rows", "groups", "days"]


class Slice(Value):
    """Quality over the rows with one value in one column, or in two."""

    column: Text
    """Two are named with ` & ` between them, and their values too."""
    value: InstanceValue
    """As text; empty: missing."""
    rows: Positive
    metrics: Quality


class AuxiliaryScores(Value):
    """Quality of an auxiliary label's output, over the rows that have the label."""

    rows: Positive
    metrics: Quality
    counted: AnswerCounts | None = None
    """The answers to all rows, with the label or without; null: of an earlier release."""


class Scores(Value):
    """Quality of one model, whole and per slice."""

    metrics: Quality
    slices: tuple[Slice, ...]
    confusion: tuple[tuple[Count, ...], ...] | None = None
    """Rows by class (outer) and most likely class (inner); null: the label has not several classes, or over 100."""
    answers: Answers | None = None
    """null: the label is no number."""
    curves: Curves | None = None
    """null: the label is a number; or of an earlier release."""
    counted: AnswerCounts | None = None
    """null: of an earlier release."""
    auxiliary: dict[Text, AuxiliaryScores] = Field(default_factory=dict)
    """By the name of the auxiliary label, of those that the model answers: for information, they decide nothing."""
    by_day: Annotated[tuple[Slice, ...], Field(exclude_if=lambda value: not value)] = ()
    """Of each test day with rows, as the column `day`, where the request asks for `metrics_by_day`; the first first."""


class Baseline(Value):
    """Quality of always predicting the base rate, or the classes' shares."""

    log_loss: Amount
    accuracy: Share


class NumberBaseline(Value):
    """Quality of an answer that needs no model, and of the challenger on the same rows.

    `mean` and `median` are those of the test labels themselves; the others are columns, over rows that have a value.
    """

    name: Text
    column: Text | None
    rows: Positive
    metrics: NumberMetrics
    challenger: NumberMetrics


class Evidence(Value):
    """What a measurement rests on: of the kinds of independent units that it needs the scarcest.

    Below what is needed it is not judged. An interval is as much wider as Student's distribution is than the normal
    one, with one degree of freedom less than the effective number.
    """

    units: Text
    """As `positives`, or `groups with positives`."""
    count: Count
    effective: Amount
    """How many equal ones say as much: the sum of their weights, squared, by the sum of the squares (Kish 1965)."""
    needed: Positive


class Difference(Value):
    """Challenger minus champion in `metric` (of `log_loss` or `mae` negative is a gain), and its interval.

    The interval is the two-sided one over paired resamples, of few independent units wider (`Evidence`).
    """

    metric: Metric
    mean: Number
    low: Number
    high: Number
    confidence: Number
    samples: Count
    deviation: Amount | None = None
    """Standard error, by the resamples; null: of an earlier release."""


class SliceDifference(Value):
    """The difference over the rows with one value in one column, in the metric that decides."""

    column: Text
    value: InstanceValue
    rows: Positive
    difference: Difference | None
    """null: the rows say too little, or the metric is not defined on them."""
    evidence: Evidence | None = None
    """What the difference rests on; null: of an earlier release."""


class ReferenceLine(Value):
    """A model that the judge trained in a minute: a good challenger beats it.

    The intervals of all lines together have the confidence of the request's: those of two are each as much wider
    (Bonferroni).
    """

    name: Literal["linear", "trees"]
    rows: Count
    """Training rows that it was fitted on; 0: none."""
    features: Count
    """Features that it reads: numbers and categories, the first ones of the model's file."""
    metrics: Quality | None = None
    """On the test rows; null: there is no line."""
    difference: Difference | None = None
    """Challenger minus line in the metric that decides; null: no line, or too little evidence."""
    evidence: Evidence | None = None
    """What the difference rests on; null: there is no line."""
    not_judged: Text | None = None
    """Why there is no line; null: there is one."""


class GoldenScores(Value):
    """Quality on the frozen set, the same examples every night."""

    rows: Positive
    shards: Annotated[tuple[Shard, ...], Field(min_length=1)]
    challenger: Quality
    champion: Quality | None
    best: Annotated[Quality | None, Field(exclude_if=lambda value: value is None)] = None
    """null: the champion is the best of late, or that one was not scored."""
    difference: Annotated[Difference | None, Field(exclude_if=lambda value: value is None)] = None
    """Challenger minus the best champion of late, in the metric that decides; null: too little, or not asked for."""
    evidence: Annotated[Evidence | None, Field(exclude_if=lambda value: value is None)] = None
    """What that difference rests on."""


class Rise(Value):
    """By how much a loss rises, mean over the rows, with its interval."""

    mean: Number
    low: Number
    high: Number


class FeatureImportance(Value):
    """How much the loss rises when a feature's values come from other rows: a model that ignores it has 0."""

    feature: Text
    challenger: Rise | None = None
    """null: it does not read the feature, or it is not judged."""
    champion: Rise | None = None
    """null: there is none, it does not read the feature, or it is not judged."""
    change: Rise | None = None
    """Challenger's minus champion's, by the same rows and values; null: one of them is."""
    not_judged: Text | None = None
    """Why not; null: it is judged."""


class Importance(Value):
    """Which features the models rely on, by permutation, the challenger's most important one first.

    The intervals hold at the request's confidence, each by itself, over rows like these.
    """

    loss: Literal["log_loss", "mae"]
    """Of a label with classes log loss, of a number the absolute error, of quantiles that of the median."""
    rows: Count
    """Test rows that took values of others; 0: it is not judged."""
    repeats: Count
    """How often each feature's values changed rows; 0: it is not judged."""
    confidence: Confidence
    drawn_by: DrawnBy = "rows"
    """What the intervals take as independent."""
    evidence: Evidence | None = None
    """What the intervals rest on; null: no rows were drawn."""
    features: tuple[FeatureImportance, ...] = ()
    """Empty: it is not judged."""
    not_judged: Text | None = None
    """What is not, and why, as that the time was over; null: all is, or the evidence is too little."""


class LiteArtifact(Value):
    """A TF Lite model of the challenger."""

    form: LiteForm
    message: Text
    """How it was made, or why there is none: the rest is null then."""
    uri: Address | None = None
    bytes: Count | None = None
    sha256: Sha256 | None = None
    vocabulary_uri: Address | None = None
    """Ids of its categories, by text; null: it has none."""
    select_ops: bool | None = None
    """Of earlier releases: whether an app must bring TensorFlow's own operations; null: it need not."""
    metrics: Quality | None = None
    difference: Number | None = None
    """In the request's metric, TF Lite minus full model."""


class Evaluation(ResultDocument):
    """How challenger and champion did on the same files, or why the champion could not be scored.

    Metrics of both as a whole, by slice and class by class, of numbers residuals and baselines; curves; the keys of
    the largest errors; the difference and its interval; both on the frozen set; TF Lite models, where the spec asks for
    some.
    """

    written_by: ClassVar[str] = "evaluation job"
    read_by: ClassVar[str] = "decide, report"
    kind: Literal["evaluation"] = "evaluation"
    model: ModelId
    run_key: RunKey
    split: Literal["test"]
    rows: Positive
    label_rate: Share | None
    """Share of positive labels, by weight where examples have one; null: the label is not binary."""
    label_counts: Annotated[tuple[Count, ...], Field(min_length=2)] | None = None
    """Rows of each class; null: the label has not several classes."""
    label_weights: Annotated[tuple[Amount, ...], Field(min_length=2)] | None = None
    """Weight of each class; null: the label has not several classes, or all examples count the same."""
    shards: Annotated[tuple[Shard, ...], Field(min_length=1)]
    challenger: Scores
    champion: Scores | None
    champion_skipped: str | None = None
    """Why the request's champion was not scored; null: it was, or there is none.

    It cannot read these examples, or answers another question.
    """
    best: Annotated[Quality | None, Field(exclude_if=lambda value: value is None)] = None
    """Of the best champion of late; null: the champion is it, or it was not scored."""
    best_skipped: Annotated[str | None, Field(exclude_if=lambda value: value is None)] = None
    """Why the request's best champion of late was not scored."""
    best_difference: Annotated[Difference | None, Field(exclude_if=lambda value: value is None)] = None
    """Challenger minus the best champion of late, in the metric that decides; null: it was not scored, or too little
    evidence."""
    best_evidence: Annotated[Evidence | None, Field(exclude_if=lambda value: value is None)] = None
    """What that difference rests on."""
    baseline: Baseline | None
    """null: the label is a number."""
    baselines: tuple[NumberBaseline, ...] = ()
    """Of a number."""
    evidence: Evidence | None = None
    """What the challenger's own metrics rest on, whatever the groups; null: of an earlier release."""
    difference: Difference | None
    """In the metric that decides; null: no champion, or too little evidence."""
    difference_evidence: Evidence | None = None
    """What the difference rests on; null: no champion, or of an earlier release."""
    drawn_by: Annotated[DrawnBy | None, Field(exclude_if=lambda value: value is None)] = None
    """What is resampled together; null: no champion, or of an earlier release."""
    day_differences: Annotated[tuple[SliceDifference, ...], Field(exclude_if=lambda value: not value)] = ()
    """Of each test day, the first ones first, in the metric that decides; the column is `day`. Empty: no champion, rows
    that have no day, or of an earlier release."""
    differences: tuple[Difference, ...] = ()
    """In every metric that can be judged; none of an AUC over many classes that does not decide."""
    slice_differences: tuple[SliceDifference, ...] = ()
    """Of every slice that is large enough; empty also in an evaluation of an earlier release."""
    threshold: ThresholdScores | None = None
    """null: the request has no rule."""
    reference: Annotated[tuple[ReferenceLine, ...], Field(max_length=2, exclude_if=lambda value: not value)] = ()
    """Models that were trained here; empty: none was asked for, or of an earlier release."""
    golden: GoldenScores | None = None
    """null: there is no frozen set."""
    lite: tuple[LiteArtifact, ...] = ()
    """TF Lite models of the challenger on the same examples."""
    serving: Serving | None = None
    """The challenger as serving loads it; null: of an earlier release."""
    worst: Annotated[tuple[WorstExample, ...], Field(max_length=20)] = ()
    """The examples with the challenger's largest losses, the worst first; empty: of an earlier release."""
    importance: Annotated[Importance | None, Field(exclude_if=lambda value: value is None)] = None
    """Which features the models rely on; null: it was not asked for, or of an earlier release."""


GateName = Literal[
    "floor",
    "gain",
    "best",
    "slices",
    "examples",
    "newer_champion",
    "unseen",
    "signature",
    "serving",
    "reference",
    "mode",
]
OWN_GATE = "own."
"""How gates of the team's own are called before their name: no later gate of ours has it."""
OwnGateName = Annotated[str, StringConstraints(pattern=r"^own\.[a-z][a-z0-9_]{0,60}$")]
Verdict = Literal["promote", "reject", "record"]


class Gate(Value):
    """One condition for promotion."""

    gate: GateName | OwnGateName
    passed: bool
    found: str
    expected: str
    message: Text
    code: Annotated[Sha256 | None, Field(exclude_if=lambda value: value is None)] = None
    """SHA-256 of the source file of a gate of the team's own; null: it is none."""
    warns: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Whether it would not have passed, and is only a warning."""


class DecisionChampion(Value):
    """The champion the challenger was held against."""

    version_id: Text
    run_key: RunKey
    as_of: UtcTime


class Decision(Document):
    """The verdict (promote, reject or record), each gate, one sentence for people, and the digests of its inputs."""

    written_by: ClassVar[str] = "decide"
    read_by: ClassVar[str] = "register, approve, deploy, report"
    kind: Literal["decision"] = "decision"
    model: ModelId
    run_key: RunKey
    as_of: UtcTime
    mode: Literal["live", "backfill"]
    verdict: Verdict
    gates: tuple[Gate, ...]
    message: Text
    champion: DecisionChampion | None
    inputs: dict[Literal["plan", "evaluation", "evaluate_request"], Sha256]
