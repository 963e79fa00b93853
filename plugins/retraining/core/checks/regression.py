"""Findings on the label of a regression: it never changes, or a day's mean is far from the other days'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from retraining.core.checks.findings import finding, severity_of, shown
from retraining.core.documents.checks import DayStatistics, Finding, LabelStatistics, Statistics
from retraining.core.spec.model import ModelSpec

_WEEKS = 3
"""Days of one weekday whose median is not that of the bad one among them."""


def constant_label(spec: ModelSpec, split: str, label: LabelStatistics) -> Iterator[Finding]:
    """Yield a training label that is always the same, and one of the test days where that leaves R² undefined."""
    numbers = label.numbers
    if numbers is None or numbers.min is None or numbers.min != numbers.max:
        return
    if split != "train" and not (split == "test" and spec.evaluation.metric == "r2"):
        return
    why = "there is nothing to learn" if split == "train" else "R² is not defined, and evaluation.metric is r2"
    yield finding(
        spec,
        "constant_label",
        feature=spec.label.name,
        found=f"{numbers.min:g} in every row of {split}",
        expected="labels that differ",
        message=f"all labels of {split} are {numbers.min:g}: {why}",
    )


def label_shift(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    """Yield one finding for all days whose mean label is far from the other days'."""
    if severity_of(spec, "max_label_shift") == "quarantine":
        return  # a finding per day, in `quarantine.py`
    kept = [day for day in statistics.days if day.span not in statistics.quarantined]
    if far := shifted_days(spec, kept):
        where = shown([f"{day.span} ({day.label.mean:g})" for day in far])
        yield finding(
            spec,
            "max_label_shift",
            feature=spec.label.name,
            found=f"a mean label far from the other days' on {where}",
            expected=f"on {far[0].span} {_expected(spec, far[0], kept)}",
            message=f"the mean of {spec.label.name} is far from the other days' on {where}: has its meaning changed?",
        )


def shifted_days(spec: ModelSpec, days: Sequence[DayStatistics]) -> list[DayStatistics]:
    """Return the days whose mean label is further from the days' median than the spec's limit.

    Where there are weeks of days the median is of the days of the same weekday: weekends are not like other days.
    """
    limit, unit = spec.data.checks.max_label_shift, _unit(days)
    if limit is None or not unit:
        return []
    return [
        day for day in days if day.label.mean is not None and abs(day.label.mean - _usual(day, days)[0]) > limit * unit
    ]


def day_finding(spec: ModelSpec, day: DayStatistics, days: Sequence[DayStatistics]) -> Finding:
    """Return the finding about one of `shifted_days`, which is then left out."""
    return finding(
        spec,
        "max_label_shift",
        feature=spec.label.name,
        span=day.span,
        found=f"a mean label of {day.label.mean:g} on {day.span}",
        expected=_expected(spec, day, days),
        message=f"the mean of {spec.label.name} is {day.label.mean:g} on {day.span}: has its meaning changed?",
    )


def _expected(spec: ModelSpec, day: DayStatistics, days: Sequence[DayStatistics]) -> str:
    """Return where a day's mean should be."""
    usual, of_days = _usual(day, days)
    return f"{usual:g}, the {of_days}' median, give or take {_limit(spec, days)}"


def _limit(spec: ModelSpec, days: Sequence[DayStatistics]) -> str:
    limit = spec.data.checks.max_label_shift or 0
    return f"{limit * _unit(days):g} ({limit:g} deviations within a day)"


def _usual(day: DayStatistics, days: Sequence[DayStatistics]) -> tuple[float, str]:
    """Return the median of the means of the days that a day is like, and what these are called."""
    known = [other for other in days if other.label.mean is not None]
    alike = [other for other in known if other.span.weekday() == day.span.weekday()]
    of_weekday = len(alike) >= _WEEKS
    means = [other.label.mean for other in (alike if of_weekday else known) if other.label.mean is not None]
    return (median(means) if means else 0.0), f"{day.span:%A}s" if of_weekday else "days"


def _unit(days: Sequence[DayStatistics]) -> float:
    """Return the median of the labels' deviations within a day; 0 without days."""
    deviations = [day.label.stddev for day in days if day.label.mean is not None and day.label.stddev is not None]
    return median(deviations) if deviations else 0.0
