"""The mean of a daily difference and its interval, with whole weeks as clusters.

Days that follow each other are alike (the same version, the same weather, the same campaign), and a week has one of
each weekday. So weeks are the units, as many as there are days between two versions: the interval is Student's, of the
ratio of the clusters' weighted sums to their weights, by linearization (Cochran 1977, Sampling Techniques, 6.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from retraining.core.documents.walk_forward import Interval

LEAST_CLUSTERS = 6
"""Below, nothing is judged."""


@dataclass(frozen=True, kw_only=True)
class DayDifference:
    """What is told of a day: a difference, and how much it counts."""

    day: date
    weight: float
    difference: float


@dataclass(frozen=True, kw_only=True)
class Luck:
    """How differently trainings come out that differ in nothing that matters.

    Attributes:
        deviation: Standard deviation of a version's quality.
        freedom: Degrees of freedom that it rests on; None: it is no estimate.
    """

    deviation: float = 0.0
    freedom: int | None = None


NO_LUCK = Luck()


def weekly_interval(
    days: Sequence[DayDifference], confidence: float, every: int = 1, luck: Luck = NO_LUCK
) -> Interval | None:
    """Return the weighted mean of daily differences with its two-sided interval; None: too few clusters.

    Args:
        days: Each day once.
        confidence: Between 0.5 and 1.
        every: Days between two versions: a cluster is as many whole weeks.
        luck: Of the one version that a side rests on; without it of many.
    """
    if not days:
        return None
    first, length = min(each.day for each in days), 7 * math.ceil(every / 7)
    sums: dict[int, list[float]] = {}
    for each in days:
        own = sums.setdefault((each.day - first).days // length, [0.0, 0.0])
        own[0] += each.weight
        own[1] += each.weight * each.difference
    clusters = list(sums.values())
    weight = sum(each[0] for each in clusters)
    if len(clusters) < LEAST_CLUSTERS or weight <= 0:
        return None
    mean = sum(each[1] for each in clusters) / weight
    squares = sum((total - mean * own) ** 2 for own, total in clusters)
    of_clusters = math.sqrt(squares * len(clusters) / (len(clusters) - 1)) / weight
    freedom = len(clusters) - 1 if luck.freedom is None else min(len(clusters) - 1, luck.freedom)
    reach = student_quantile(0.5 + confidence / 2, freedom) * math.hypot(of_clusters, luck.deviation)
    return Interval(mean=mean, low=mean - reach, high=mean + reach, clusters=len(clusters))


def student_quantile(probability: float, freedom: int) -> float:
    """Return a quantile of Student's distribution of whole degrees of freedom.

    Abramowitz, Stegun 1964, Handbook of Mathematical Functions, 26.7.3 and 26.7.4, halved until nothing changes.

    Args:
        probability: From 0.5 on, below 1.
        freedom: Degrees of freedom, at least 1.
    """
    inside, low, high = 2 * probability - 1, 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if _share_within(angle, freedom) < inside else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def _share_within(angle: float, freedom: int) -> float:
    """Return the share of Student's distribution within plus and minus sqrt(freedom) * tan(angle)."""
    odd, cosine = freedom % 2, math.cos(angle)
    term, total = (cosine, cosine) if odd else (1.0, 1.0)
    for step in range(3 if odd else 2, freedom - 1, 2):
        term *= (step - 1) / step * cosine**2
        total += term
    if not odd:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + (math.sin(angle) * total if freedom > 1 else 0.0))
