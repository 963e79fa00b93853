"""The difference between two models, and how sure it is: resamples of the examples that both were scored on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.contract.documents import Difference, Metric
from trainer.objective.class_metrics import weigh_scores
from trainer.objective.metrics import Floats, Weighing
from trainer.objective.number_metrics import IN_NUMBERS, weighing


def bootstrap_difference(
    labels: Floats,
    challenger: Floats,
    champion: Floats,
    *,
    metric: Metric,
    samples: int,
    seed: int,
    confidence: float,
    quantiles: Sequence[float] = (),
) -> Difference | None:
    """Resample the examples and compare both models on each sample: a paired percentile bootstrap.

    Efron, Tibshirani, An Introduction to the Bootstrap (1993), chapter 13. Samples in which the metric is
    not defined are left out.

    Args:
        labels: [n]
        challenger: Its scores. [n] or [n, K]
        champion: Its scores on the same examples, in the same shape.
        samples: How many samples of n examples with replacement.
        confidence: Share of the samples inside the interval.

    Returns:
        Challenger minus champion: the difference on the examples themselves and its interval; None where AUC or
        R² is not defined because all labels are equal.
    """
    compare = _comparison(labels, challenger, champion, metric, quantiles)
    mean = compare(np.ones(len(labels)))
    if mean is None:
        return None
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(samples):
        counts = np.bincount(random.integers(0, len(labels), len(labels)), minlength=len(labels)).astype(np.float64)
        difference = compare(counts)
        if difference is not None:
            drawn.append(difference)
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn or [mean], [tail, 1 - tail])
    return Difference(
        metric=metric, mean=mean, low=float(low), high=float(high), confidence=confidence, samples=samples
    )


def _comparison(
    labels: Floats, challenger: Floats, champion: Floats, metric: Metric, quantiles: Sequence[float]
) -> Weighing:
    """Give the function from weights to difference; what does not depend on weights is done once."""
    ours, theirs = (_weigh(metric, labels, scores, quantiles) for scores in (challenger, champion))

    def compare(weights: Floats) -> float | None:
        mine, champions = ours(weights), theirs(weights)
        return None if mine is None or champions is None else mine - champions

    return compare


def _weigh(metric: Metric, labels: Floats, scores: Floats, quantiles: Sequence[float]) -> Weighing:
    if metric in IN_NUMBERS:
        return weighing(metric, labels, scores, quantiles)
    return weigh_scores(metric, labels, scores)
