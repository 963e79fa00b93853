"""Slices of a split: the rows with one value in a column or two, and groups of rows that belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.objective.evidence import Rows
from trainer.objective.metrics import Floats

CROSS = " & "


@dataclass(frozen=True, kw_only=True)
class Cut:
    """One slice: its column, the value in it as text, and its rows."""

    column: str
    value: str
    rows: Rows


def cut(
    columns: Mapping[str, npt.NDArray[np.object_]],
    plain: Sequence[str],
    crossed: Sequence[Sequence[str]],
    least: int,
    weights: Floats | None = None,
) -> dict[str, list[Cut]]:
    """Return the slices that are large enough, largest first, by column or columns.

    Args:
        columns: Values as bytes, by name. [n] each
        plain: Columns that are cut by.
        crossed: Pairs of them.
        least: Rows that a slice must have.
        weights: Of the rows: a slice of which none counts is left out; None: all count the same. [n]
    """
    pairs = {CROSS.join(pair): columns[pair[0]] + CROSS.encode() + columns[pair[1]] for pair in crossed}
    every = {name: columns[name] for name in plain} | pairs
    cuts = {name: cut_column(name, values, least) for name, values in every.items()}
    if weights is None:
        return cuts
    return {name: [part for part in parts if weights[part.rows].any()] for name, parts in cuts.items()}


def number_groups(values: npt.NDArray[np.object_]) -> Rows:
    """Return the number of each row's group; a row without a value is a group of its own. [n] → [n]."""
    _, groups = np.unique(values, return_inverse=True)
    missing = np.flatnonzero(values == b"")
    groups[missing] = len(values) + np.arange(len(missing))
    return np.unique(groups, return_inverse=True)[1]


def cut_column(column: str, values: npt.NDArray[np.object_], least: int) -> list[Cut]:
    """Return the slices of a column that are large enough, largest first.

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
