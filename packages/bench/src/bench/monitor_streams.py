"""Streams of requests for `make bench-monitor`: drawn from a month's flights, and shifted from an hour on if asked.

In: flights (`bench.flights`). Out: for each hour and feature the distance that the monitor would measure in the 24
hours before it, by the core's own functions, from counts: no cloud, no query.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from bench import monitor_baselines
from bench.flights import CATEGORIES, NUMBERS, flights_by_day
from retraining.core.documents.checks import CategoricalStatistics, ValueCount
from retraining.core.monitoring import distributions

WINDOW_HOURS = 24
FEATURES = (*CATEGORIES, *NUMBERS)
Buckets = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Shift:
    """What happens to one feature from an hour on, in each request alone.

    `moved`: a number grows by `size` standard deviations. `share`: the share of a category grows by `size`. `outage`:
    the feature is missing in a share `size` of the requests.
    """

    kind: Literal["moved", "share", "outage"]
    feature: str
    size: float


class Baseline:
    """Training data: of each feature its statistics, and the bucket of any value as the monitor's query counts it."""

    def __init__(self, columns: Mapping[str, npt.NDArray[np.object_]]) -> None:
        self.columns = columns
        self.rows = len(next(iter(columns.values())))
        self._edges: dict[str, list[float]] = {}
        self._shares: dict[str, list[float]] = {}
        self._known: dict[str, list[str]] = {}
        for name in FEATURES:
            if name in NUMBERS:
                self._take_numbers(name)
            else:
                self._take_categories(name)

    def buckets(self, name: str, values: npt.NDArray[np.object_]) -> Buckets:
        """Return the bucket of each value: bins or values in sequence, then the missing, then the unseen."""
        if name in self._edges:
            numbers = values.astype(float)
            places = np.searchsorted(self._edges[name], numbers, side="right")
            return np.where(np.isnan(numbers), len(self._edges[name]) + 1, places).astype(np.int64)
        known = {value: place for place, value in enumerate(self._known[name])}
        missing, unseen = len(known), len(known) + 1
        return np.array([missing if value is None else known.get(value, unseen) for value in values], np.int64)

    def size(self, name: str) -> int:
        """Return how many buckets a feature has."""
        return len(self._shares[name])

    def distance(self, name: str, counts: Buckets) -> float:
        """Return what the monitor measures of counts by bucket."""
        shares = (counts / counts.sum()).tolist()
        if name in self._edges:
            return distributions.jensen_shannon(self._shares[name], shares)
        p, q = (_by_bucket(side) for side in (self._shares[name], shares))
        return distributions.l_infinity(p, q)

    def deviation(self, name: str) -> float:
        """Return the standard deviation of a number."""
        return float(np.nanstd(self.columns[name].astype(float)))

    def _take_numbers(self, name: str) -> None:
        numbers = self.columns[name].astype(float).tolist()
        baseline = monitor_baselines.numeric_statistics([None if math.isnan(each) else each for each in numbers])
        self._edges[name] = distributions.bin_edges(baseline)
        self._shares[name] = distributions.bin_shares(baseline, self.rows, self._edges[name])

    def _take_categories(self, name: str) -> None:
        values, counts = np.unique([value for value in self.columns[name] if value is not None], return_counts=True)
        top = [ValueCount(value=str(value), count=int(count)) for value, count in zip(values, counts, strict=True)]
        nulls = self.rows - int(counts.sum())
        baseline = CategoricalStatistics(kind="categorical", nulls=nulls, distinct=len(top), top=tuple(top))
        shares = distributions.category_shares(baseline, self.rows)
        self._known[name] = [item.value for item in top]
        self._shares[name] = [
            *(shares[value] for value in self._known[name]),
            shares[None],
            shares[distributions.UNSEEN],
        ]


@cache
def year() -> tuple[dict[str, npt.NDArray[np.object_]], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return all flights' features, and each one's local month and minute of the year, by scheduled departure."""
    table, day = flights_by_day()
    days = pc.day_of_year(day).to_numpy() - 1
    minutes = days * 1440 + table["departure_minute"].to_numpy()
    sequence = np.argsort(minutes, kind="stable")
    columns = {name: np.array(table[name].to_pylist(), dtype=object)[sequence] for name in FEATURES}
    return columns, pc.month(day).to_numpy()[sequence], minutes[sequence]


def month_of(month: int) -> Baseline:
    """Return the flights of one month."""
    columns, months, _ = year()
    rows = np.flatnonzero(months == month)
    return Baseline({name: values[rows] for name, values in columns.items()})


def draw(
    baseline: Baseline,
    names: Sequence[str],
    per_window: int,
    hours: int,
    seed: int,
    shift: Shift | None = None,
    at: int = 0,
) -> dict[str, list[float]]:
    """Return each feature's distance hour by hour, in a stream whose requests are drawn from the baseline's rows.

    Args:
        baseline: What is drawn from, and measured against.
        names: The features.
        per_window: Requests of a window.
        hours: How many windows end one after the other; before the first is a whole one.
        seed: Of the draw.
        shift: What happens to one of them.
        at: From which hour on: the first window that has a shifted hour ends one hour later.
    """
    random = np.random.default_rng(seed)
    each = per_window // WINDOW_HOURS
    rows = random.integers(0, baseline.rows, (hours + WINDOW_HOURS, each))
    found = {}
    for name in names:
        buckets = baseline.buckets(name, baseline.columns[name])[rows]
        if shift and shift.feature == name:
            begin = at + WINDOW_HOURS
            buckets[begin:] = _shifted(baseline, shift, baseline.columns[name][rows[begin:]], random)
        counts = np.stack([np.bincount(hour, minlength=baseline.size(name)) for hour in buckets])
        sums = np.concatenate([np.zeros((1, counts.shape[1]), counts.dtype), counts.cumsum(axis=0)])
        windows = (sums[WINDOW_HOURS:] - sums[:-WINDOW_HOURS])[1:]
        found[name] = [baseline.distance(name, window) for window in windows]
    return found


def _by_bucket(shares: Sequence[float]) -> dict[distributions.Bucket, float]:
    return {str(place): share for place, share in enumerate(shares)}


def _shifted(baseline: Baseline, shift: Shift, values: npt.NDArray[np.object_], random: np.random.Generator) -> Buckets:
    flat = values.ravel()
    if shift.kind == "moved":
        moved = flat.astype(float) + shift.size * baseline.deviation(shift.feature)
        return baseline.buckets(shift.feature, moved.astype(object)).reshape(values.shape)
    instead = None
    share = shift.size
    if shift.kind == "share":
        names, counts = np.unique(baseline.columns[shift.feature], return_counts=True)
        instead = names[counts.argmin()]
        share /= 1 - counts.min() / counts.sum()
    chosen = flat.copy()
    chosen[random.random(len(flat)) < share] = instead
    return baseline.buckets(shift.feature, chosen).reshape(values.shape)


def real_windows(month: int, training_days: int) -> tuple[dict[str, list[float]], list[int]]:
    """Return each feature's distance in the real windows of a month, and how many flights each has.

    Args:
        month: Whose hours; each window's requests are the flights that were due in its 24 hours.
        training_days: How many days before the month are the training data.
    """
    columns, months, minutes = year()
    start = int(minutes[months == month].min()) // 1440 * 1440
    end = int(minutes[months == month].max()) // 1440 * 1440 + 1440
    train = slice(*np.searchsorted(minutes, [start - training_days * 1440, start]))
    baseline = Baseline({name: values[train] for name, values in columns.items()})
    ends = range(start + WINDOW_HOURS * 60, end + 1, 60)
    bounds = [np.searchsorted(minutes, [close - WINDOW_HOURS * 60, close]) for close in ends]
    found = {}
    for name, values in columns.items():
        first, last = bounds[0][0], bounds[-1][1]
        buckets, size = baseline.buckets(name, values[first:last]), baseline.size(name)
        counts = [np.bincount(buckets[low - first : high - first], minlength=size) for low, high in bounds]
        found[name] = [baseline.distance(name, window) for window in counts]
    return found, [int(high - low) for low, high in bounds]
