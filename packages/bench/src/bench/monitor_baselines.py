"""Statistics of values as the run's query makes them, and counts of requests as the monitor's query makes them.

In: columns of numbers or categories, None where one is missing. Out: what needs BigQuery otherwise.
`tests/core/data/test_histograms_sql.py` holds the query itself to the same rules.
"""

from __future__ import annotations

import bisect
import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np

from retraining.core.data import statistics
from retraining.core.documents.checks import CategoricalStatistics, NumericStatistics, ValueCount
from retraining.core.monitoring.distributions import UNSEEN, Bucket

Numbers = Sequence[float | None]
Categories = Sequence[str | None]


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


def _hash(value: str) -> int:
    """Stands for BigQuery's, which there is no second one of here."""
    return int.from_bytes(hashlib.sha256(value.encode()).digest()[:8]) & (statistics.MAX_TAIL - 1)
