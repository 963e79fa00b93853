"""What sampling alone makes of a distance where there is none: a limit below that would be exceeded by chance.

In: how many bins or how uncertain shares are. Out: a distance that two samples of one distribution seldom exceed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

CHANCE = 0.001
"""How often a distance that is none lies over what sampling makes of it."""
_Z_CHANCE = 3.090232
"""Of the normal distribution: one in 1000 lies over so many deviations."""
_HALVINGS = 24


def chance_of_bins(bins: int, rows: tuple[int, int]) -> float:
    """Return what two samples of one distribution over bins are apart at most, in 999 of 1000 pairs.

    Divided by `(1/n + 1/m) / (8 ln 2)`, the divergence of two samples is chi-square with `bins - 1` degrees of freedom;
    its quantile by Wilson and Hilferty (1931, "The distribution of chi-square"). Where a bin is expected to have two
    rows it is 996 of 1000 pairs.
    """
    free = bins - 1
    if free < 1:
        return 0.0
    part = 2 / (9 * free)
    quantile = free * (1 - part + _Z_CHANCE * math.sqrt(part)) ** 3
    return min(1.0, quantile * sum(1 / count for count in rows if count) / (8 * math.log(2)))


def chance_of_shares(deviations: Sequence[float], per_row: float) -> float:
    """Return what the farthest of some shares differs by at most, in 999 of 1000 pairs of samples of one distribution.

    The chances of all shares to differ by as much, each normal, are at most 1/1000 together. A rare value's share is
    skewed: for that comes the next term of its quantile (Cornish and Fisher 1938, "Moments and cumulants in the
    specification of distributions").

    Args:
        deviations: The standard deviation of each share's difference.
        per_row: `1/n + 1/m` of the samples' rows.
    """
    widest = max(deviations, default=0.0)
    low, high = 0.0, 8 * widest
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = sum(math.erfc(middle / deviation / math.sqrt(2)) for deviation in deviations if deviation)
        low, high = (middle, high) if beyond > CHANCE else (low, middle)
    skew = per_row * max(0.0, (high / widest) ** 2 - 1) / 6 if widest else 0.0
    return min(1.0, high + skew)
