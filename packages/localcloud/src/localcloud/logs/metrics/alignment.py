"""Aligning a series: the values of each period become one point.

In: values with times, an interval and a period. Out: periods, newest first, each with its values; and what a
distribution says of them, in the buckets and with the percentiles of Google's latencies.
https://cloud.google.com/monitoring/api/v3/aggregation
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence

FINITE_BUCKETS, GROWTH, SCALE = 66, 1.4, 1.0
_BOUNDS = [SCALE * GROWTH**power for power in range(FINITE_BUCKETS + 1)]


def periods(
    values: Sequence[tuple[int, float]], start_ns: int, end_ns: int, period_ns: int
) -> list[tuple[int, int, list[float]]]:
    """Return the periods that have values, as start (exclusive), end and values; they end where the interval ends."""
    by_period: dict[int, list[float]] = {}
    for time_ns, value in values:
        by_period.setdefault((end_ns - time_ns) // period_ns, []).append(value)
    return [
        (max(start_ns, end_ns - (index + 1) * period_ns), end_ns - index * period_ns, found)
        for index, found in sorted(by_period.items())
    ]


def bucket_counts(values: Sequence[float]) -> list[int]:
    """Return how many values each bucket has; the first is below all bounds, the last above."""
    counts = [0] * (FINITE_BUCKETS + 2)
    for value in values:
        counts[bisect.bisect_right(_BOUNDS, value)] += 1
    return counts


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile as the service estimates it: by interpolation in the bucket where it lies."""
    counts = bucket_counts(values)
    rank = len(values) * percent / 100
    bounds = [0.0, *_BOUNDS, _BOUNDS[-1]]
    before = 0
    for count, (low, high) in zip(counts, itertools.pairwise(bounds), strict=True):
        if count and before + count >= rank:
            return low + (high - low) * max(0.0, rank - before) / count
        before += count
    return bounds[-1]
