"""How versions age, and what retraining every so many days brings, from how good each version was on each day.

In: a table of versions by days. Out: rows of ages and of cadences, and a sentence.

Whatever is compared is compared on the same day, so that good and bad days of the world do not count. A cadence is
judged by all its phases: on each day by the mean of all versions that it could have in use then, for which of them it
has depends on the day on which it began, and one version may be lucky. Every version is on both sides of a comparison
for as many days, but for those at the ends of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import fmean, stdev

from retraining.core.documents.walk_forward import (
    AgeQuality,
    Cadence,
    DayQuality,
    WalkForward,
    WalkForwardPlan,
    WalkVersion,
)
from retraining.core.metrics import HIGHER_IS_BETTER
from retraining.core.spec.model import ModelSpec
from retraining.core.walk_forward.weeks import LEAST_CLUSTERS, DayDifference, Luck, weekly_interval

MONTH = 30
FAMILIAR = (1, 3, 7, 14, 28)
"""Days between retrainings that people ask for, where the dates allow them."""
STEP = 1.5
"""By how much a cadence is at least rarer than the next more frequent one."""


def analyse(walked: WalkForwardPlan, spec: ModelSpec, versions: Sequence[WalkVersion]) -> WalkForward:
    """Return what a walk-forward found.

    Args:
        walked: Its plan.
        spec: The model's, by whose metric and confidence versions are judged.
        versions: With how good each was by day, in the order of their dates.
    """
    metric, confidence = spec.evaluation.metric, spec.evaluation.promote.confidence
    table = Table.of(versions, walked.every, confidence, higher_is_better=metric in HIGHER_IS_BETTER)
    paid = [version.usd for version in versions if version.usd is not None]
    rows = cadence_rows(table, fmean(paid) if paid else None)
    return WalkForward(
        model=walked.model,
        run_key=walked.run_key,
        metric=metric,
        confidence=confidence,
        versions=tuple(versions),
        ages=age_rows(table, walked.horizons),
        cadences=rows,
        pays=most_frequent_that_pays(rows),
        answer=answer(rows, metric),
    )


@dataclass(frozen=True, kw_only=True)
class Table:
    """How good each version was on each day.

    Attributes:
        every: Days between two versions.
        quality: By the version's date and the day, with the day's rows.
        higher_is_better: Of the metric.
        confidence: Of all intervals.
    """

    every: int
    quality: Mapping[date, Mapping[date, DayQuality]]
    higher_is_better: bool
    confidence: float

    @classmethod
    def of(cls, versions: Iterable[WalkVersion], every: int, confidence: float, *, higher_is_better: bool) -> Table:
        """Make it of the versions that were scored."""
        quality = {each.as_of: {found.day: found for found in each.days} for each in versions if each.days}
        return cls(every=every, quality=quality, higher_is_better=higher_is_better, confidence=confidence)

    @property
    def days(self) -> list[date]:
        """Days on which any version was scored, the first first."""
        return sorted({day for found in self.quality.values() for day in found})

    def rows(self, day: date) -> int:
        """Return how many rows a day has."""
        return next(found[day].rows for found in self.quality.values() if day in found)

    def aged(self, day: date, first: int, last: int) -> list[float]:
        """Return how good versions of these ages were on a day.

        Args:
            day: Which.
            first: Age in days from which on, included.
            last: Included.
        """
        return [
            found[day].quality
            for as_of, found in self.quality.items()
            if first <= (day - as_of).days <= last and day in found
        ]

    def worse(self, day: date, old: Sequence[float], new: Sequence[float]) -> DayDifference:
        """Return by how much the mean of some versions is worse than that of others on a day."""
        sign = -1 if self.higher_is_better else 1
        return DayDifference(day=day, weight=self.rows(day), difference=sign * (fmean(old) - fmean(new)))

    def mean(self, by_day: Mapping[date, float]) -> float:
        """Return the mean over rows of what was on each day."""
        rows = {day: self.rows(day) for day in by_day}
        return sum(rows[day] * value for day, value in by_day.items()) / sum(rows.values())


def age_rows(table: Table, horizons: Sequence[int]) -> tuple[AgeQuality, ...]:
    """Return how good versions are by age: up to each horizon from the one before it on.

    Args:
        table: Versions by days.
        horizons: In days, rising; the first day has the age 0, so `7` ends with the age 6.
    """
    starts = (0, *horizons[:-1])
    return tuple(_age(table, first, until - 1) for first, until in zip(starts, horizons, strict=True))


def _age(table: Table, first: int, last: int) -> AgeQuality:
    found = {day: old for day in table.days if (old := table.aged(day, first, last))}
    beside = [
        table.worse(day, old, newest)
        for day, old in found.items()
        if first >= table.every and (newest := table.aged(day, 0, table.every - 1))
    ]
    return AgeQuality(
        first=first,
        last=last,
        days=len(found),
        quality=table.mean({day: fmean(old) for day, old in found.items()}) if found else None,
        worse=weekly_interval(beside, table.confidence, table.every),
    )


def cadences_of(dates: int, every: int) -> tuple[int, ...]:
    """Return the days between retrainings that so many dates can tell of, the rarest first.

    A cadence needs all its phases on most days: its days are at most half of the dates'.

    Args:
        dates: How many versions there are.
        every: Days between two of them.
    """
    most = every * (dates // 2)
    doubled = [every * 2**step for step in range(dates.bit_length())]
    chosen = [every]
    for each in sorted({*doubled, *FAMILIAR}):
        if each % every == 0 and STEP * chosen[-1] <= each <= most:
            chosen.append(each)
    return tuple(reversed(chosen))


def cadence_rows(table: Table, usd: float | None) -> tuple[Cadence, ...]:
    """Return what each cadence would have brought, on the days on which all of them have all their phases.

    Args:
        table: Versions by days.
        usd: What one training costs; None: not known.
    """
    dates = sorted(table.quality)
    cadences = cadences_of(len(dates), table.every)
    days = [day for day in table.days if _has_all(table, day, cadences[0])]
    if not days:
        return ()
    beside_rarer = max(1, len(cadences) - 1)
    confidence = 1 - (1 - table.confidence) / beside_rarer  # Bonferroni: of many one comes out by chance
    never = {day: table.quality[dates[0]][day].quality for day in days if day in table.quality[dates[0]]}
    rows = [_never(table, never)] if len(never) == len(days) else []
    luck = _luck(table, days, cadences[0])
    for place, cadence in enumerate(cadences):
        own = {day: table.aged(day, 0, cadence - 1) for day in days}
        on_never = [table.worse(day, [never[day]], own[day]) for day in days] if luck and rows else []
        rarer = cadences[place - 1] if place else None
        on_next = [table.worse(day, table.aged(day, 0, rarer - 1), own[day]) for day in days] if rarer else []
        trainings = -(-((days[-1] - days[0]).days + 1) // cadence)
        rows.append(
            Cadence(
                every=cadence,
                trainings=trainings,
                quality=table.mean({day: fmean(found) for day, found in own.items()}),
                gain=weekly_interval(on_never, table.confidence, table.every, luck) if luck else None,
                gain_on_next=weekly_interval(on_next, confidence, table.every),
                usd_per_month=None if usd is None else round(usd * MONTH / cadence, 2),
            )
        )
    return tuple(rows)


def _luck(table: Table, days: Sequence[date], span: int) -> Luck | None:
    """Return how differently versions come out: what each is in its first days beside the others there.

    The noise of these days is in it, too, so it is rather too large. None: too few versions tell it.

    Args:
        table: Versions by days.
        days: On which versions of all ages below `span` were scored.
        span: In days.
    """
    beside = []
    for as_of in table.quality:
        own = [day for day in days if 0 <= (day - as_of).days < table.every]
        found = [fmean(table.aged(day, 0, table.every - 1)) - fmean(table.aged(day, 0, span - 1)) for day in own]
        if found:
            beside.append(fmean(found))
    return Luck(deviation=stdev(beside), freedom=len(beside) - 1) if len(beside) >= LEAST_CLUSTERS else None


def _never(table: Table, by_day: Mapping[date, float]) -> Cadence:
    quality = table.mean(by_day)
    return Cadence(every=None, trainings=1, quality=quality, gain=None, gain_on_next=None, usd_per_month=0.0)


def _has_all(table: Table, day: date, cadence: int) -> bool:
    """Return whether a day has a version of each phase of a cadence."""
    newest = max((as_of for as_of in table.quality if as_of <= day), default=None)
    if newest is None or (day - newest).days >= table.every:
        return False
    wanted = [newest - timedelta(days=back) for back in range(0, cadence, table.every)]
    return all(day in table.quality.get(as_of, {}) for as_of in wanted)


def most_frequent_that_pays(rows: Sequence[Cadence]) -> int | None:
    """Return the most frequent cadence that surely gains on the next rarer one; None: none does."""
    paying = [row.every for row in rows if row.every and row.gain_on_next and row.gain_on_next.low > 0]
    return min(paying, default=None)


def answer(rows: Sequence[Cadence], metric: str) -> str:
    """Return what the rows say, in a sentence or two.

    Args:
        rows: By `cadence_rows`.
        metric: As documents name it.
    """
    named = metric.replace("_", " ")
    if not any(row.gain_on_next for row in rows):
        return (
            "Not judged: cadences are compared on days on which the rarest has all its phases, and there are fewer "
            f"than {LEAST_CLUSTERS} weeks of them, or spans between versions. Take more dates."
        )
    pays = most_frequent_that_pays(rows)
    if pays is None:
        rarest = max(row.every or 0 for row in rows)
        return (
            f"On these days retraining more often than every {rarest} days did not surely gain in {named}: no cadence "
            "surely beats the next rarer one."
        )
    gain = next(row.gain_on_next.mean for row in rows if row.every == pays and row.gain_on_next)
    more = [row.every for row in rows if row.every and row.every < pays]
    stops = f" From there on it stops paying: every {_days(max(more))} gains nothing that is sure." if more else ""
    return f"Retraining every {_days(pays)} surely gains in {named} on the next rarer cadence ({gain:+.4f}).{stops}"


def _days(count: int) -> str:
    return "day" if count == 1 else f"{count} days"
