"""Distances between two distributions over the same values or bins, with how much sampling moves them.

Categories: L-infinity, the largest change of any value's share, unseen and missing values included. Numbers:
Jensen-Shannon divergence in base 2 over bins, with one for missing values:
`JSD(P, Q) = (KL(P || M) + KL(Q || M)) / 2`, `M = (P + Q) / 2` (Lin 1991, "Divergence measures based on the Shannon
entropy"). Both lie in [0, 1]; they are the distances of Vertex AI Model Monitoring and TensorFlow Data Validation. Both
are effect sizes: their limits mean the same for a hundred requests and for a hundred million, and no significance is
computed. What few examples make of them is said by an interval: the delta method, 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

Z95 = 1.959964
"""Of the normal distribution: 95 % lie within so many deviations."""


class Unseen(Enum):
    """The bucket of all values that the baseline does not have: no value is equal to it."""

    UNSEEN = "unseen"


UNSEEN = Unseen.UNSEEN
Bucket = str | Unseen | None
"""A value, all unseen ones, or (None) the missing ones."""


@dataclass(frozen=True, kw_only=True)
class Distance:
    """How far two distributions are from each other, and the interval of that."""

    measure: str
    value: float
    low: float
    high: float
    most: Bucket = ""
    """What changed most: missing (None) or unseen values; else it is not named."""


def l_infinity(p: Mapping[Bucket, float], q: Mapping[Bucket, float]) -> float:
    """Return the largest difference of any value's share, over the values of both."""
    return max((abs(p.get(value, 0.0) - q.get(value, 0.0)) for value in {*p, *q}), default=0.0)


def jensen_shannon(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the Jensen-Shannon divergence, base 2, of two distributions over the same bins (each sums to 1)."""
    divergence = 0.0
    for a, b in zip(p, q, strict=True):
        middle = (a + b) / 2
        divergence += sum(share * math.log2(share / middle) for share in (a, b) if share > 0) / 2
    return min(1.0, max(0.0, divergence))


def between_values(p: Mapping[Bucket, float], q: Mapping[Bucket, float], rows: tuple[int, int]) -> Distance:
    """Return the L-infinity distance of two distributions of values.

    Args:
        p: Shares before.
        q: Shares now.
        rows: How many examples `p` and `q` rest on.
    """
    changes = {value: abs(p.get(value, 0.0) - q.get(value, 0.0)) for value in {*p, *q}}
    # Of several equal ones always the same: the order of a set is not.
    most = max(changes, key=lambda value: (changes[value], str(value)), default="")
    shares = (p.get(most, 0.0), q.get(most, 0.0))
    deviation = math.sqrt(sum(share * (1 - share) / count for share, count in zip(shares, rows, strict=True) if count))
    return _distance("l_infinity", changes.get(most, 0.0), deviation, most)


def between_bins(p: Sequence[float], q: Sequence[float], rows: tuple[int, int]) -> Distance:
    """Return the Jensen-Shannon distance of two distributions over bins, the last of which has the missing values.

    Args:
        p: Shares before.
        q: Shares now.
        rows: How many examples `p` and `q` rest on.
    """
    variance = 0.0
    for shares, others, count in ((p, q, rows[0]), (q, p, rows[1])):
        slopes = [math.log2(2 * a / (a + b)) / 2 if a > 0 else 0.0 for a, b in zip(shares, others, strict=True)]
        mean = sum(share * slope for share, slope in zip(shares, slopes, strict=True))
        if count:
            squares = sum(share * slope**2 for share, slope in zip(shares, slopes, strict=True))
            variance += max(0.0, squares - mean**2) / count
    missing = bool(p) and abs(p[-1] - q[-1]) >= max(abs(a - b) for a, b in zip(p, q, strict=True)) > 0
    return _distance("jensen_shannon", jensen_shannon(p, q), math.sqrt(variance), None if missing else "")


def _distance(measure: str, value: float, deviation: float, most: Bucket) -> Distance:
    low, high = max(0.0, value - Z95 * deviation), min(1.0, value + Z95 * deviation)
    return Distance(measure=measure, value=value, low=low, high=high, most=most if most in (None, UNSEEN) else "")
