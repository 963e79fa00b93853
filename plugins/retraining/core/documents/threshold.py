"""Parts of the evaluation's documents: binary answers as yes or no, from a threshold on."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.documents.document import Amount, Share, Text, Value

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
    words: Text
    """By what rule, and what it reached there."""
    confidence: Confidence
    """Of the intervals."""
    challenger: AtThreshold | None
    """null: there is no threshold."""
    champion: AtThreshold | None
    """null: there is no threshold, or no champion."""
