"""Statistics of values as the run's query makes them, and counts of requests as the monitor's query makes them.

In: columns of numbers or categories, None where one is missing. Out: what needs BigQuery otherwise.
`tests/core/data/test_histograms_sql.py` holds the query itself to the same rules.
"""

from __future__ import annotations

import bisect
import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from retraining.core.data import statistics
from retraining.core.documents.checks import CategoricalStatistics, NumericStatistics, UsualDistance, ValueCount
from retraining.core.monitoring import distributions
from retraining.core.monitoring.distributions import UNSEEN, Bucket

Numbers = Sequence[float | None]
Categories = Sequence[str | None]
Statistics = NumericStatistics | CategoricalStatistics


def quantiles_of(numbers: Sequence[float]) -> tuple[float, ...]:
    """Return the 21 quantiles that the run's statistics have."""
    ordered = sorted(numbers)
    return tuple(ordered[round(step * (len(ordered) - 1) / 20)] for step in range(21)) if ordered else ()


def numeric_statistics(values: Numbers, *, earlier: bool = False) -> NumericStatistics:
    """Return statistics of numbers; of an earlier release they are without a histogram."""
    there = [value for value in values if value is not None]
    quantiles = quantiles_of(there)
    edges = statistics.edges_around(quantiles)
    counts = Counter(bisect.bisect_right(edges, value) for value in there)
    histogram = statistics.histogram_of(edges, [counts[place] for place in range(len(edges) + 1)])
    return NumericStatistics(
        kind="numeric",
        nulls=len(values) - len(there),
        min=min(there),
        max=max(there),
        mean=float(np.mean(there)),
        stddev=float(np.std(there)),
        quantiles=quantiles,
        histogram=None if earlier else histogram,
    )


def categorical_statistics(values: Categories, *, earlier: bool = False) -> CategoricalStatistics:
    """Return statistics of categories; of an earlier release they are without the tail."""
    counts = Counter(value for value in values if value is not None)
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    by_hash: Counter[int] = Counter()
    distinct: Counter[int] = Counter()
    for value, count in listed[statistics.MAX_CATEGORIES :]:
        by_hash[_hash(value)] += count
        distinct[_hash(value)] += 1
    rows = [{"value": str(key), "row_count": by_hash[key], "distinct_count": distinct[key]} for key in by_hash]
    return CategoricalStatistics(
        kind="categorical",
        nulls=sum(value is None for value in values),
        distinct=len(counts),
        top=tuple(ValueCount(value=value, count=count) for value, count in listed[: statistics.MAX_CATEGORIES]),
        tail=() if earlier else statistics.tail_of(rows),
    )


def count_numbers(values: Numbers, edges: Sequence[float]) -> dict[Bucket, int]:
    """Return requests by bin."""
    return dict(Counter(None if value is None else str(bisect.bisect_right(edges, value)) for value in values))


def count_categories(values: Categories, baseline: CategoricalStatistics) -> dict[Bucket, int]:
    """Return requests by value, by hash where the baseline has that, or as unseen."""
    known = {item.value for item in baseline.top}

    def bucket(value: str | None) -> Bucket:
        if value is None or value in known:
            return value
        return _hash(value) & (len(baseline.tail) - 1) if baseline.tail else UNSEEN

    return dict(Counter(map(bucket, values)))


def distance_of(baseline: Statistics, rows: int, values: Sequence[Any]) -> distributions.Distance:
    """Return what the monitor measures of requests.

    Args:
        baseline: Statistics of the training split.
        rows: That it has.
        values: Of the requests.
    """
    sizes = (rows, len(values))
    if isinstance(baseline, NumericStatistics):
        edges = distributions.bin_edges(baseline)
        counts = count_numbers(values, edges)
        shares = [counts.get(place, 0) / len(values) for place in [*map(str, range(len(edges) + 1)), None]]
        return distributions.between_bins(distributions.bin_shares(baseline, rows, edges), shares, sizes)
    found = distributions.value_shares(count_categories(values, baseline), baseline.tail)
    expected = distributions.category_shares(baseline, rows)
    return distributions.between_values(expected, found, sizes, distributions.room_of(baseline.tail))


def calibrated(days: Sequence[Sequence[Any]], least_rows: int) -> tuple[Statistics, int]:
    """Return statistics of training days with the usual distance of one from the others, and their rows.

    Args:
        days: The values of each.
        least_rows: Days of fewer do not count.
    """
    whole = [value for day in days for value in day]
    is_number = any(isinstance(value, float) for value in whole)
    baseline: Statistics = numeric_statistics(whole) if is_number else categorical_statistics(whole)
    if isinstance(baseline, NumericStatistics):
        edges = distributions.bin_edges(baseline)
        counts = [
            Counter(None if value is None else bisect.bisect_right(edges, value) for value in day) for day in days
        ]
    else:
        counts = [Counter(day) for day in days]
    found = sorted(_from_other_days(counts, least_rows, is_number=is_number))
    percentiles = [found[round(step * (len(found) - 1) / 100)] for step in range(101)] if found else []
    distance = statistics.usual_distance(percentiles) if percentiles else 0.0
    return baseline.model_copy(update={"usual": UsualDistance(days=len(found), distance=distance)}), len(whole)


def _from_other_days(days: Sequence[Counter[Any]], least_rows: int, *, is_number: bool) -> Iterator[float]:
    """Yield how far each day is from the others, less what chance makes of it, as `usual_distances.sql.j2` does."""
    total: Counter[Any] = Counter()
    for day in days:
        total.update(day)
    places, rows = list(total), total.total()
    singles = sum(count == 1 for count in total.values()) / rows if len(places) > statistics.MAX_CATEGORIES else 0.0
    whole = np.array([total[place] for place in places], float)
    for day in days:
        here, there = day.total(), rows - day.total()
        if here < least_rows or not there:
            continue
        counts = np.array([day[place] for place in places], float)
        share, others = counts / here, (whole - counts) / there
        if is_number:
            chance = (np.count_nonzero(counts) - 1) / (8 * math.log(2)) * (1 / here + 1 / there)
            yield float(distributions.jensen_shannon(others.tolist(), share.tolist()) - chance)
        else:
            deviation = np.sqrt(share * (1 - share) / here + others * (1 - others) / there)
            moved = float(np.max(np.abs(share - others) - distributions.Z95 * deviation))
            yield max(moved, float(share[others == 0].sum()) - singles)


def _hash(value: str) -> int:
    """Stands for BigQuery's, which there is no second one of here."""
    return int.from_bytes(hashlib.sha256(value.encode()).digest()[:8]) & (statistics.MAX_TAIL - 1)
