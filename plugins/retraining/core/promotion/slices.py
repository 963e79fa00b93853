"""Slices that are surely worse: a loss that chance does not explain, however many slices are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from retraining.core.documents.evaluation import Evaluation
from retraining.core.metrics import HIGHER_IS_BETTER, Metric, Quality


@dataclass(frozen=True, kw_only=True)
class SliceLoss:
    """By how much the challenger is worse than the champion on a slice, the standard error of that, and where it is."""

    mean: float
    deviation: float
    where: str

    def chance(self, tolerated: float) -> float:
        """Return how likely a loss as large as this is where the true one is no more than what is tolerated.

        By the normal distribution with the resamples' standard error (Efron, Tibshirani 1993, chapter 13): the
        corrected level of many slices lies below what 500 samples can count.
        """
        if self.deviation == 0:
            return float(self.mean <= tolerated)
        return 1 - NormalDist().cdf((self.mean - tolerated) / self.deviation)


def value_of(metrics: Quality, metric: Metric) -> float | None:
    """Return one metric out of several; None where it is not defined (AUC of one class, R² of equal labels)."""
    value: float | None = getattr(metrics, metric, None)
    return value


def slice_losses(evaluation: Evaluation, metric: Metric, least: int) -> list[SliceLoss]:
    """Return the loss of every slice of at least so many rows on which both models are measured.

    One without a standard error, in an evaluation of an earlier release, is taken as it is.
    """
    sides = (evaluation.challenger, evaluation.champion)
    ours, theirs = ({(item.column, item.value): item for item in side.slices} if side else {} for side in sides)
    deviations = {
        (item.column, item.value): item.difference.deviation or 0.0
        for item in evaluation.slice_differences
        if item.difference is not None
    }
    losses = []
    for (column, value), item in ours.items():
        other = theirs.get((column, value))
        mine, champions = value_of(item.metrics, metric), value_of(other.metrics, metric) if other else None
        if mine is None or champions is None or item.rows < least:
            continue
        mean = champions - mine if metric in HIGHER_IS_BETTER else mine - champions
        where = f"{column} {value!r} ({mine:.3f} against {champions:.3f})"
        losses.append(SliceLoss(mean=mean, deviation=deviations.get((column, value), 0.0), where=where))
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
