"""How long answers take, as Cloud Monitoring counts it: answers per bucket of milliseconds.

In: bounds and counts. Out: how many answers took longer than a time, and from which time on an answer is slow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

SLOW_SHARE = 0.05
"""Of the version before: what is looked at is where its slowest answers are, about the 95th percentile."""


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Answers by time: `counts[i]` lie from `bounds[i - 1]` to `bounds[i]` (exclusive); the last beyond all bounds.

    Attributes:
        bounds: Milliseconds, rising.
        counts: One more than bounds, or fewer: none is in those that are left out.
    """

    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """How many answers there are."""
        return sum(self.counts)

    def over(self, time_ms: float) -> float:
        """Return how many answers took longer, which lie evenly in the bucket that the time is in."""
        edges = itertools.pairwise((0.0, *self.bounds, math.inf))
        found = 0.0
        for count, (low, high) in zip(self.counts, edges, strict=False):
            if low >= time_ms:
                found += count
            elif high > time_ms and math.isfinite(high):
                found += count * (high - time_ms) / (high - low)
        return found

    def slow_ms(self, ratio: float) -> float | None:
        """Return from which time on an answer of the new version is slow; None: these answers do not say it.

        A bound, so that the new version's answers are counted and not estimated. Of these answers about `SLOW_SHARE`
        take longer than it by `ratio`.
        """
        if not self.total:
            return None
        shares = {bound: self.over(bound / ratio) / self.total for bound in self.bounds if bound > 0}
        able = {bound: abs(math.log(share / SLOW_SHARE)) for bound, share in shares.items() if 0 < share < 1}
        return min(able, key=able.__getitem__, default=None)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a deployed model answered in some minutes: requests, errors among them, and how long answers took."""

    requests: int = 0
    errors: int = 0
    latencies: Latencies = Latencies()


def together(measured: Iterable[Measured]) -> Measured:
    """Return what several deployed models answered; times alone of those whose buckets are the first one's."""
    found = list(measured)
    bounds = next((each.latencies.bounds for each in found if each.latencies.total), ())
    counts = [each.latencies.counts for each in found if each.latencies.bounds == bounds]
    return Measured(
        requests=sum(each.requests for each in found),
        errors=sum(each.errors for each in found),
        latencies=Latencies(bounds=bounds, counts=tuple(map(sum, itertools.zip_longest(*counts, fillvalue=0)))),
    )
