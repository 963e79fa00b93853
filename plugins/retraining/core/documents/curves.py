"""What people look at beside the metrics: curves of a model's answers, and the examples that it errs on most."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from retraining.core.documents.document import Amount, Number, Positive, Share, Text, Value

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
