"""Slices that are surely worse: a loss that chance does not explain, however many slices are looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from retraining.core.documents.evaluation import Evaluation
from retraining.core.metrics import HIGHER_IS_BETTER, Metric, Quality
from retraining.core.promotion.evidence import is_short


@dataclass(frozen=True, kw_only=True)
class SliceLoss:
    """By how much the challenger is worse than the champion on a slice, the standard error of that, and where it is.

    `degrees`: of freedom that the standard error has; None, in an evaluation of an earlier release: any number.
    """

    mean: float
    deviation: float
    where: str
    degrees: float | None = None

    def chance(self, tolerated: float) -> float:
        """Return how likely a loss as large as this is where the true one is no more than what is tolerated.

        By Student's distribution with the resamples' standard error, as the interval: the corrected level of many
        slices lies below what 500 samples can count. Its normal score is Wallace's (1959, Annals of Mathematical
        Statistics 30).
        """
        if self.deviation == 0:
            return float(self.mean <= tolerated)
        ratio, degrees = (self.mean - tolerated) / self.deviation, self.degrees
        if degrees is not None:
            score = math.sqrt(degrees * math.log1p(ratio**2 / degrees)) * (8 * degrees + 1) / (8 * degrees + 3)
            ratio = math.copysign(score, ratio)
        return 1 - NormalDist().cdf(ratio)


def value_of(metrics: Quality, metric: Metric) -> float | None:
    """Return one metric out of several; None where it is not defined (AUC of one class, R² of equal labels)."""
    value: float | None = getattr(metrics, metric, None)
    return value


def slice_losses(evaluation: Evaluation, metric: Metric, least: int) -> list[SliceLoss]:
    """Return the loss of every slice of at least so many rows that can be judged.

    One without a standard error, in an evaluation of an earlier release, is taken as it is.
    """
    sides = (evaluation.challenger, evaluation.champion)
    ours, theirs = ({(item.column, item.value): item for item in side.slices} if side else {} for side in sides)
    differences = {(item.column, item.value): item for item in evaluation.slice_differences}
    losses = []
    for (column, value), item in ours.items():
        other = theirs.get((column, value))
        mine, champions = value_of(item.metrics, metric), value_of(other.metrics, metric) if other else None
        judged = differences.get((column, value))
        evidence = judged.evidence if judged else None
        if mine is None or champions is None or item.rows < least or is_short(evidence):
            continue
        mean = champions - mine if metric in HIGHER_IS_BETTER else mine - champions
        where = f"{column} {value!r} ({mine:.3f} against {champions:.3f})"
        deviation = judged.difference.deviation if judged and judged.difference else None
        degrees = evidence.effective - 1 if evidence else None
        losses.append(SliceLoss(mean=mean, deviation=deviation or 0.0, where=where, degrees=degrees))
    return losses


def surely_worse(losses: Sequence[SliceLoss], tolerated: float, level: float) -> list[SliceLoss]:
    """Return the slices whose loss is surely larger than what is tolerated.

    Holm's correction (1979, Scandinavian Journal of Statistics 6): with no slice truly worse, the chance that any is
    returned is at most `level`, however they depend on each other.
    """
    ranked = sorted(losses, key=lambda loss: loss.chance(tolerated))
    for place, loss in enumerate(ranked):
        if loss.chance(tolerated) > level / (len(ranked) - place):
            return ranked[:place]
    return ranked
