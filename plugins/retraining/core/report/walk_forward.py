"""The page of a walk-forward: how often it pays to retrain, how versions age, each version on each day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from retraining.core.documents import Plan, WalkForward, WalkForwardPlan, WalkVersion
from retraining.core.metrics import HIGHER_IS_BETTER
from retraining.core.report.rendering import render_template

SHADES = 7


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A version on a day: how good it was, and how that compares with the others of the day.

    Attributes:
        quality: None: it was not scored on the day.
        shade: 0 the day's best to 6 its worst; None: nothing to compare with.
    """

    quality: float | None
    shade: int | None


@dataclass(frozen=True, kw_only=True)
class MatrixRow:
    """A version's row."""

    version: WalkVersion
    cells: tuple[Cell, ...]


def matrix(found: WalkForward) -> tuple[tuple[date, ...], tuple[MatrixRow, ...]]:
    """Return the days, and a row for each version that was scored on any."""
    days = sorted({each.day for version in found.versions for each in version.days})
    by_version = {version.as_of: {each.day: each.quality for each in version.days} for version in found.versions}
    sign = -1 if found.metric in HIGHER_IS_BETTER else 1
    ranges = {day: _range([sign * quality[day] for quality in by_version.values() if day in quality]) for day in days}
    rows = [
        MatrixRow(
            version=version,
            cells=tuple(_cell(by_version[version.as_of].get(day), sign, ranges[day]) for day in days),
        )
        for version in found.versions
        if version.days
    ]
    return tuple(days), tuple(rows)


def _range(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _cell(quality: float | None, sign: int, of_day: tuple[float, float]) -> Cell:
    if quality is None:
        return Cell(quality=None, shade=None)
    best, worst = of_day
    if worst <= best:
        return Cell(quality=quality, shade=None)
    return Cell(quality=quality, shade=round((SHADES - 1) * (sign * quality - best) / (worst - best)))


def render_walk_forward(plan: Plan, walked: WalkForwardPlan, found: WalkForward) -> str:
    """Return the page.

    Args:
        plan: Of the run that exported the days.
        walked: What was to be done.
        found: What came of it.
    """
    days, rows = matrix(found)
    return render_template(
        "report/walk_forward.html.j2",
        plan=plan,
        walked=walked,
        found=found,
        days=days,
        rows=rows,
        higher_is_better=found.metric in HIGHER_IS_BETTER,
        missing=[version for version in found.versions if version.missing],
    )
