"""How reference lines are fitted: a linear model by Newton's method, small trees by boosting. NumPy alone.

Comes in: a matrix or codes, labels, weights, and the loss. Goes out: scores of any rows. The same rows, seed and
machine give the same line; a clock is asked only whether to give up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from trainer.evaluation.reference.columns import MAX_CODES
from trainer.evaluation.reference.losses import Loss
from trainer.objective.metrics import Floats
from trainer.objective.trees import Codes, Growth, Tree, grow

Check = Callable[[], None]
"""Raises where the time is up."""

GROWTH = Growth(codes=MAX_CODES, depth=4, rate=0.1, regularisation=1.0, least_weight=1.0)
MAX_ROUNDS = 100
_MAX_TREES = 400
"""Over all classes: more make answers slow."""
_LEAST_ROUNDS = 20
_TREE_WORK, _LINEAR_WORK = 3e8, 2e7
"""Row times feature times tree; row times column times class of one step: 20 s each on one core of 2020."""
_PATIENCE = 20
_HELD_BACK = 5
"""One row in so many chooses how many rounds there are."""
_PENALTY = 1.0
_NEWTON_STEPS, _BOUNDED_STEPS = 25, 100
_CLOSE = 1e-6


def most_linear_rows(width: int, outputs: int) -> int:
    """Return how many rows a linear model is fitted on at most."""
    return int(_LINEAR_WORK // (width * outputs))


def most_tree_rows(features: int, outputs: int) -> int:
    """Return how many rows trees are fitted on at most: the fewest rounds must fit into the work."""
    return int(_TREE_WORK // (features * outputs * _LEAST_ROUNDS))


def fit_linear(matrix: Floats, labels: Floats, weights: Floats, loss: Loss, check: Check) -> Floats:
    """Return the coefficients, regularised by half their squares but for the constant's. [width, outputs].

    One output by Newton's method, steps halved until the loss falls; several by the bound of their curvature, with
    Nesterov's momentum (O'Donoghue, Candès, Adaptive restart for accelerated gradient schemes, 2015).

    Args:
        matrix: The last column is the constant. [n, width]
        labels: [n]
        weights: Their mean is 1. [n]
    """
    penalty = np.full((matrix.shape[1], 1), _PENALTY)
    penalty[-1] = _CLOSE
    if loss.outputs == 1:
        return _newton(matrix, labels, weights, loss, penalty, check)
    curvature = loss.bound * (matrix * weights[:, None]).T @ matrix + np.diag(penalty[:, 0])
    inverse = np.linalg.inv(curvature)
    now = ahead = np.zeros((matrix.shape[1], loss.outputs))
    age = 0
    for _ in range(_BOUNDED_STEPS):
        check()
        slopes = matrix.T @ (loss.slopes(loss.start() + matrix @ ahead, labels) * weights[:, None]) - penalty * ahead
        following = ahead + inverse @ slopes
        age = 0 if ((following - now) * slopes).sum() < 0 else age + 1
        ahead = following + age / (age + 3) * (following - now)
        moved = np.abs(following - now).max()
        now = following
        if moved < _CLOSE:
            break
    return now


def _newton(matrix: Floats, labels: Floats, weights: Floats, loss: Loss, penalty: Floats, check: Check) -> Floats:
    def total(coefficients: Floats) -> float:
        losses = loss.losses(loss.start() + matrix @ coefficients, labels)
        return float(losses @ weights + (penalty * coefficients**2).sum() / 2)

    now = np.zeros((matrix.shape[1], 1))
    best = total(now)
    for _ in range(_NEWTON_STEPS):
        check()
        scores = loss.start() + matrix @ now
        slopes = matrix.T @ (loss.slopes(scores, labels) * weights[:, None]) - penalty * now
        curvature = (matrix * (loss.curvatures(scores) * weights[:, None])).T @ matrix + np.diag(penalty[:, 0])
        step = np.linalg.solve(curvature, slopes)
        following, reached = now + step, total(now + step)
        while reached > best and np.abs(step).max() > _CLOSE:
            step = step / 2
            following, reached = now + step, total(now + step)
        if reached > best:
            break
        fell, now, best = best - reached, following, reached
        if fell < _CLOSE * len(labels) * _CLOSE:
            break
    return now


@dataclass(frozen=True, kw_only=True)
class Boosted:
    """A sum of trees.

    Attributes:
        start: [outputs]
        rounds: Trees by round and output.
    """

    start: Floats
    rounds: tuple[tuple[Tree, ...], ...]

    def scores(self, codes: Codes) -> Floats:
        """Return scores. [n, features] → [n, outputs]."""
        scores = np.tile(self.start, (len(codes), 1))
        for trees in self.rounds:
            for place, tree in enumerate(trees):
                scores[:, place] += tree.scores(codes)
        return scores


def fit_trees(codes: Codes, labels: Floats, weights: Floats, loss: Loss, seed: int, check: Check) -> Boosted:
    """Return trees, as many rounds of them as are best for a fifth of the rows, then grown on all.

    Args:
        codes: [n, features]
        labels: [n]
        weights: Their mean is 1. [n]
        seed: Of which rows are held back.
    """
    rows, features = codes.shape
    work = int(_TREE_WORK // (rows * features * loss.outputs))
    most = max(1, min(MAX_ROUNDS, work, _MAX_TREES // loss.outputs))
    held = np.random.default_rng(seed).permutation(rows) % _HELD_BACK == 0
    other, found = np.flatnonzero(held), []
    scores = np.tile(loss.start(), (len(other), 1))
    for trees in itertools.islice(_boost(codes[~held], labels[~held], weights[~held], loss, check), most):
        for place, tree in enumerate(trees):
            scores[:, place] += tree.scores(codes[other])
        found.append(float(loss.losses(scores, labels[other]) @ weights[other]))
        if len(found) - int(np.argmin(found)) > _PATIENCE:
            break
    best = int(np.argmin(found)) + 1
    rounds = tuple(itertools.islice(_boost(codes, labels, weights, loss, check), best))
    return Boosted(start=loss.start(), rounds=rounds)


def _boost(codes: Codes, labels: Floats, weights: Floats, loss: Loss, check: Check) -> Iterator[tuple[Tree, ...]]:
    """Yield round after round, without an end."""
    scores = np.tile(loss.start(), (len(codes), 1))
    while True:
        check()
        slopes = loss.slopes(scores, labels) * weights[:, None]
        curvatures = loss.curvatures(scores) * weights[:, None]
        trees = tuple(grow(codes, slopes[:, place], curvatures[:, place], GROWTH) for place in range(loss.outputs))
        for place, tree in enumerate(trees):
            scores[:, place] += tree.scores(codes)
        yield trees
