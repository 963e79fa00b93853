"""Curves of a model's answers, for people: ROC, precision-recall and calibration; each takes weights.

Label y ∈ {0, 1}, score p [n], weight w. Every point is exact, at a score that stands in the data; of more than 100
points those are kept that lie evenly along the curve.

| curve | points | source |
|---|---|---|
| roc | (false positive rate, true positive rate) at each score, from (0, 0) | Fawcett 2006, Pattern Recogn. Let. 27 |
| precision_recall | (recall, precision) at each score | Davis, Goadrich 2006, ICML |
| calibration | mean score and share of positives in 15 equal bins | Niculescu-Mizil, Caruana 2005, ICML |

Of several classes there is calibration alone: the score is that of the likeliest class, and positive is where it is
right (Guo et al. 2017, ICML).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trainer.contract.documents import CalibrationBin, Curves, PrecisionRecallCurve, RocCurve
from trainer.objective.class_metrics import bin_scores
from trainer.objective.metrics import Floats, Ranking, hits, weights_by_score

MOST_POINTS = 100


def draw_curves(labels: Floats, scores: Floats, weights: Floats | None = None) -> Curves:
    """Return the curves of one model.

    Args:
        labels: At least one. [n]
        scores: [n] or [n, K]
        weights: None: all count the same. [n]
    """
    weights = np.ones(len(labels)) if weights is None else weights
    if scores.ndim == 2:
        return Curves(calibration=calibrate(hits(labels, scores), scores.max(axis=1), weights))
    positive, negative = weights_by_score(labels, Ranking.of(scores), weights)
    found, wrong = np.cumsum(positive[::-1]), np.cumsum(negative[::-1])
    return Curves(
        roc=_roc(found, wrong) if found[-1] and wrong[-1] else None,
        precision_recall=_precision_recall(found, wrong) if found[-1] else None,
        calibration=calibrate(labels, scores, weights),
    )


def calibrate(labels: Floats, scores: Floats, weights: Floats) -> tuple[CalibrationBin, ...]:
    """Return mean score and share of positives of each bin that has examples of any weight. [n] each."""
    bins = bin_scores(scores)
    rows = np.bincount(bins)
    there, score, positive = (np.bincount(bins, weights * values) for values in (np.ones(len(bins)), scores, labels))
    known = np.flatnonzero(there)
    columns = rows[known].tolist(), _shares(score[known] / there[known]), _shares(positive[known] / there[known])
    return tuple(
        CalibrationBin(rows=count, score=mean, positive=share) for count, mean, share in zip(*columns, strict=True)
    )


def _roc(found: Floats, wrong: Floats) -> RocCurve:
    """Thin by the way along both axes together: no step is longer than a hundredth of it and one score's examples."""
    x, y = (np.concatenate([[0.0], part / part[-1]]) for part in (wrong, found))
    kept = _evenly(x + y)
    return RocCurve(false_positive_rate=_shares(x[kept]), true_positive_rate=_shares(y[kept]))


def _precision_recall(found: Floats, wrong: Floats) -> PrecisionRecallCurve:
    """Thin by recall: of points with the same one the most precise stays, and the curve's end."""
    answered = found + wrong
    found, answered = found[answered > 0], answered[answered > 0]  # a score without weight answers nothing
    recall, precision = found / found[-1], found / answered
    kept = _evenly(recall)
    return PrecisionRecallCurve(recall=_shares(recall[kept]), precision=_shares(precision[kept]))


def _evenly(way: Floats) -> npt.NDArray[np.intp]:
    """Return the places of at most 100 values that lie evenly, the first and the last among them; they do not fall."""
    if len(way) <= MOST_POINTS:
        return np.arange(len(way))
    steps = np.searchsorted(way, np.linspace(way[0], way[-1], MOST_POINTS - 1))
    return np.unique([*steps, len(way) - 1])


def _shares(values: Floats) -> tuple[float, ...]:
    return tuple(np.clip(values, 0, 1).round(6).tolist())
