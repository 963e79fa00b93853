"""What a model answered: to a split's examples (counts, curves, from a threshold on), and when it is served."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.documents.document import Amount, Count, Number, Positive, Share, Text, Value


class Histogram(Value):
    """Rows between two edges each: one count fewer than edges. The first and the last count hold all beyond, too."""

    edges: Annotated[tuple[Number, ...], Field(min_length=2)]
    counts: Annotated[tuple[Count, ...], Field(min_length=1)]


class AnsweredBin(Value):
    """Rows with answers of about one size: mean answer, mean and 10 % and 90 % quantiles of labels, mean errors."""

    rows: Positive
    answer: Number
    label: Number
    low: Number
    high: Number
    absolute_error: Amount | None = None
    squared_error: Amount | None = None


class Answers(Value):
    """What a regression answers, and how far that is from the labels. Of quantiles it is the median."""

    quantiles: Annotated[tuple[Number, ...], Field(min_length=21, max_length=21)]
    """Of the answers, in 5 % steps."""
    residuals: Histogram
    """Of label minus answer."""
    bins: Annotated[tuple[AnsweredBin, ...], Field(min_length=1)]
    """The rows by answer, from the lowest on, in parts of about the same size."""


CountsByDay = Annotated[tuple[tuple[Count, ...], ...], Field(max_length=90)]


class AnswerCounts(Value):
    """Rows by answer, which the monitor holds requests against; each row counts once, whatever its weight.

    Numbers fall between rising `edges`: the first count is of those below all, bin i begins at edge i. Without edges
    the counts are those of the likeliest class.
    """

    edges: tuple[Number, ...] = ()
    """Between neighbouring answers in 5 % steps, and around all of them."""
    counts: Annotated[tuple[Count, ...], Field(min_length=1)]
    by_day: Annotated[CountsByDay | None, Field(exclude_if=lambda value: value is None)] = None
    """The counts of each of the newest test days, the first one first; empty: examples without a time, or over 100
    classes; null: of an earlier release, or not the challenger's."""


Confidence = Annotated[float, Field(allow_inf_nan=False, gt=0.5, lt=1)]


class ThresholdRule(Value):
    """From which score on a binary answer is a yes: a number, or how it is chosen on the validation split.

    `recall`: of the thresholds with at least that recall the one with the best precision; `precision` the other way
    round. `costs`: the least cost of wrong answers. Of thresholds that are equally good the highest is taken.
    """

    rule: Literal["number", "recall", "precision", "max_f1", "costs"]
    at: Annotated[float, Field(allow_inf_nan=False, gt=0, le=1)] | None = None
    """The number, or the least recall or precision; null: of another rule."""
    false_positive: Amount | None = None
    """Of `costs`: what a wrong yes costs."""
    false_negative: Amount | None = None
    """Of `costs`: what a missed yes costs."""


class Estimate(Value):
    """A share over the test rows, and its interval over resamples of them."""

    value: Share
    low: Share
    high: Share


class AtThreshold(Value):
    """One model's answers over the test rows as yes or no: a score from the threshold on is a yes."""

    precision: Estimate | None
    """null: no answer is yes."""
    recall: Estimate | None
    """null: no label is 1."""
    f1: Estimate | None
    """null: neither is."""
    true_positives: Amount
    """Rows, as the three below."""
    false_positives: Amount
    false_negatives: Amount
    true_negatives: Amount


class ThresholdScores(Value):
    """Both models at one threshold: whoever acts on answers has one, whichever model gives them."""

    threshold: Amount | None
    """Chosen by the challenger's answers to the validation split, unless it was given; null: none obeys the rule."""
    message: Text
    """By what rule, and what it reached there."""
    confidence: Confidence
    """Of the intervals."""
    challenger: AtThreshold | None
    """null: there is no threshold."""
    champion: AtThreshold | None
    """null: there is no threshold, or no champion."""


class ServedAnswers(Value):
    """Answers to the first test rows, held against the scores that the comparison is made of."""

    rows: Positive
    batch: Positive
    """Rows in one request; where there are fewer of them, they are repeated."""
    not_finite: Count
    """Rows without a finite answer."""
    max_error: Amount | None
    """Largest distance of the others; of a regression in proportion to the largest score. null: there are none."""
    key: str
    """Of the row that is farthest off, or the first without a finite answer."""


class Latency(Value):
    """Milliseconds of requests of one row inside the job: without network, on the job's machine."""

    p50_ms: Amount
    p99_ms: Amount


class Serving(Value):
    """What came of loading the challenger afresh from storage, and asking it as an endpoint does."""

    skipped: Text | None = None
    """Why nothing was looked at; null: it was."""
    problem: Text | None = None
    """Why it could not be loaded or asked; what follows that is missing."""
    signature: tuple[Text, ...] = ()
    """How its serving signature differs from what features and labels ask for; it is asked nothing then."""
    single: ServedAnswers | None = None
    """To requests of one row."""
    together: ServedAnswers | None = None
    """To one request of many rows."""
    inputs: Count = 0
    """Requests with values that are missing or that no example has."""
    unanswered: tuple[Text, ...] = ()
    """Those of them without a finite answer."""
    latency: Latency | None = None
    champion_latency: Latency | None = None
    """Of the same rows, in turns with the challenger."""


Points = Annotated[tuple[Share, ...], Field(min_length=1, max_length=100)]


class RocCurve(Value):
    """From (0, 0) to (1, 1), a point for each score, of many scores those that lie evenly."""

    false_positive_rate: Points
    true_positive_rate: Points


class PrecisionRecallCurve(Value):
    """By rising recall, to 1, a point for each score, of many scores those that lie evenly."""

    recall: Points
    precision: Points


class CalibrationBin(Value):
    """Examples with scores of about one size: their mean score, and the share of them that is positive."""

    rows: Positive
    score: Share
    positive: Share


class Curves(Value):
    """Of a model's answers to all rows; rounded to six digits.

    Of several classes there is calibration alone: of the likeliest class, and positive is where it is right.
    """

    roc: RocCurve | None = None
    """null: not a binary label, or one class is absent."""
    precision_recall: PrecisionRecallCurve | None = None
    """null: not a binary label, or there are no positives."""
    calibration: Annotated[tuple[CalibrationBin, ...], Field(min_length=1, max_length=15)]
    """By 15 equal bins of the score, those that are not empty."""


class WorstExample(Value):
    """An example that the challenger errs on most.

    A loss is a negative log likelihood, of a number the absolute error. An answer is the probability of 1, of several
    classes the likeliest, of quantiles the median.
    """

    key: str
    label: Number
    loss: Amount
    answer: Number
    champion_loss: Amount | None
    champion_answer: Number | None
    values: dict[Text, Annotated[str, Field(max_length=100)]] = Field(default_factory=dict)
    """Of the features, as text, cut; of an image its size, of a list its length. Empty: not asked for."""
