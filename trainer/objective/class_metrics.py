"""Metrics of classes by name, exact, in NumPy; each is a function of weights. Simple ones are in `metrics.py`.

With two classes, label y ∈ {0, 1}, score p [n], weight w:

| metric | formula | source |
|---|---|---|
| pr_auc | Σ over scores of precision times the gain in recall; None without positives | Davis, Goadrich 2006 |
| f1, f2, f0_5 | (1 + β²) tp / ((1 + β²) tp + β² fn + fp) at p ≥ 0.5; None without positives | van Rijsbergen 1979 |
| mcc | as below, of two classes | Matthews 1975, BBA 405 |
| cost | mean cost of the answer that is cheapest by the scores, see `costs.py` | Elkan 2001, IJCAI |
| calibration_error | Σ over 15 equal bins of p of abs(Σ w (p - y)) / Σ w | Naeini, Cooper, Hauskrecht 2015, AAAI |

With more, of the confusion of y and the most likely class:

| metric | formula | source |
|---|---|---|
| balanced_accuracy | mean recall over the classes that are there | Brodersen et al. 2010, ICPR |
| mcc | (right n - Σ there answered) / √((n² - Σ there²) (n² - Σ answered²)); 0 where that is 0 | Gorodkin 2004 |
| macro_f1 | mean over classes that are there or answered of 2 right / (there + answered) | Lewis et al. 1996, SIGIR |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.contract.documents import Metric, Metrics
from trainer.contract.metrics import LIKELIEST, OF_COSTS, OF_GROUPS, OF_KIND
from trainer.objective.costs import Costs, paid
from trainer.objective.metrics import (
    Floats,
    Ranking,
    Weighing,
    hits,
    log_losses,
    squared_errors,
    weigh_area,
    weights_by_score,
)

_BINS = 15


def defined(names: Sequence[Metric], classes: int, costs: Costs | None = None) -> tuple[Metric, ...]:
    """Return the metrics that a label of so many classes has, with such costs and without groups."""
    known = [name for name in names if name not in OF_GROUPS and (costs is not None or name not in OF_COSTS)]
    return tuple(name for name in known if LIKELIEST.get(name, 0) < classes)


def measure_scores(
    labels: Floats, scores: Floats, weights: Floats | None = None, costs: Costs | None = None
) -> Metrics:
    """Return all metrics of one model.

    Args:
        labels: At least one. [n]
        scores: [n] or [n, K]
        weights: None: all count the same. [n]
        costs: Of the label; None: it has none.
    """
    weights = np.ones(len(labels)) if weights is None else weights
    kind, classes = ("binary", 2) if scores.ndim == 1 else ("multiclass", scores.shape[1])
    names = defined(OF_KIND[kind], classes, costs)
    values: dict[str, Any] = {name: weigh_scores(name, labels, scores, costs)(weights) for name in names}
    return Metrics(**values)


def weigh_scores(metric: Metric, labels: Floats, scores: Floats, costs: Costs | None = None) -> Weighing:
    """Return the function from weights to a metric; what does not depend on weights is done once.

    Args:
        metric: That is wanted.
        labels: [n]
        scores: [n] or [n, K]
        costs: Of the label, without which it has no metric of them.
    """
    if metric in OF_COSTS and costs is not None:
        return _mean(lambda labels, scores: paid(labels, scores, costs))(labels, scores)
    return FUNCTIONS[metric](labels, scores)


def weigh_precision(labels: Floats, scores: Floats) -> Weighing:
    """Return the function from weights to the area under the precision-recall curve. [n], [n]."""
    ranking = Ranking.of(scores)

    def area(weights: Floats) -> float | None:
        positive, negative = weights_by_score(labels, ranking, weights)
        found = np.cumsum(positive[::-1])
        answered = found + np.cumsum(negative[::-1])
        if not len(found) or found[-1] == 0:
            return None
        precision = found / np.where(answered == 0, 1, answered)
        return float(precision @ positive[::-1] / found[-1])

    return area


def weigh_calibration(labels: Floats, scores: Floats) -> Weighing:
    """Return the function from weights to the expected calibration error. [n], [n]."""
    bins = bin_scores(scores)
    errors = scores - labels
    return lambda weights: float(np.abs(np.bincount(bins, weights * errors)).sum() / weights.sum())


def bin_scores(scores: Floats) -> npt.NDArray[np.intp]:
    """Return the bin of each score, of 15 equal ones. [n] → [n]."""
    return np.searchsorted(np.linspace(0, 1, _BINS + 1)[1:-1], scores)


def weigh_balanced_accuracy(labels: Floats, scores: Floats) -> Weighing:
    """Return the function from weights to the mean recall. [n], [n, K]."""
    confuse = _weigh_confusion(labels, scores)

    def mean_recall(weights: Floats) -> float:
        right, there, _ = confuse(weights)
        return float((right[there > 0] / there[there > 0]).mean())

    return mean_recall


def weigh_macro_f1(labels: Floats, scores: Floats) -> Weighing:
    """Return the function from weights to the mean F1. [n], [n, K]."""
    confuse = _weigh_confusion(labels, scores)

    def mean_f1(weights: Floats) -> float:
        right, there, answered = confuse(weights)
        known = there + answered > 0
        return float((2 * right[known] / (there + answered)[known]).mean())

    return mean_f1


def weigh_f_measure(labels: Floats, scores: Floats, beta: float) -> Weighing:
    """Return the function from weights to the F measure at 0.5. [n], [n]."""
    positive, yes = labels == 1, scores >= 0.5
    right, wrong, missed = (np.asarray(part, np.float64) for part in (positive & yes, ~positive & yes, positive & ~yes))

    def measure(weights: Floats) -> float | None:
        found, lost = weights @ right, weights @ missed
        if found + lost == 0:
            return None
        gain = (1 + beta**2) * found
        return float(gain / (gain + beta**2 * lost + weights @ wrong))

    return measure


def weigh_correlation(labels: Floats, scores: Floats) -> Weighing:
    """Return the function from weights to Matthews' correlation. [n], [n] or [n, K]."""
    if scores.ndim == 1:
        yes = np.asarray(scores >= 0.5, np.float64)
        scores = np.stack([1 - yes, yes], axis=1)
    confuse = _weigh_confusion(labels, scores)

    def correlate(weights: Floats) -> float:
        right, there, answered = confuse(weights)
        total = there.sum()
        spread = (total**2 - there @ there) * (total**2 - answered @ answered)
        covered = right.sum() * total - there @ answered
        return float(np.clip(covered / np.sqrt(spread), -1, 1)) if spread > 0 else 0.0

    return correlate


def among_top(labels: Floats, scores: Floats, most: int) -> Floats:
    """Return 1 where the right class is among the likeliest; of equal scores the first counts. [n], [n, K] → [n]."""
    place = labels.astype(np.intp)[:, np.newaxis]
    own = np.take_along_axis(scores, place, axis=1)
    before = (scores > own) | ((scores == own) & (np.arange(scores.shape[1]) < place))
    return np.asarray(before.sum(axis=1) < most, np.float64)


def _weigh_confusion(labels: Floats, scores: Floats) -> Callable[[Floats], tuple[Floats, Floats, Floats]]:
    """Return the function from weights to what is right, there and answered of each class. → [K] each."""
    classes = scores.shape[1]
    label, answer = labels.astype(np.int64), scores.argmax(axis=1)
    right = label == answer

    def confuse(weights: Floats) -> tuple[Floats, Floats, Floats]:
        parts = (label[right], weights[right]), (label, weights), (answer, weights)
        sums = [np.bincount(values, amounts, classes).astype(np.float64) for values, amounts in parts]
        return sums[0], sums[1], sums[2]

    return confuse


def _mean(values: Callable[[Floats, Floats], Floats]) -> Callable[[Floats, Floats], Weighing]:
    def weigh(labels: Floats, scores: Floats) -> Weighing:
        each = values(labels, scores)
        return lambda weights: float(weights @ each / weights.sum())

    return weigh


FUNCTIONS: Mapping[Metric, Callable[[Floats, Floats], Weighing]] = {
    "auc": weigh_area,
    "log_loss": _mean(log_losses),
    "accuracy": _mean(hits),
    "brier": _mean(squared_errors),
    "pr_auc": weigh_precision,
    "calibration_error": weigh_calibration,
    "f1": partial(weigh_f_measure, beta=1),
    "f2": partial(weigh_f_measure, beta=2),
    "f0_5": partial(weigh_f_measure, beta=0.5),
    "mcc": weigh_correlation,
    "balanced_accuracy": weigh_balanced_accuracy,
    "macro_f1": weigh_macro_f1,
    **{name: _mean(partial(among_top, most=most)) for name, most in LIKELIEST.items()},
}
"""Those that need no costs: from labels and scores to the function from weights to it. [n], [n] or [n, K]."""
