"""Small trees over codes, grown on a loss's slopes and curvatures: what boosting adds up.

Comes in: codes [rows, features] below a bound, and for each row the loss's negative slope and its curvature at the
score so far, times the row's weight. Goes out: a tree that splits by the gain of the loss's second-order approximation
(Friedman 2001, "Greedy function approximation"; Chen and Guestrin 2016, "XGBoost", equations 5 and 7). NumPy alone;
the same rows give the same tree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.objective.metrics import Floats

Codes = npt.NDArray[np.uint8]
_VALUES_AT_ONCE = 1 << 18
"""Rows times features: what fits a core's cache, and yet is not one call per feature of few rows."""


@dataclass(frozen=True, kw_only=True)
class Growth:
    """How trees grow.

    Attributes:
        codes: Codes are below it.
        depth: Splits from the root to a leaf.
        rate: Share of a leaf's best value that it has.
        regularisation: Added to each leaf's curvature.
        least_weight: Curvature that each side of a split has.
    """

    codes: int
    depth: int
    rate: float
    regularisation: float
    least_weight: float


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A whole binary tree: node i has the children 2i+1 (codes up to `cuts[i]` of `features[i]`) and 2i+2.

    Attributes:
        depth: Splits from the root to a leaf.
        features: [2**depth - 1]
        cuts: [2**depth - 1]
        leaves: What is added to a row's score. [2**depth]
    """

    depth: int
    features: npt.NDArray[np.intp]
    cuts: npt.NDArray[np.int64]
    leaves: Floats

    def scores(self, codes: Codes) -> Floats:
        """Return what the tree adds to each row's score. [n, features] → [n]."""
        nodes = np.zeros(len(codes), np.intp)
        rows = np.arange(len(codes))
        for _ in range(self.depth):
            goes_right = codes[rows, self.features[nodes]] > self.cuts[nodes]
            nodes = 2 * nodes + 1 + goes_right
        return self.leaves[nodes - len(self.features)]


def grow(codes: Codes, slopes: Floats, weights: Floats, growth: Growth) -> Tree:
    """Grow one tree, level by level.

    Args:
        codes: [n, features]
        slopes: The loss's negative slope at each row. [n]
        weights: Its curvature there. [n]
    """
    inner = 2**growth.depth - 1
    features, cuts = np.zeros(inner, np.intp), np.full(inner, growth.codes, np.int64)
    nodes = np.zeros(len(codes), np.intp)
    for level in range(growth.depth):
        first, width = 2**level - 1, 2**level
        chosen = _best_splits(codes, slopes, weights, nodes - first, width, growth)
        features[first : first + width], cuts[first : first + width] = chosen
        goes_right = codes[np.arange(len(codes)), features[nodes]] > cuts[nodes]
        nodes = 2 * nodes + 1 + goes_right
    sums = [np.bincount(nodes - inner, weights=of, minlength=inner + 1) for of in (slopes, weights)]
    leaves = growth.rate * sums[0] / (sums[1] + growth.regularisation)
    return Tree(depth=growth.depth, features=features, cuts=cuts, leaves=leaves)


def _best_splits(
    codes: Codes, slopes: Floats, weights: Floats, nodes: npt.NDArray[np.intp], width: int, growth: Growth
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Return of each node of a level the feature and the last code that goes left; no split: all go left."""
    best = np.zeros(width)
    features, cuts = np.zeros(width, np.intp), np.full(width, growth.codes, np.int64)
    at_once = max(1, _VALUES_AT_ONCE // max(len(codes), 1))
    for first in range(0, codes.shape[1], at_once):
        gains = _gains(codes[:, first : first + at_once], slopes, weights, nodes, width, growth)
        flat = gains.transpose(1, 0, 2).reshape(width, -1)  # [width, features * codes]
        place = flat.argmax(axis=1)
        gain = flat[np.arange(width), place]
        better = gain > best
        feature, cut = np.divmod(place, growth.codes)
        best[better], features[better], cuts[better] = gain[better], first + feature[better], cut[better]
    return features, cuts


def _gains(
    codes: Codes, slopes: Floats, weights: Floats, nodes: npt.NDArray[np.intp], width: int, growth: Growth
) -> Floats:
    """Return what each split gains, 0 where a side is too light. [n, features] → [features, width, codes]."""
    count, added = codes.shape[1], growth.regularisation
    offsets = np.arange(count) * (width * growth.codes)
    places = (codes + (nodes * growth.codes)[:, None] + offsets).ravel()  # [n * features]
    left_slopes, left_weights = (
        np.bincount(places, np.repeat(of, count), minlength=count * width * growth.codes)
        .reshape(count, width, growth.codes)
        .cumsum(axis=2)
        for of in (slopes, weights)
    )
    right_slopes, right_weights = (left[..., -1:] - left for left in (left_slopes, left_weights))
    gains: Floats = (
        left_slopes**2 / (left_weights + added)
        + right_slopes**2 / (right_weights + added)
        - left_slopes[..., -1:] ** 2 / (left_weights[..., -1:] + added)
    )
    least = growth.least_weight
    return np.where((left_weights >= least) & (right_weights >= least), gains, 0.0)
