"""What is known about the examples: their statistics, and the verdict of the checks."""

from __future__ import annotations

import itertools
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from retraining.core.documents.document import (
    Amount,
    Count,
    Day,
    Document,
    ModelId,
    Number,
    Positive,
    RunKey,
    Sha256,
    Share,
    Text,
    Uri,
    UtcTime,
    Value,
)
from retraining.core.documents.plan import Window
from retraining.core.documents.snapshot import AllSplits
from retraining.core.spec.features import is_empty


class UsualDistance(Value):
    """How far a day of a split is from its other days, less what chance makes of that.

    It is the monitor's distance: Jensen-Shannon of numbers, L-infinity of categories. Days of fewer rows than
    `monitoring.min_requests` do not count.
    """

    days: Count
    """That count; 0 of examples without a time, too."""
    distance: Share
    """The 99th percentile over those days, of which up to a tenth may be out of the ordinary; 0: there are none."""


class NumberHistogram(Value):
    """How many rows of a number lie between edges, which rise: below the first, between two each, from the last on.

    A bin has its lower edge and not its upper one. Edges lie closely below and above each quantile, so that a number
    which is frequent has a bin of its own; the first and the last one are around all numbers. Missing values are in no
    bin.
    """

    edges: Annotated[tuple[Number, ...], Field(min_length=1, max_length=64)]
    counts: Annotated[tuple[Count, ...], Field(min_length=2, max_length=65)]
    """One more than edges."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.counts) != len(self.edges) + 1:
            raise ValueError(f"{len(self.edges)} edges have {len(self.edges) + 1} bins, and {len(self.counts)} counts")
        if any(low >= high for low, high in itertools.pairwise(self.edges)):
            raise ValueError("edges rise: each is greater than the one before")
        return self


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
    histogram: Annotated[NumberHistogram | None, Field(exclude_if=lambda value: value is None)] = None
    """null: there is no value, or the statistics are of an earlier release."""
    usual: Annotated[UsualDistance | None, Field(exclude_if=lambda value: value is None)] = None
    """Of the training split; null there: the statistics are of an earlier release."""
    label_correlation: Annotated[Number | None, Field(exclude_if=lambda value: value is None)] = None
    """Pearson's, with the label as a number, where it is near 1 or -1 (0.999): the feature gives the label away."""
    label_auc: Annotated[Share | None, Field(exclude_if=lambda value: value is None)] = None
    """Of the feature alone as the score of a binary label, where it is 0.999 or more, or 0.001 or less."""
    label_association: Annotated[Share | None, Field(exclude_if=lambda value: value is None)] = None
    """Share of the variance of a regression's label, in ranks, that the feature alone explains, where it is 0.998 or
    more; of several classes the mean AUC of their pairs, where it is 0.999 or more."""
    row_number: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Whether the numbers are whole, nearly all different and nearly without gaps, as the rows' own numbers are."""


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
    tail: Annotated[tuple[Count, ...], Field(max_length=16384, exclude_if=lambda value: not value)] = ()
    """Rows of the values that are not in `top`, by the last bits of each value's hash (`FARM_FINGERPRINT`); as many
    counts as a power of two. Of the training split; empty: there are no such values, or it is of an earlier release."""
    usual: Annotated[UsualDistance | None, Field(exclude_if=lambda value: value is None)] = None
    """Of the training split; null there: the statistics are of an earlier release."""
    label_by_category: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Whether each category of `top` has one label in all its rows, and they have several: it gives the label away."""
    label_auc: Annotated[Share | None, Field(exclude_if=lambda value: value is None)] = None
    """Of each category's share of label 1 as the score of a binary label, where it is 0.999 or more."""
    label_association: Annotated[Share | None, Field(exclude_if=lambda value: value is None)] = None
    """Share of the variance of a regression's label that the categories explain, where it is 0.998 or more; of several
    classes the share of their entropy that the category takes away, where it is 0.98 or more."""


class UnreadableObjects(Value):
    """Addresses of images whose objects no training can read, and why: missing, elsewhere, too large, or their type.

    `examples` names the first, by key and address.
    """

    found: Text
    rows: Positive
    examples: Text


class ImageStatistics(Value):
    """Of one feature of images in one split: the sizes of the files. Without a value they are null.

    Where images are objects, `nulls` counts the `unreadable` ones too.
    """

    kind: Literal["image"]
    nulls: Count
    min_bytes: Count | None
    max_bytes: Count | None
    mean_bytes: Number | None
    unreadable: tuple[UnreadableObjects, ...] = ()


class SequenceStatistics(Value):
    """Of one feature of sequences in one split: lengths, and its elements. Missing is what has no element.

    Elements that are numbers have `mean` and `stddev`, categories `distinct` and `top` (at most 1000, as above).
    """

    kind: Literal["sequence"]
    nulls: Count
    min_length: Count | None
    max_length: Count | None
    mean_length: Number | None
    mean: Number | None
    stddev: Number | None
    distinct: Count
    top: Annotated[tuple[ValueCount, ...], Field(max_length=1000)]


class TimeStatistics(Value):
    """Times in days since 1970-01-01 00:00, in UTC or as they stand where they have no zone.

    Without a value the numbers are null.
    """

    kind: Literal["time"]
    nulls: Count
    min: Number | None
    max: Number | None
    mean: Number | None
    stddev: Number | None
    """Of the population."""


class TextStatistics(Value):
    """Of one feature of texts in one split: their lengths in characters. Without a value they are null."""

    kind: Literal["text"]
    nulls: Count
    min_length: Count | None
    max_length: Count | None
    mean_length: Number | None


class BagStatistics(Value):
    """Of one feature of bags in one split: the lengths of their texts in characters. Without a value they are null."""

    kind: Literal["bag"]
    nulls: Count
    min_length: Count | None
    max_length: Count | None
    mean_length: Number | None


FeatureStatistics = Annotated[
    NumericStatistics
    | CategoricalStatistics
    | ImageStatistics
    | SequenceStatistics
    | TextStatistics
    | TimeStatistics
    | BagStatistics,
    Field(discriminator="kind"),
]


class UnlistedText(Value):
    """A text of a label that its `classes` do not list, cut, and in how many rows of the window it stands."""

    text: str
    rows: Positive


class OutsideLabels(Value):
    """Labels that are none: how many, the least and the greatest (null: they are no finite numbers)."""

    rows: Positive
    low: Number | None
    high: Number | None
    texts: Annotated[tuple[UnlistedText, ...], Field(exclude_if=is_empty)] = ()
    """Of a label whose `classes` are texts: the most frequent of those that they do not list, in all splits."""


class LabelNumbers(Value):
    """The labels of a regression that are right; without one the numbers are null and there are no quantiles.

    `quantiles` are 21 numbers in 5 % steps. `trained_mean` and `trained_stddev` are of what training sees, after the
    label's transform.
    """

    min: Number | None
    max: Number | None
    mean: Number | None
    stddev: Number | None
    quantiles: Annotated[tuple[Number, ...], Field(max_length=21)]
    trained_mean: Number | None
    trained_stddev: Number | None


class LabelStatistics(Value):
    """Mean of a binary label (null without a value), and missing values.

    With several classes `counts` has the rows of each, from class 0 on; a regression has `numbers`. `outside` are the
    labels that are no class, or outside what the spec says.
    """

    mean: Number | None
    nulls: Count
    counts: tuple[Count, ...] | None = None
    outside: OutsideLabels | None = None
    numbers: LabelNumbers | None = None


class WeightStatistics(Value):
    """What examples count, in one split: missing weights, those below 0 or infinite, and the mean of the others."""

    nulls: Count
    outside: Count
    mean: Amount | None
    """null: there is none."""


class SplitStatistics(Value):
    """All features of one split, and the times of its first and last event (null without a row)."""

    rows: Count
    first_event: UtcTime | None = None
    last_event: UtcTime | None = None
    features: dict[str, FeatureStatistics]
    label: LabelStatistics
    auxiliary_labels: dict[str, LabelStatistics] = Field(default_factory=dict)
    """By name; of those that are there."""
    weight: WeightStatistics | None = None
    """null: all examples count the same."""


class KeyStatistics(Value):
    """Of the key column over the whole run table: a key that is missing or stands twice makes splits unsafe.

    `in_two_parts` keys stand in train and in validation, `also_tested` ones in the test days and before them.
    """

    distinct: Count
    nulls: Count
    in_two_parts: Count = 0
    also_tested: Count = 0


class DayLabels(Value):
    """The label of one day: missing values, labels that are none, and a share of the others (null: there are none).

    `rate` is the share of positive labels; with several classes that of the day's most frequent class. A regression has
    `mean` and `stddev` instead.
    """

    nulls: Count
    outside: Count
    rate: Share | None
    mean: Number | None = None
    stddev: Number | None = None


class DayFeature(Value):
    """Of a feature that has a limit, on one day: missing values, numbers outside its range, and the extremes found.

    The extremes are null for what is no number, without a value, and when they are infinite.
    """

    nulls: Count
    outside: Count = 0
    min: Number | None = None
    max: Number | None = None


class DayStatistics(Value):
    """One day of examples, all parts: what a check needs to say which day is bad."""

    span: Day
    rows: Positive
    last_event: UtcTime
    key_nulls: Count
    label: DayLabels
    features: dict[str, DayFeature] = Field(default_factory=dict)


class Statistics(Document):
    """What one pass over the run table gave, for checks, normalisation, vocabularies, and the baseline of drift.

    Per split and feature: nulls, range, quantiles, top values or file sizes; the label's mean, the rows of each class,
    or a number's range, mean, deviation and quantiles; per day what checks need.
    """

    written_by: ClassVar[str] = "check_data"
    read_by: ClassVar[str] = "train, `monitor__<model>`, later runs' check_data"
    kind: Literal["statistics"] = "statistics"
    model: ModelId
    run_key: RunKey
    table: Text
    window: Window
    keys: KeyStatistics
    splits: AllSplits[SplitStatistics]
    days: tuple[DayStatistics, ...] = ()
    """Every day that has examples."""
    quarantined: tuple[Day, ...] = ()
    """Days that are left out of everything but `days`."""
    fills: Annotated[dict[str, tuple[Share, ...]], Field(exclude_if=lambda value: not value)] = Field(
        default_factory=dict
    )
    """By feature that is missing somewhere: of each of the newest 60 days, the newest first, the share of rows with
    it."""


class Finding(Value):
    """What one check found, what it wanted, and a sentence for a human.

    `span` is the day it is about, if it is about one; `compared_with` are the documents of earlier runs it rests on.
    """

    check: Text
    severity: Literal["block", "warn", "quarantine"]
    feature: str | None
    span: Day | None = None
    found: str
    expected: str
    message: Text
    compared_with: tuple[Uri, ...] = ()


Check = Finding  # the word operators use


class Volume(Value):
    """How much a run had, for later runs to compare with: rows, and days from the first one with rows on.

    Both are without the quarantined days. `data_version` is the spec's `data.schema_version`, `sample_percent` the
    run's `data.sample_percent`.
    """

    rows: Count
    days: Count
    data_version: Positive
    sample_percent: Number = 100.0


class Compared(Value):
    """A document of an earlier run that the verdict rests on."""

    uri: Uri
    sha256: Sha256


class AssertionResult(Value):
    """What one of the model's own checks found over the run's data; each row that its query gives is one violation."""

    name: Text
    severity: Literal["block", "warn"]
    query: Text
    sha256: Sha256
    """Of the query's text."""
    rows: Count | None
    """null: BigQuery refused the query."""
    keys: Annotated[tuple[Text, ...], Field(max_length=5)] = ()
    """Of the first rows by key, where they have the examples' key."""
    bytes_processed: Count = 0
    not_asked: Text | None = None
    """Why BigQuery refused the query; null: it did not."""


class Repetition(Value):
    """The run that this one would repeat, and so says in a sentence."""

    run_key: RunKey
    message: Text


class Checks(Document):
    """What is wrong with the data ([checks](checks.md)), whether it blocks, and which days are left out.

    It names what the data were compared with.
    """

    written_by: ClassVar[str] = "check_data"
    read_by: ClassVar[str] = "export, later runs' check_data, `monitor__<model>`, people, report"
    kind: Literal["checks"] = "checks"
    model: ModelId
    run_key: RunKey
    passed: bool
    """No finding blocks."""
    findings: tuple[Finding, ...]
    quarantined: tuple[Day, ...] = ()
    """Days that are left out of the run."""
    volume: Volume | None = None
    compared_with: tuple[Compared, ...] = ()
    assertions: Annotated[tuple[AssertionResult, ...], Field(exclude_if=is_empty)] = ()
    """What the model's own checks found, in the file's order."""
    repeats: Annotated[Repetition | None, Field(exclude_if=lambda value: value is None)] = None
    """[What would come out the same](reliability.md#nothing-that-would-come-out-the-same) and ends the run before a job
    is paid; null: nothing."""
