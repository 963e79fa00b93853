"""Columns of requests and training examples as small whole numbers that a tree can split at.

In: Arrow columns. Out: codes [rows, features] of at most 32 values. Edges and the sequence of categories come from the
rows that a classifier is trained on, never from those that it is judged on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from trainer.objective.trees import Codes

MAX_CODES = 32
_PRIOR = 10.0
"""Rows that a category is believed to have had at the overall rate: a rare one says little."""

Values = npt.NDArray[np.float64] | npt.NDArray[np.object_]
Kind = Literal["numeric", "categorical"]


class Encoder:
    """The codes of some columns.

    Args:
        columns: By name; numbers with NaN where one is missing, texts with None.
        kinds: What each is.
        asked: Of each row, whether it is a request.
        rows: On which edges and sequences are found.
    """

    def __init__(
        self,
        columns: Mapping[str, Values],
        kinds: Mapping[str, Kind],
        asked: npt.NDArray[np.bool_],
        rows: npt.NDArray[np.intp],
    ) -> None:
        self._edges: dict[str, npt.NDArray[np.float64]] = {}
        self._rates: dict[str, Mapping[object, float]] = {}
        for name, kind in kinds.items():
            if kind == "categorical":
                self._rates[name] = _rates(columns[name][rows], asked[rows])
                numbers = self._numbers(name, columns[name])[rows]
            else:
                numbers = columns[name].astype(np.float64)[rows]
            there = numbers[~np.isnan(numbers)]
            steps = np.linspace(0, 1, MAX_CODES - 1)[1:-1]
            self._edges[name] = np.unique(np.quantile(there, steps)) if there.size else np.empty(0)

    def encode(self, columns: Mapping[str, Values]) -> Codes:
        """Return the codes [rows, features]: 0 is a missing value."""
        coded = [self._codes(name, columns[name]) for name in self._edges]
        return np.stack(coded, axis=1)

    def _codes(self, name: str, values: Values) -> Codes:
        numbers = self._numbers(name, values) if name in self._rates else values.astype(np.float64)
        places = np.searchsorted(self._edges[name], numbers, side="right") + 1
        return np.where(np.isnan(numbers), 0, places).astype(np.uint8)

    def _numbers(self, name: str, values: Values) -> npt.NDArray[np.float64]:
        """Return of each category how often it was a request; one that was never seen is as a missing one."""
        rates = self._rates[name]
        return np.array([rates.get(value, np.nan) for value in values], np.float64)


def _rates(values: Values, asked: npt.NDArray[np.bool_]) -> dict[object, float]:
    names, places = np.unique([str(value) for value in values if value is not None], return_inverse=True)
    there = np.array([value is not None for value in values], bool)
    counts = np.bincount(places, minlength=len(names))
    requests = np.bincount(places, weights=asked[there], minlength=len(names))
    overall = float(asked.mean())
    rates = (requests + _PRIOR * overall) / (counts + _PRIOR)
    return dict(zip(names.tolist(), rates.tolist(), strict=True))


def group_rows(columns: Sequence[Values]) -> npt.NDArray[np.int64]:
    """Return a number for each row: rows with the same values have the same, so that no fold splits them."""
    groups: npt.NDArray[np.int64] = np.zeros(len(columns[0]), np.int64)
    for values in columns:
        texts = np.array([repr(value) for value in values])
        _, places = np.unique(texts, return_inverse=True)
        _, groups = np.unique(groups * (int(places.max()) + 1) + places, return_inverse=True)
    return groups
