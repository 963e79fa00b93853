"""Days that are bad by themselves: found one by one, and left out of the run when the spec says quarantine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from statistics import median

from retraining.core.checks.findings import finding, severity_of
from retraining.core.checks.labels import day_finding, shifted_days
from retraining.core.documents.checks import DayStatistics, Finding
from retraining.core.documents.plan import Plan
from retraining.core.spec.model import ModelSpec


def days_to_leave_out(plan: Plan, days: Sequence[DayStatistics]) -> tuple[date, ...]:
    """Return the days that the run goes on without; none when that would leave nothing to train on or to test with."""
    bad = sorted({item.span for item in _of_days(plan.spec, days) if item.severity == "quarantine" and item.span})
    return () if _what_is_gone(plan, days, bad) else tuple(bad)


def bad_days(plan: Plan, days: Sequence[DayStatistics]) -> list[Finding]:
    """Return a finding per bad day and check, and one that blocks when too little is left."""
    findings = list(_of_days(plan.spec, days))
    bad = sorted({item.span for item in findings if item.severity == "quarantine" and item.span})
    gone = _what_is_gone(plan, days, bad)
    if gone:
        findings.append(
            finding(
                plan.spec,
                "quarantine",
                found=f"{len(bad)} of {len(days)} days are bad",
                expected="days left to train on and to test with",
                message=f"leaving out {len(bad)} bad days would leave out {gone}: mend the source",
            )
        )
    return findings


def _what_is_gone(plan: Plan, days: Iterable[DayStatistics], bad: Sequence[date]) -> str | None:
    if not bad:
        return None
    kept = [day.span for day in days if day.span not in bad]
    if not any(day >= plan.window.test_start for day in kept):
        return "all test days"
    return None if any(day < plan.window.test_start for day in kept) else "all training days"


def _of_days(spec: ModelSpec, days: Sequence[DayStatistics]) -> Iterator[Finding]:
    yield from _volume(spec, days)
    if severity_of(spec, "max_label_shift") == "quarantine":
        yield from (day_finding(spec, day, days) for day in shifted_days(spec, days))
    named = {check for check in _DAY_CHECKS if severity_of(spec, check) == "quarantine"}
    for day in days:
        for check, look in _DAY_CHECKS.items():
            if check in named:
                yield from look(spec, day)


def _volume(spec: ModelSpec, days: Sequence[DayStatistics]) -> Iterator[Finding]:
    limit = spec.data.checks.max_volume_change
    if severity_of(spec, "day_volume") is None or limit is None or not days:
        return
    typical = median(day.rows for day in days)
    for day in days:
        if abs(day.rows - typical) > limit * typical:
            yield finding(
                spec,
                "day_volume",
                span=day.span,
                found=f"{day.rows} rows on {day.span}",
                expected=f"{typical:g} give or take {limit:.0%}, the median of the days",
                message=f"{day.span} has {day.rows} examples where a day has {typical:g}: is it whole?",
            )


def _null_keys(spec: ModelSpec, day: DayStatistics) -> Iterator[Finding]:
    if day.key_nulls:
        yield finding(
            spec,
            "null_keys",
            span=day.span,
            found=f"{day.key_nulls} rows without a key on {day.span}",
            expected="a key in every row",
            message=f"{day.key_nulls} examples of {day.span} have no key",
        )


def _label(spec: ModelSpec, day: DayStatistics) -> Iterator[Finding]:
    if day.label.nulls:
        yield finding(
            spec,
            "label_nulls",
            feature=spec.label.name,
            span=day.span,
            found=f"{day.label.nulls} nulls on {day.span}",
            expected="none",
            message=f"{day.label.nulls} examples of {day.span} have no label",
        )


def _label_range(spec: ModelSpec, day: DayStatistics) -> Iterator[Finding]:
    if day.label.outside:
        kind = "right number" if spec.label.kind == "regression" else "class"
        yield finding(
            spec,
            "label_range",
            feature=spec.label.name,
            span=day.span,
            found=f"{day.label.outside} labels on {day.span}",
            expected=spec.label.bounds if spec.label.kind == "regression" else "labels of the spec's classes",
            message=f"{day.label.outside} labels of {day.span} are no {kind}",
        )


def _label_rate(spec: ModelSpec, day: DayStatistics) -> Iterator[Finding]:
    low, high = spec.data.checks.label_rate
    several = spec.label.kind == "multiclass"
    rate = day.label.rate
    if rate is not None and (rate > high or (rate < low and not several)):
        what = "of one class" if several else "positive"
        yield finding(
            spec,
            "label_rate",
            feature=spec.label.name,
            span=day.span,
            found=f"{rate:.4f} on {day.span}",
            expected=f"at most {high} of one class" if several else f"{low} to {high}",
            message=f"{rate:.3f} of the labels of {day.span} are {what}: has their meaning changed?",
        )


def _nulls(spec: ModelSpec, day: DayStatistics) -> Iterator[Finding]:
    for name, limit in spec.data.checks.max_null_fraction.items():
        counted = day.features.get(name)
        if counted and counted.nulls / day.rows > limit:
            yield finding(
                spec,
                "max_null_fraction",
                feature=name,
                span=day.span,
                found=f"{counted.nulls / day.rows:.4f} nulls on {day.span}",
                expected=f"at most {limit}",
                message=f"{counted.nulls / day.rows:.1%} of {name} is missing on {day.span}",
            )


def _ranges(spec: ModelSpec, day: DayStatistics) -> Iterator[Finding]:
    for name, (low, high) in spec.data.checks.ranges.items():
        counted = day.features.get(name)
        if counted and counted.outside:
            yield finding(
                spec,
                "ranges",
                feature=name,
                span=day.span,
                found=f"{counted.outside} values on {day.span}, which has {extremes(counted.min, counted.max)}",
                expected=f"{low:g} to {high:g}",
                message=f"{counted.outside} values of {name} on {day.span} are outside {low:g} to {high:g}",
            )


def extremes(low: float | None, high: float | None) -> str:
    """Return the least and the greatest value found, for a sentence."""
    return f"{'-∞' if low is None else f'{low:g}'} to {'∞' if high is None else f'{high:g}'}"


_DAY_CHECKS = {
    "null_keys": _null_keys,
    "label_nulls": _label,
    "label_range": _label_range,
    "label_rate": _label_rate,
    "max_null_fraction": _nulls,
    "ranges": _ranges,
}
