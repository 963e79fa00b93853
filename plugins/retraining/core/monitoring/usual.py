"""How far the answers of a champion's test days are from each other: what of a day's answers is no drift.

In: what the evaluation counted by day. Out: the 99th percentile of those days' distances from the other days together,
less what chance makes of them, as `usual_distances.sql.j2` finds it of features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from retraining.core.data.statistics import usual_distance
from retraining.core.documents.answers import AnswerCounts
from retraining.core.documents.checks import UsualDistance
from retraining.core.monitoring.distributions import Z95, jensen_shannon

_PERCENTILES = 101
Counts = Sequence[int]


def usual_of_answers(counted: AnswerCounts, least: int) -> UsualDistance | None:
    """Return how far a test day's answers are from the others'; None: an evaluation of an earlier release.

    Args:
        counted: By the evaluation.
        least: Answers of a day that counts.
    """
    if counted.by_day is None:
        return None
    days = [day for day in counted.by_day if sum(day) >= least]
    together = [sum(counts) for counts in zip(*counted.by_day, strict=True)]
    distance = _between_bins if counted.edges else _between_classes
    others = [[all_days - own for all_days, own in zip(together, day, strict=True)] for day in days]
    found = sorted(distance(day, other) for day, other in zip(days, others, strict=True) if any(other))
    if not found:
        return UsualDistance(days=0, distance=0.0)
    steps = [round(step * (len(found) - 1) / (_PERCENTILES - 1)) for step in range(_PERCENTILES)]
    return UsualDistance(days=len(found), distance=usual_distance([found[step] for step in steps]))


def _between_bins(day: Counts, others: Counts) -> float:
    """Return the Jensen-Shannon divergence less its mean over samples of one distribution, `(bins - 1) / (8 ln 2)`."""
    rows, other_rows = sum(day), sum(others)
    bins = sum(a + b > 0 for a, b in zip(day, others, strict=True))
    value = jensen_shannon([count / rows for count in day], [count / other_rows for count in others])
    return value - (bins - 1) / (8 * math.log(2)) * (1 / rows + 1 / other_rows)


def _between_classes(day: Counts, others: Counts) -> float:
    """Return the largest change of any class's share, by the lower end of its interval."""
    rows, other_rows = sum(day), sum(others)
    changes = []
    for count, other in zip(day, others, strict=True):
        p, q = count / rows, other / other_rows
        changes.append(abs(p - q) - Z95 * math.sqrt(p * (1 - p) / rows + q * (1 - q) / other_rows))
    return max(changes)
