"""Documents of a walk-forward: the dates and days that it takes, and what came of it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from retraining.core.documents.document import (
    Amount,
    Count,
    Day,
    Document,
    ModelId,
    Number,
    Positive,
    RunKey,
    Text,
    Uri,
    Value,
)
from retraining.core.documents.plan import Estimate
from retraining.core.metrics import Metric

MOST_VERSIONS = 60
Horizons = Annotated[tuple[Positive, ...], Field(min_length=1, max_length=12)]


class WalkForwardPlan(Document):
    """What a walk-forward will do: a version as of each date, each scored on all days from its date on.

    Its folder is also that of the run that exports these days, whose plan lies beside it.
    """

    written_by: ClassVar[str] = "plan of `walk_forward`"
    read_by: ClassVar[str] = "its later tasks"
    kind: Literal["walk_forward_plan"] = "walk_forward_plan"
    model: ModelId
    run_key: RunKey
    run_uri: Uri
    dates: Annotated[tuple[Day, ...], Field(min_length=2, max_length=MOST_VERSIONS)]
    """As of 00:00 UTC of which a version is trained; equally far from each other."""
    every: Positive
    """Days between two of them."""
    days_from: Day
    """First day that is scored."""
    days_until: Day
    """The day after the last one."""
    horizons: Horizons
    """Ages in days up to which versions are summed up; each from the one before it on."""
    jobs: Positive
    """At most."""
    estimate_usd: Estimate | None = None
    """Upper bound of all of them; null: a price is unknown."""
    explain: tuple[Text, ...] = ()


class Interval(Value):
    """A mean of days and its two-sided interval."""

    mean: Number
    low: Number
    high: Number
    clusters: Count
    """Spans of whole weeks that it rests on, each as long as two versions are apart."""


class DayQuality(Value):
    """How good a version was on a day."""

    day: Day
    rows: Positive
    quality: Number


class WalkVersion(Value):
    """A version and how good it was on the days from its date on."""

    as_of: Day
    run_key: RunKey | None
    """null: it came to no plan."""
    missing: Text | None = None
    """Why it is not scored; null: it is."""
    usd: Amount | None = None
    """What its jobs cost at list prices; null: not known, or another run had trained it."""
    days: tuple[DayQuality, ...] = ()


class AgeQuality(Value):
    """How good versions of an age are beside the newest one of the same day."""

    first: Count
    """Age in days from which on, included: 0 is the day of its date."""
    last: Count
    """Included."""
    days: Count
    quality: Number | None
    """Mean over rows; null: none is that old."""
    worse: Interval | None
    """By how much they are worse than the newest version of the same day, as a number above 0; null: not judged."""


class Cadence(Value):
    """What it would have brought to retrain every so many days."""

    every: Positive | None
    """null: never again after the first date."""
    trainings: Positive
    quality: Number
    """Mean over rows."""
    gain: Interval | None
    """Against never; above 0 is better. null: not judged, or it is that."""
    gain_on_next: Interval | None
    """Against the next rarer one."""
    usd_per_month: Amount | None
    """Of the trainings, in 30 days; null: no price is known."""


class WalkForward(Document):
    """What a walk-forward found: versions by day, how they age, and what retraining more often brings."""

    written_by: ClassVar[str] = "report of `walk_forward`"
    read_by: ClassVar[str] = "people"
    kind: Literal["walk_forward"] = "walk_forward"
    model: ModelId
    run_key: RunKey
    metric: Metric
    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    versions: tuple[WalkVersion, ...]
    ages: tuple[AgeQuality, ...]
    cadences: tuple[Cadence, ...]
    """The rarest first."""
    pays: Positive | None
    """The most frequent that surely gains on the next rarer one; null: none does."""
    answer: Text
    """The same in words."""
