"""Gradient boosting of small trees over codes: finds what single columns do not show.

In: codes [rows, features] and who is a request. Out: a score per row, by the logistic loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.objective.trees import Codes, Growth, Tree, grow
from trainer.traffic.columns import MAX_CODES

TREES = 60
GROWTH = Growth(codes=MAX_CODES, depth=3, rate=0.2, regularisation=5.0, least_weight=5.0)
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Boosted:
    """A sum of trees."""

    start: float
    trees: tuple[Tree, ...]

    def scores(self, codes: Codes) -> Numbers:
        """Return the log odds that each row is a request."""
        return self.start + sum((tree.scores(codes) for tree in self.trees), np.zeros(len(codes)))


def boost(codes: Codes, asked: npt.NDArray[np.bool_]) -> Boosted:
    """Return the classifier of some rows; the same rows give the same one."""
    rate = float(np.clip(asked.mean(), 1e-6, 1 - 1e-6))
    start = float(np.log(rate / (1 - rate)))
    scores, trees = np.full(len(codes), start), []
    for _ in range(TREES):
        probabilities = 1 / (1 + np.exp(-scores))
        tree = grow(codes, asked - probabilities, probabilities * (1 - probabilities), GROWTH)
        trees.append(tree)
        scores += tree.scores(codes)
    return Boosted(start=start, trees=tuple(trees))
