"""Slices of a split: the rows with one value in a column, as the metrics are also given for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.objective.bootstrap import Rows


@dataclass(frozen=True, kw_only=True)
class Cut:
    """One slice: its column, the value in it as text, and its rows."""

    column: str
    value: str
    rows: Rows


def cut_column(column: str, values: npt.NDArray[np.object_], least: int) -> list[Cut]:
    """Give the slices of a column that are large enough, largest first.

    Args:
        column: Its name.
        values: As bytes. [n]
        least: Rows that a slice must have.
    """
    distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    by_value = np.split(np.argsort(inverse, kind="stable"), np.cumsum(counts)[:-1])
    return [
        Cut(column=column, value=distinct[index].decode(errors="replace"), rows=by_value[index])
        for index in np.argsort(-counts, kind="stable")
        if counts[index] >= least
    ]
