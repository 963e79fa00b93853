"""The test day of each example: what is alike on one day is not independent, so that rows are drawn by day.

Comes in: the test split's files, each of one day, and the keys in the order in which the split was read. Goes out: the
number of each example's day. Only keys are read; the examples have no time of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from trainer.contract.documents import ManifestSplit
from trainer.errors import DataError
from trainer.evaluation.leakage import read_keys
from trainer.objective.evidence import Rows
from trainer.storage import Storage


@dataclass(frozen=True, kw_only=True)
class Days:
    """The days of a split.

    Attributes:
        names: As `2013-11-19`, the first one first. [n_days]
        of_row: Number of each example's day. [n]
    """

    names: tuple[str, ...]
    of_row: Rows

    def rows(self, among: npt.NDArray[np.bool_] | None = None) -> list[Rows]:
        """Return the examples of each day. [n_days] of [n_rows].

        Args:
            among: Which examples are counted at all, and numbered; None: all. [n]
        """
        of_row = self.of_row if among is None else self.of_row[among]
        return [np.flatnonzero(of_row == day) for day in range(len(self.names))]


def find_days(split: ManifestSplit, key: str, keys: npt.NDArray[np.object_], storage: Storage) -> Days:
    """Return the day of each example.

    Args:
        split: Whose files are read.
        key: Column that names an example.
        keys: As bytes. [n]

    Raises:
        DataError: A file cannot be read, or does not hold these examples.
    """
    names = sorted({file.span for file in split.files})
    stored, days = [pa.array([], pa.binary())], [np.array([], np.intp)]
    for number, name in enumerate(names):
        found = list(read_keys([file for file in split.files if file.span == name], key, storage))
        stored += found
        days.append(np.full(sum(map(len, found)), number, np.intp))
    place = pc.index_in(pa.array(keys, pa.binary()), value_set=pa.concat_arrays(stored))
    if place.null_count:
        raise DataError("split test", f"{place.null_count} keys are in none of its files", "each in one")
    of_row: Rows = np.concatenate(days)[place.to_numpy(zero_copy_only=False)]
    return Days(names=tuple(names), of_row=of_row)
