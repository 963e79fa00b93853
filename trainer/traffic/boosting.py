"""Gradient boosting of small trees over codes: finds what single columns do not show.

In: codes [rows, features] and who is a request. Out: a score per row. Trees split at a code, by the gain of the
logistic loss (Friedman 2001, "Greedy function approximation"; Chen and Guestrin 2016, "XGBoost", equation 7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.traffic.columns import MAX_CODES, Codes

TREES, DEPTH, RATE, REGULARISATION, LEAST_WEIGHT = 60, 3, 0.2, 5.0, 5.0
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A whole binary tree: node i has the children 2i+1 (codes up to `cuts[i]` of `features[i]`) and 2i+2."""

    features: npt.NDArray[np.intp]
    cuts: npt.NDArray[np.int64]
    leaves: Numbers

    def scores(self, codes: Codes) -> Numbers:
        """Return what the tree adds to each row's score."""
        nodes = np.zeros(len(codes), np.intp)
        rows = np.arange(len(codes))
        for _ in range(DEPTH):
            goes_right = codes[rows, self.features[nodes]] > self.cuts[nodes]
            nodes = 2 * nodes + 1 + goes_right
        return self.leaves[nodes - len(self.features)]


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
        tree = _grow(codes, asked - probabilities, probabilities * (1 - probabilities))
        trees.append(tree)
        scores += tree.scores(codes)
    return Boosted(start=start, trees=tuple(trees))


def _grow(codes: Codes, slopes: Numbers, weights: Numbers) -> Tree:
    """Grow one tree, level by level, on the loss's slopes and curvatures."""
    inner = 2**DEPTH - 1
    features, cuts = np.zeros(inner, np.intp), np.full(inner, MAX_CODES, np.int64)
    nodes = np.zeros(len(codes), np.intp)
    for level in range(DEPTH):
        first, width = 2**level - 1, 2**level
        chosen = _best_splits(codes, slopes, weights, nodes - first, width)
        features[first : first + width], cuts[first : first + width] = chosen
        goes_right = codes[np.arange(len(codes)), features[nodes]] > cuts[nodes]
        nodes = 2 * nodes + 1 + goes_right
    sums = [np.bincount(nodes - inner, weights=of, minlength=inner + 1) for of in (slopes, weights)]
    return Tree(features=features, cuts=cuts, leaves=RATE * sums[0] / (sums[1] + REGULARISATION))


def _best_splits(
    codes: Codes, slopes: Numbers, weights: Numbers, nodes: npt.NDArray[np.intp], width: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Return of each node of a level the feature and the last code that goes left; no split: all go left."""
    best = np.zeros(width)
    features, cuts = np.zeros(width, np.intp), np.full(width, MAX_CODES, np.int64)
    for feature in range(codes.shape[1]):
        places = nodes * MAX_CODES + codes[:, feature]
        left_slopes, left_weights = (
            np.bincount(places, weights=of, minlength=width * MAX_CODES).reshape(width, MAX_CODES).cumsum(axis=1)
            for of in (slopes, weights)
        )
        right_slopes, right_weights = (left[:, -1:] - left for left in (left_slopes, left_weights))
        gains = sum(
            of**2 / (over + REGULARISATION) for of, over in ((left_slopes, left_weights), (right_slopes, right_weights))
        ) - left_slopes[:, -1:] ** 2 / (left_weights[:, -1:] + REGULARISATION)
        gains = np.where((left_weights >= LEAST_WEIGHT) & (right_weights >= LEAST_WEIGHT), gains, 0.0)
        cut = gains.argmax(axis=1)
        gain = gains[np.arange(width), cut]
        better = gain > best
        best[better], features[better], cuts[better] = gain[better], feature, cut[better]
    return features, cuts
