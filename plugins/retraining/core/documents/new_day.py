"""Document of the monitor's look for a complete new day of the source."""

from __future__ import annotations

from typing import Literal

from retraining.core.documents.document import Amount, Count, Day, Document, ModelId, Text, UtcTime, Value

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
    """Whether the source has a complete new day. `looked_for` could be the newest; `day` is the newest complete one."""

    kind: Literal["new_day"] = "new_day"
    model: ModelId
    as_of: UtcTime
    looked_for: Day
    day: Day | None
    outcome: NewDayOutcome
    words: Text
    cause: Text | None
    retrain_as_of: UtcTime | None
    tables: tuple[DayRows, ...]
    bytes_read: Count
