"""Metrics of predictions, exact, in NumPy; each takes weights, so that a bootstrap resamples by counts.

With two classes, label y ∈ {0, 1}, score p [n], weight w:

| metric | formula | source |
|---|---|---|
| auc | P(p⁺ > p⁻) + ½ P(p⁺ = p⁻) over all pairs of a positive and a negative | Hanley, McNeil 1982, Radiology 143 |
| log_loss | -Σ w (y ln p + (1 - y) ln(1 - p)) / Σ w, p clipped to [1e-7, 1 - 1e-7] | Good 1952, JRSS B 14 |
| accuracy | Σ w [p ≥ ½ ⇔ y = 1] / Σ w |  |
| brier | Σ w (p - y)² / Σ w | Brier 1950, Monthly Weather Review 78 |

With more, label y ∈ {0, …, K - 1}, scores p [n, K]:

| metric | formula | source |
|---|---|---|
| auc | mean of each class's AUC against the rest, where it is defined | Provost, Domingos 2000, not weighted |
| log_loss | -Σ w ln p[y] / Σ w, clipped as above | Good 1952 |
| accuracy | Σ w [argmax p = y] / Σ w; of equal scores the first counts |  |
| brier | Σ w Σₖ (pₖ - [y = k])² / Σ w, in [0, 2]: with two classes twice the value above | Brier 1950 |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.contract.documents import Baseline

Values = npt.NDArray[Any]
"""Labels as they stand in the examples. [n]"""
Mask = npt.NDArray[np.bool_]
"""[n]"""
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Weighing = Callable[[Floats], float | None]
"""From weights [n] to a number."""

_CLIP = 1e-7


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Scores in ascending order, ties together: the part of AUC that does not depend on weights.

    Attributes:
        positions: Indices of the examples by score. [n]
        starts: Where each group of equal scores starts in that order. [n_groups]
    """

    positions: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]

    @classmethod
    def of(cls, scores: Floats) -> Ranking:
        """Sort once. [n]."""
        positions = np.argsort(scores, kind="stable")
        ascending = scores[positions]
        starts = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]]))
        return cls(positions=positions, starts=starts)


def auc(labels: Floats, ranking: Ranking, weights: Floats) -> float | None:
    """Return the area under the ROC curve; None where a class is absent. [n], [n] → scalar."""
    positive, negative = weights_by_score(labels, ranking, weights)
    total = positive.sum() * negative.sum()
    if total == 0:
        return None
    below = np.cumsum(negative) - negative
    return float((positive * (below + negative / 2)).sum() / total)


def weights_by_score(labels: Floats, ranking: Ranking, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weight of positives and of negatives at each score, ascending. [n], [n] → [n_groups] each."""
    ranked_weights = weights[ranking.positions]
    positive = ranked_weights * labels[ranking.positions]
    if len(ranking.starts) >= len(ranked_weights):  # no score stands twice
        return positive, ranked_weights - positive
    found = np.add.reduceat(positive, ranking.starts)
    return found, np.add.reduceat(ranked_weights, ranking.starts) - found


def macro_auc(labels: Floats, rankings: Sequence[Ranking], weights: Floats) -> float | None:
    """Return the mean of each class's AUC against the rest; None where it is defined for no class.

    Args:
        labels: [n]
        rankings: Of each class's scores. [n] each
        weights: [n]
    """
    areas = (auc(np.asarray(labels == index, np.float64), ranking, weights) for index, ranking in enumerate(rankings))
    known = [area for area in areas if area is not None]
    return float(np.mean(known)) if known else None


def log_losses(labels: Floats, scores: Floats) -> Floats:
    """Return each example's loss. [n], [n] or [n, K] → [n]."""
    clipped = np.clip(scores, _CLIP, 1 - _CLIP)
    if scores.ndim == 2:
        return np.asarray(-np.log(_of_label(labels, clipped)), np.float64)
    return -(labels * np.log(clipped) + (1 - labels) * np.log1p(-clipped))


def hits(labels: Floats, scores: Floats) -> Floats:
    """Return 1 where the answer is right: the most likely class, with two classes at threshold 0.5. → [n]."""
    if scores.ndim == 2:
        return np.asarray(scores.argmax(axis=1) == labels, np.float64)
    return np.asarray((scores >= 0.5) == (labels == 1), np.float64)


def squared_errors(labels: Floats, scores: Floats) -> Floats:
    """Return each example's squared error, summed over classes. [n], [n] or [n, K] → [n]."""
    if scores.ndim == 2:
        chosen = _of_label(labels, scores)
        return np.asarray(np.square(scores).sum(axis=1) - 2 * chosen + 1, np.float64)
    return np.asarray(np.square(scores - labels), np.float64)


def area(labels: Floats, scores: Floats) -> float | None:
    """Return AUC, with several classes the mean over them; None where it is not defined. [n], [n] or [n, K]."""
    return weigh_area(labels, scores)(np.ones(len(labels)))


def measure_baseline(labels: Floats, classes: int | None = None, weights: Floats | None = None) -> Baseline:
    """Return the metrics of predicting the shares of the classes for every example.

    Args:
        labels: [n]
        classes: How many; None: two, and the label rate is what is predicted.
        weights: None: all count the same. [n]
    """
    weights = np.ones(len(labels)) if weights is None else weights
    if classes is None:
        rate = float(np.average(labels, weights=weights))
        losses = log_losses(labels, np.full(len(labels), rate))
        return Baseline(log_loss=float(np.average(losses, weights=weights)), accuracy=max(rate, 1 - rate))
    shares = weigh_labels(labels, classes, weights) / weights.sum()
    present = np.clip(shares[shares > 0], _CLIP, 1 - _CLIP)
    return Baseline(log_loss=float(-(shares[shares > 0] * np.log(present)).sum()), accuracy=float(shares.max()))


def count_labels(labels: Floats, classes: int) -> Counts:
    """Count the examples of each class. [n] → [K]."""
    return np.bincount(labels.astype(np.int64), minlength=classes)


def weigh_labels(labels: Floats, classes: int, weights: Floats) -> Floats:
    """Return the weight of each class. [n], [n] → [K]."""
    return np.bincount(labels.astype(np.int64), weights, minlength=classes).astype(np.float64)


def confusion(labels: Floats, scores: Floats) -> Counts:
    """Count the examples by class (rows) and most likely class (columns). [n], [n, K] → [K, K]."""
    classes = scores.shape[1]
    cells = labels.astype(np.int64) * classes + scores.argmax(axis=1)
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)


def weigh_area(labels: Floats, scores: Floats) -> Weighing:
    """Return the function from weights to AUC; scores are sorted once."""
    if scores.ndim == 1:
        ranking = Ranking.of(scores)
        return lambda weights: auc(labels, ranking, weights)
    rankings = [Ranking.of(scores[:, index]) for index in range(scores.shape[1])]
    return lambda weights: macro_auc(labels, rankings, weights)


def _of_label(labels: Floats, scores: Floats) -> Floats:
    """Return each example's score of its own class. [n], [n, K] → [n]."""
    return np.take_along_axis(scores, labels.astype(np.intp)[:, np.newaxis], axis=1)[:, 0]
