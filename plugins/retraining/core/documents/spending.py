"""What a model's runs and scorings cost in a month, at list prices."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from retraining.core.documents.document import Amount, Document, ModelId, RunKey, Text, UtcTime, Value

Month = Annotated[str, Field(pattern=r"^\d{4}-\d{2}$")]


Work = Literal["run", "scoring", "walk_forward"]
"""walk_forward: one of its versions, or the export of its days."""


class Spent(Value):
    """What a run or a scoring cost; of one under way what it is expected to cost."""

    work: Work
    begun: UtcTime
    usd: Amount | None
    """null: nothing is known of it."""
    ended: bool
    partial: bool = False
    """Whether a part of it has no list price, so that it cost more."""


class Spending(Document):
    """What a model's runs and scorings of a month cost at list prices, by their keys: what budgets are held against.

    The month is that in which they began, in UTC.
    """

    written_by: ClassVar[str] = "plan, report, `score__<model>`"
    read_by: ClassVar[str] = "plan, report"
    kind: Literal["spending"] = "spending"
    model: ModelId
    owner: Text
    """The team whose budget it counts for."""
    month: Month
    spent: dict[RunKey, Spent]
