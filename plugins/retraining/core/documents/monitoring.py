"""Documents of what the monitor measured: signals, the source's complete new day, and the drift of earlier releases."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from retraining.core.documents.document import (
    Amount,
    Count,
    Day,
    Document,
    ModelId,
    Number,
    RunKey,
    Share,
    Text,
    Uri,
    UtcTime,
    Value,
)
from retraining.core.signal_kinds import SignalKind


class DriftChampion(Value):
    """The version that answered the requests."""

    version_id: Text
    run_key: RunKey


class FeatureDrift(Value):
    """Distance in [0, 1] between the requests and the champion's training data; drifted when strictly over."""

    name: Text
    distance: Literal["l_infinity", "jensen_shannon"]
    value: Annotated[Number, Field(ge=0, le=1)]
    threshold: Annotated[Number, Field(gt=0, le=1)]
    drifted: bool


class Drift(Document):
    """The distance of each feature between the requests and the champion's training data."""

    written_by: ClassVar[str] = "measure of earlier releases"
    read_by: ClassVar[str] = "the Models page"
    kind: Literal["drift"] = "drift"
    model: ModelId
    as_of: UtcTime
    window_hours: Annotated[int, Field(ge=1)]
    """Of the requests, before `as_of`."""
    endpoint_name: Text
    log_table: Text
    rows: Count
    champion: DriftChampion
    baseline_uri: Uri
    threshold: Annotated[Number, Field(gt=0, le=1)]
    features: tuple[FeatureDrift, ...]


SignalState = Literal["ok", "exceeded", "not_judged"]
NamedState = Literal[
    "no_traffic",
    "too_few",
    "no_labels",
    "labels_of_another_version",
    "no_keys",
    "unknown_keys",
    "feature_gone",
    "garbage",
    "giant_batch",
    "clock_skew",
    "no_endpoint",
    "source_stopped",
    "no_reference",
    "too_expensive",
    "no_metrics",
    "no_champion",
    "classifier_failed",
    "label_shift",
    "endpoint_failed",
    "not_asked",
]
"""What is wrong with the input of a signal: why it is not judged, or what it warns of."""


class CalibratedLimit(Value):
    """Where the limit of a distance comes from that the file gives none: the sum of its parts, at most 1."""

    source: Literal["training_days", "test_days", "few_days", "short_window"]
    """`test_days` are of answers; of the last two, few days and windows shorter than one, nothing is known as usual."""
    days: Count
    """Of the training split, or of the test split for answers, with enough rows."""
    usual: Share
    """How far such days, or two windows like them, are from each other."""
    least: Share
    """Beyond that: a smaller change is of no interest."""
    chance: Share
    """What sampling alone makes of no distance, in 999 of 1000 windows of this size."""

    @property
    def value(self) -> float:
        """Return the limit."""
        return min(1.0, self.usual + self.least + self.chance)


class Signal(Value):
    """One thing that was watched: of the model as a whole, or of a subject.

    `subject` is a feature, `version 3`, `carrier=UA` or a table; empty, it is the model. It is exceeded when `value` is
    strictly over `threshold`; where that is the `calibrated` one, `low` must also be over its `usual`; of performance
    and estimate, when the whole interval is worse than it; of attributions, `low` must also be over 0. `low` and `high`
    are the interval of `value`, `examples` is what it rests on. With `because`, it tells of its input: never by itself
    a reason to retrain.
    """

    kind: SignalKind
    subject: str
    state: SignalState
    reason: NamedState | None
    measure: Text
    value: Number | None
    low: Number | None = None
    high: Number | None = None
    threshold: Number | None
    calibrated: Annotated[CalibratedLimit | None, Field(exclude_if=lambda value: value is None)] = None
    """Of a feature's distance: its limit where the file gives none, recorded also where it does; null: it has none."""
    examples: Count
    message: Text

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.state == "not_judged" and self.reason is None:
            raise ValueError("a signal that is not judged says because of what")
        return self


class Signals(Document):
    """All that was [watched](monitoring.md): each signal's value, limit, state and sentence."""

    written_by: ClassVar[str] = "measure"
    read_by: ClassVar[str] = "decide, people"
    kind: Literal["signals"] = "signals"
    model: ModelId
    as_of: UtcTime
    window_hours: Annotated[int, Field(ge=1)]
    """Before `as_of`."""
    champion: DriftChampion | None
    endpoint_name: Text | None
    """null: there is no endpoint."""
    log_table: Text | None
    """null: nothing was logged yet."""
    requests: Count
    """Instances in the window's log."""
    bytes_read: Count
    """By BigQuery, for all of it."""
    signals: tuple[Signal, ...]


NewDayOutcome = Literal[
    "announced", "again", "known", "trained", "under_way", "incomplete", "no_table", "no_column", "too_expensive"
]
"""`announced` and `again` give the event that starts a retraining; the others say why there is none."""


class DayRows(Value):
    """Rows of a table on the day that the words are about, beside the median of the days before; None: none has any."""

    table: Text
    rows: Count
    usual: Amount | None


class NewDay(Document):
    """Whether the source has a complete [new day](monitoring.md#new-data).

    Which day was looked for, rows beside the usual number, what was announced.
    """

    written_by: ClassVar[str] = "new_day"
    read_by: ClassVar[str] = "the next ones, people"
    kind: Literal["new_day"] = "new_day"
    model: ModelId
    as_of: UtcTime
    looked_for: Day
    """The newest that could be complete."""
    day: Day | None
    """The newest complete one; null: none was found."""
    outcome: NewDayOutcome
    message: Text
    cause: Text | None
    retrain_as_of: UtcTime | None
    tables: tuple[DayRows, ...]
    bytes_read: Count
