"""How much a model relies on a feature: how much its loss rises when the feature's values come from other rows.

Comes in: the losses of rows as they are, and with one feature's values taken from other rows. Goes out: the mean rise
and its interval. Breiman, Random Forests (2001), Machine Learning 45; the mean over all pairs of rows is a U-statistic
(Fisher, Rudin, Dominici, All Models are Wrong, but Many are Useful, 2019, JMLR 20), in which each row has a part twice:
by its own loss, and by what its value does to others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.objective.bootstrap import student_quantile
from trainer.objective.evidence import Rows
from trainer.objective.metrics import Floats


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean with its interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """Which rows take values from which; the same for every feature and model, so that these are compared in pairs.

    Attributes:
        rows: That take values, each once. [m]
        donors: From which row, by repeat: each donor once. [repeats, m]
        shares: How much each of the rows counts. [m]
        units: Number of each row's unit: the row itself, or the group or day that it belongs to. [k]
        effective: Units that say as much, were they equal.
        confidence: Of the intervals.
    """

    rows: Rows
    donors: Rows
    shares: Floats
    units: Rows
    effective: float
    confidence: float

    def measure(self, rises: Floats) -> Interval:
        """Return the mean rise with its interval. [repeats, m], of the first repeats or all.

        Pairs of rows of one unit do not count: a day's weather is no other weather for another row of that day.

        The variance is the jackknife's over units (Arvesen, Jackknifing U-Statistics, 1969, Annals of Mathematical
        Statistics 40): a unit is left out with its rows' own losses and with what its values do to other rows. Both
        parts also hold which pairs happened to be drawn, by as much as repeats differ: that counts once in the mean and
        twice in the jackknife, so that the larger part is taken off. Few units make the interval as much wider as
        Student's quantiles are.
        """
        repeats, m = rises.shape
        donors = self.donors[:repeats]
        counts = self.shares * (self.units[self.rows] != self.units[donors])  # [repeats, m]
        mean, total = float(np.average(rises, weights=counts)), float(counts.sum()) / repeats
        apart, lent = self._by_role(counts * (rises - mean), donors)
        involved = self._by_unit(*self._by_role(counts, donors))
        left = np.maximum(total - involved, total / m)
        units = np.count_nonzero(involved)
        variance = (1 - 1 / units) * float(np.square(self._by_unit(apart, lent) / left).sum())
        if repeats > 1:
            drawn = max(float(part.var(axis=0, ddof=1).sum()) for part in (apart, lent)) / repeats / total**2
            variance = max(variance - drawn, variance / 2)
        spread = float(np.sqrt(variance)) * student_quantile((1 + self.confidence) / 2, self.effective - 1)
        return Interval(mean=mean, low=mean - spread, high=mean + spread)

    @staticmethod
    def _by_role(values: Floats, donors: Rows) -> tuple[Floats, Floats]:
        """Return pairs' values by the row that takes, and by the row that gives. [repeats, m] → the same, twice."""
        return values, np.take_along_axis(values, np.argsort(donors, axis=1), axis=1)

    def _by_unit(self, taken: Floats, given: Floats) -> Floats:
        """Return the sum over all pairs that a unit is part of, mean over repeats. [repeats, m], twice → [units]."""
        count = int(self.units.max()) + 1
        by_taker = np.bincount(self.units[self.rows], taken.mean(axis=0), count)
        by_giver = np.bincount(self.units[np.sort(self.donors[0])], given.mean(axis=0), count)
        return np.asarray(by_taker + by_giver, np.float64)


def draw_donors(donors: Rows, repeats: int, seed: int) -> Rows:
    """Return which row each row takes a value from: in each repeat each donor gives one. [m] → [repeats, m]."""
    random = np.random.default_rng(seed)
    return np.stack([random.permutation(donors) for _ in range(repeats)])
