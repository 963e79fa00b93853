"""The differences between two models, and how sure they are: resamples of the examples that both were scored on.

Comes in: labels and both models' scores. Goes out: for each metric, and for each slice of the rows, the difference,
its interval and its standard error. A sample is drawn as counts, and each metric is computed by weights, so that
memory is that of the examples, whatever the number of samples, metrics and slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.contract.documents import Difference, Estimate, Metric
from trainer.contract.metrics import OF_KIND
from trainer.objective.class_metrics import weigh_scores
from trainer.objective.metrics import Floats, Weighing
from trainer.objective.number_metrics import weigh_numbers

Rows = npt.NDArray[np.intp]
"""Indices of examples. [n_rows]"""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two models' answers to the same examples.

    Attributes:
        labels: [n]
        challenger: [n] or [n, K]
        champion: In the same shape.
        quantiles: Of a label that is a number.
    """

    labels: Floats
    challenger: Floats
    champion: Floats
    quantiles: Sequence[float] = ()

    def part(self, rows: Rows) -> Pair:
        """Return some of the examples."""
        scores = {"challenger": self.challenger[rows], "champion": self.champion[rows]}
        return Pair(labels=self.labels[rows], quantiles=self.quantiles, **scores)

    def weigh(self, metric: Metric) -> Weighing:
        """Return the function from weights to challenger minus champion; what no weight changes is done once."""
        ours, theirs = (self._weigh(metric, scores) for scores in (self.challenger, self.champion))

        def compare(weights: Floats) -> float | None:
            if not weights.any():  # a slice that a sample has left out
                return None
            mine, champions = ours(weights), theirs(weights)
            return None if mine is None or champions is None else mine - champions

        return compare

    def _weigh(self, metric: Metric, scores: Floats) -> Weighing:
        if metric in OF_KIND["regression"]:
            return weigh_numbers(metric, self.labels, scores, self.quantiles)
        return weigh_scores(metric, self.labels, scores)


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How samples are drawn.

    Attributes:
        samples: How many.
        seed: Of what is random: the same samples each time.
        confidence: Share of the samples inside an interval.
        groups: Number of each example's group, whose examples are drawn together; None: each by itself. [n]
        weights: How much an example counts as often as it is drawn; None: all the same. [n]
    """

    samples: int
    seed: int
    confidence: float
    groups: Rows | None = None
    weights: Floats | None = None

    def whole(self, n: int) -> Floats:
        """Return the weights of the examples themselves. [n]."""
        return np.ones(n) if self.weights is None else self.weights

    def draws(self, n: int) -> Iterator[Floats]:
        """Yield how often each example is in a sample of n with replacement, times its weight. [n] each.

        Efron, Tibshirani, An Introduction to the Bootstrap (1993), chapter 6: counts are multinomial, and a resample
        is the examples weighted by them. Of groups as many are drawn as there are (Davison, Hinkley, Bootstrap Methods
        and their Application (1997), section 3.8): examples of one are not independent.
        """
        random = np.random.default_rng(self.seed)
        units = n if self.groups is None else int(self.groups.max()) + 1
        for _ in range(self.samples):
            counts = np.bincount(random.integers(0, units, units), minlength=units).astype(np.float64)
            drawn = counts if self.groups is None else counts[self.groups]
            yield drawn if self.weights is None else drawn * self.weights


def bootstrap_metrics(pair: Pair, metrics: Sequence[Metric], resampling: Resampling) -> dict[Metric, Difference]:
    """Return each metric's difference over all examples; those that are not defined on them are left out."""
    compared = _compare(len(pair.labels), [(pair.weigh(metric), None) for metric in metrics], resampling)
    found = [_difference(metric, *values, resampling) for metric, values in zip(metrics, compared, strict=True)]
    return {difference.metric: difference for difference in found if difference is not None}


def bootstrap_estimates(n: int, weighings: Sequence[Weighing], resampling: Resampling) -> list[Estimate | None]:
    """Return shares of n examples with their intervals; None where one is not defined."""
    found = _compare(n, [(weigh, None) for weigh in weighings], resampling)
    return [_estimate(mean, drawn, resampling) for mean, drawn in found]


def bootstrap_slices(
    pair: Pair, metric: Metric, slices: Sequence[Rows], resampling: Resampling
) -> list[Difference | None]:
    """Return the difference in each slice; None where the metric is not defined."""
    every = [(pair.part(rows).weigh(metric), rows) for rows in slices]
    return [_difference(metric, *values, resampling) for values in _compare(len(pair.labels), every, resampling)]


def _compare(
    n: int, comparisons: Sequence[tuple[Weighing, Rows | None]], resampling: Resampling
) -> Iterator[tuple[float | None, Floats]]:
    """Yield each comparison on the examples themselves and on every sample, NaN where it is not defined. [samples]."""

    def compare(weights: Floats) -> list[float | None]:
        return [weigh(weights if rows is None else weights[rows]) for weigh, rows in comparisons]

    means = compare(resampling.whole(n))
    drawn = np.full((len(comparisons), resampling.samples), np.nan)
    if any(mean is not None for mean in means):
        for place, weights in enumerate(resampling.draws(n)):
            drawn[:, place] = [np.nan if value is None else value for value in compare(weights)]
    yield from zip(means, drawn, strict=True)


def _difference(metric: Metric, mean: float | None, drawn: Floats, resampling: Resampling) -> Difference | None:
    """Return the paired percentile interval and the standard error (Efron, Tibshirani 1993, chapter 6)."""
    if mean is None:
        return None
    low, high, deviation = _spread(mean, drawn, resampling)
    return Difference(
        metric=metric,
        mean=mean,
        low=low,
        high=high,
        deviation=deviation,
        confidence=resampling.confidence,
        samples=resampling.samples,
    )


def _estimate(value: float | None, drawn: Floats, resampling: Resampling) -> Estimate | None:
    if value is None:
        return None
    low, high, _ = _spread(value, drawn, resampling)
    return Estimate(value=value, low=low, high=high)


def _spread(value: float, drawn: Floats, resampling: Resampling) -> tuple[float, float, float]:
    """Return the ends of the percentile interval (Efron, Tibshirani 1993, chapter 13), and the deviation."""
    known = drawn[~np.isnan(drawn)]
    known = known if known.size else np.array([value])
    tail = (1 - resampling.confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return float(low), float(high), float(known.std())
