"""What a model answered to the examples of a split: how often what, and of numbers how far from the labels."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from retraining.core.documents.document import Amount, Count, Number, Positive, Value


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


class AnswerCounts(Value):
    """Rows by answer, which the monitor holds requests against; each row counts once, whatever its weight.

    Numbers fall between rising `edges`: the first count is of those below all, bin i begins at edge i. Without edges
    the counts are those of the likeliest class.
    """

    edges: tuple[Number, ...] = ()
    """Between neighbouring answers in 5 % steps, and around all of them."""
    counts: Annotated[tuple[Count, ...], Field(min_length=1)]
