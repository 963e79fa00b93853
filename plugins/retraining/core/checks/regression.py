"""Findings on the label of a regression: it never changes, or a day's mean is far from the other days'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from retraining.core.checks.findings import finding, severity_of, shown
from retraining.core.documents.checks import DayStatistics, Finding, LabelStatistics, Statistics
from retraining.core.spec.model import ModelSpec


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
        usual, unit = _usual(kept)
        where = shown([f"{day.span} ({day.label.mean:g})" for day in far])
        yield finding(
            spec,
            "max_label_shift",
            feature=spec.label.name,
            found=f"a mean label far from the other days' on {where}",
            expected=expected_mean(spec, usual, unit),
            message=f"the mean of {spec.label.name} is far from the other days' on {where}: has its meaning changed?",
        )


def shifted_days(spec: ModelSpec, days: Sequence[DayStatistics]) -> list[DayStatistics]:
    """Return the days whose mean label is further from the days' median than the spec's limit."""
    limit, (usual, unit) = spec.data.checks.max_label_shift, _usual(days)
    if limit is None or not unit:
        return []
    return [day for day in days if day.label.mean is not None and abs(day.label.mean - usual) > limit * unit]


def day_finding(spec: ModelSpec, day: DayStatistics, days: Sequence[DayStatistics]) -> Finding:
    """Return the finding about one of `shifted_days`, which is then left out."""
    return finding(
        spec,
        "max_label_shift",
        feature=spec.label.name,
        span=day.span,
        found=f"a mean label of {day.label.mean:g} on {day.span}",
        expected=expected_mean(spec, *_usual(days)),
        message=f"the mean of {spec.label.name} is {day.label.mean:g} on {day.span}: has its meaning changed?",
    )


def expected_mean(spec: ModelSpec, usual: float, unit: float) -> str:
    """Return where a day's mean should be."""
    limit = spec.data.checks.max_label_shift or 0
    return f"{usual:g}, the days' median, give or take {limit * unit:g} ({limit:g} deviations within a day)"


def _usual(days: Sequence[DayStatistics]) -> tuple[float, float]:
    """Return the median of the days' means, and of their deviations; without days zeros."""
    means = [day.label.mean for day in days if day.label.mean is not None]
    deviations = [day.label.stddev for day in days if day.label.stddev is not None]
    return (median(means), median(deviations)) if means and deviations else (0.0, 0.0)
