"""A part of the evaluation: what the challenger answers when it is loaded as serving loads it."""

from __future__ import annotations

from retraining.core.documents.document import Amount, Count, Positive, Text, Value


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
