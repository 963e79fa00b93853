"""Raw columns as reference lines read them: standardised columns for the linear model, codes for trees.

Comes in: numbers with NaN and texts with b"" for a missing value, of the rows that lines are fitted on; later of any
rows. Goes out: a matrix. What is counted (means, categories, edges) is of the fitted rows alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from trainer.objective.metrics import Floats
from trainer.objective.trees import Codes

Values = npt.NDArray[np.float64] | npt.NDArray[np.object_]
Columns = Mapping[str, Values]
"""By name, [n] each."""

MAX_CODES = 64
MAX_WIDTH = 300
"""Columns of the linear model's matrix, the constant one aside."""
_MOST_CATEGORIES = 50
_FARTHEST = 8.0
"""Deviations from the mean beyond which a number counts as there."""
_PRIOR = 10.0
"""Rows that a category is believed to have had at the overall rate."""


def is_text(values: Values) -> bool:
    """Return whether a column holds texts."""
    return values.dtype.kind == "O"


class Design:
    """The linear model's matrix.

    Numbers are standardised, missing ones are 0 and have a column of their own; the most frequent categories have a
    column each, all others have none.

    Args:
        columns: Of the fitted rows.
    """

    def __init__(self, columns: Columns) -> None:
        self._numbers = {name: _moments(values) for name, values in columns.items() if not is_text(values)}
        self._gaps = [name for name in self._numbers if np.isnan(columns[name].astype(np.float64)).any()]
        texts = [name for name, values in columns.items() if is_text(values)]
        left = max(MAX_WIDTH - len(self._numbers) - len(self._gaps), 0)
        most = min(_MOST_CATEGORIES, left // max(len(texts), 1))
        self._places = {name: _most_frequent(columns[name], most) for name in texts}

    def matrix(self, columns: Columns) -> Floats:
        """Return the matrix, its last column all ones. [n, width + 1]."""
        parts = [np.ones((len(next(iter(columns.values()))), 1))]
        for name, places in self._places.items():
            parts.append(_ones(_coded(columns[name], places), len(places)))
        for name in self._gaps:
            parts.append(np.isnan(columns[name].astype(np.float64))[:, None].astype(np.float64))
        for name, (mean, deviation) in self._numbers.items():
            far = (columns[name].astype(np.float64) - mean) / deviation
            parts.append(np.nan_to_num(np.clip(far, -_FARTHEST, _FARTHEST), nan=0.0)[:, None])
        return np.concatenate(parts[::-1], axis=1)


class Coder:
    """The codes that trees split at: 0 is a missing value, numbers are coded between quantiles.

    Categories are put in the sequence of their mean label (Fisher, On grouping for maximum homogeneity, 1958, Journal
    of the American Statistical Association 53), those of few rows near the overall mean.

    Args:
        columns: Of the fitted rows.
        labels: Theirs; of several classes whether it is the most frequent one. [n]
        weights: Theirs. [n]
    """

    def __init__(self, columns: Columns, labels: Floats, weights: Floats) -> None:
        self._means = {
            name: _mean_labels(values, labels, weights) for name, values in columns.items() if is_text(values)
        }
        self._edges = {name: _edges(self._number(name, values)) for name, values in columns.items()}

    def codes(self, columns: Columns) -> Codes:
        """Return codes below MAX_CODES. [n, features]."""
        coded = []
        for name, edges in self._edges.items():
            numbers = self._number(name, columns[name])
            places = np.searchsorted(edges, numbers, side="right") + 1
            coded.append(np.where(np.isnan(numbers), 0, places).astype(np.uint8))
        return np.stack(coded, axis=1)

    def _number(self, name: str, values: Values) -> Floats:
        means = self._means.get(name)
        if means is None:
            return values.astype(np.float64)
        return np.array([means.get(value, np.nan) for value in values], np.float64)


def _moments(values: Values) -> tuple[float, float]:
    numbers = values.astype(np.float64)
    there = numbers[~np.isnan(numbers)]
    if not there.size:
        return 0.0, 1.0
    return float(there.mean()), float(there.std()) or 1.0


def _most_frequent(values: Values, most: int) -> dict[bytes, int]:
    """Return the column of each of the most frequent categories that two rows have, equally frequent ones by name."""
    ranked = sorted((-count, name) for name, count in Counter(values.tolist()).items())
    return {name: place for place, (count, name) in enumerate(ranked[:most]) if count <= -2}


def _coded(values: Values, places: Mapping[bytes, int]) -> npt.NDArray[np.intp]:
    return np.array([places.get(value, -1) for value in values], np.intp)


def _ones(places: npt.NDArray[np.intp], width: int) -> Floats:
    """Return a column per place, 1 in each row's own; -1: in none. [n] → [n, width]."""
    matrix = np.zeros((len(places), width))
    rows = np.flatnonzero(places >= 0)
    matrix[rows, places[rows]] = 1.0
    return matrix


def _mean_labels(values: Values, labels: Floats, weights: Floats) -> dict[bytes, float]:
    """Return each category's mean label, drawn to the overall one; a missing value is none."""
    numbered: dict[bytes, int] = {}
    places = np.array([numbered.setdefault(value, len(numbered)) for value in values], np.intp)
    overall, unit = float(np.average(labels, weights=weights)), float(weights.mean())
    sums = np.bincount(places, weights * labels, minlength=len(numbered)) + _PRIOR * unit * overall
    means = sums / (np.bincount(places, weights, minlength=len(numbered)) + _PRIOR * unit)
    return {name: mean for name, mean in zip(numbered, means.tolist(), strict=True) if name}


def _edges(numbers: Floats) -> Floats:
    there = numbers[~np.isnan(numbers)]
    distinct = np.unique(there)
    if len(distinct) < MAX_CODES - 1:
        return (distinct[1:] + distinct[:-1]) / 2
    return np.unique(np.quantile(there, np.linspace(0, 1, MAX_CODES - 1)[1:-1]))
