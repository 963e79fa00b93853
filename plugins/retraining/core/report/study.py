"""The page's section on the search for hyperparameters: trials, the best so far, and which parameters mattered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from retraining.core.documents import Trial, Tuning
from retraining.core.report.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    Tick,
    axis,
    padded,
    points,
)

BINS = 3  # of a numeric parameter, each with as many trials
LEAST_TRIALS = 6  # fewer say nothing about a parameter
NAMES = 120  # width of the names beside the bars
ROW = 26


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A trial with a score, in the chart's coordinates."""

    x: float
    y: float
    phase: str
    label: str


@dataclass(frozen=True, kw_only=True)
class StudyChart:
    """Every trial's score in order, and the best so far as steps (an SVG `points` attribute)."""

    dots: tuple[Dot, ...]
    best: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


@dataclass(frozen=True, kw_only=True)
class Importance:
    """A parameter's share of the scores' variance in [0, 1]; None where there are too few trials to say.

    `y` is the middle of its bar and `width` the bar's length, in the chart's coordinates.
    """

    name: str
    share: float | None
    y: float
    width: float


def study_chart(tuning: Tuning) -> StudyChart | None:
    """Lay out the trials; None when none has a score."""
    scored = [(place, trial) for place, trial in enumerate(tuning.trials, start=1) if trial.value is not None]
    if not scored:
        return None
    low, high = padded(trial.value for _, trial in scored if trial.value is not None)
    x = Scale(low=1, high=max(len(tuning.trials), 2), start=LEFT + 6, end=WIDTH - RIGHT - 6)
    y, y_ticks = axis(low, high, HEIGHT - BOTTOM, TOP)
    step = max(1, len(tuning.trials) // 8)
    return StudyChart(
        dots=tuple(
            Dot(x=x(place), y=y(trial.value or 0.0), phase=trial.phase, label=f"{trial.trial_id}: {trial.value:.4f}")
            for place, trial in scored
        ),
        best=points(_steps(tuning, scored, x, y)),
        x_ticks=tuple(Tick(at=x(place), text=str(place)) for place in range(1, len(tuning.trials) + 1, step)),
        y_ticks=y_ticks,
    )


def _steps(tuning: Tuning, scored: Sequence[tuple[int, Trial]], x: Scale, y: Scale) -> list[tuple[float, float]]:
    better = max if tuning.goal == "maximize" else min
    corners: list[tuple[float, float]] = []
    best: float | None = None
    for place, trial in scored:
        value = trial.value or 0.0
        now = value if best is None else better(best, value)
        if best is not None and now != best:
            corners.append((x(place), y(best)))
        corners.append((x(place), y(now)))
        best = now
    if best is not None:
        corners.append((x(max(len(tuning.trials), 2)), y(best)))
    return corners


def importances(tuning: Tuning) -> list[Importance]:
    """Return each searched parameter's main effect on the score, largest first.

    Epsilon squared (Kelley 1935, PNAS 21): the share of the variance between groups of equal values, numbers in three
    groups of equal size, corrected for the number of groups. Effects of parameters together are not in it.
    """
    scored = [(trial.hyperparameters, trial.value) for trial in tuning.trials if trial.value is not None]
    shares: list[tuple[str, float | None]] = []
    for parameter in tuning.space:
        pairs = [(values[parameter.name], score) for values, score in scored if parameter.name in values]
        shares.append((parameter.name, _epsilon_squared(pairs)))
    shares.sort(key=lambda item: (-(item[1] if item[1] is not None else -1.0), item[0]))
    x = Scale(low=0, high=1, start=NAMES, end=WIDTH - RIGHT - 40)
    return [
        Importance(name=name, share=share, y=TOP + ROW * (place + 0.5), width=max(2.0, x(share or 0.0) - NAMES))
        for place, (name, share) in enumerate(shares)
    ]


def _epsilon_squared(pairs: Sequence[tuple[Any, float]]) -> float | None:
    groups = _groups(pairs)
    count, kinds = len(pairs), len(groups)
    if count < LEAST_TRIALS or kinds < 2 or count <= kinds:
        return None
    mean = sum(score for _, score in pairs) / count
    total = sum((score - mean) ** 2 for _, score in pairs)
    if total == 0:
        return None
    within = sum((score - sum(group) / len(group)) ** 2 for group in groups for score in group)
    return max(0.0, 1 - within / total * (count - 1) / (count - kinds))


def _groups(pairs: Sequence[tuple[Any, float]]) -> list[list[float]]:
    by_value: dict[Any, list[float]] = defaultdict(list)
    for value, score in pairs:
        by_value[value if not isinstance(value, list) else tuple(value)].append(score)
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value, _ in pairs)
    if len(by_value) <= BINS or not numeric:
        return list(by_value.values())
    ordered = [score for _, score in sorted(pairs, key=lambda pair: pair[0])]
    size = len(ordered) / BINS
    return [ordered[round(index * size) : round((index + 1) * size)] for index in range(BINS)]
