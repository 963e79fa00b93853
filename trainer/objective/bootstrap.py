"""The differences between two models, and how sure they are: resamples of the examples that both were scored on.

Comes in: labels and both models' scores. Goes out: for each metric, and for each slice of the rows, the difference,
its interval and its standard error; none where the examples say too little (`evidence.py`). A sample is drawn as
counts, and each metric is computed by weights, so that memory is that of the examples, whatever the number of samples,
metrics and slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from trainer.contract.documents import Difference, Estimate, Evidence, Label, Metric, RegressionLabel
from trainer.contract.metrics import OF_GROUPS, OF_KIND
from trainer.objective.class_metrics import weigh_scores
from trainer.objective.costs import Costs, cost_matrix
from trainer.objective.evidence import Rows, gather_evidence, is_enough, kinds_of_rows
from trainer.objective.metrics import Floats, Weighing
from trainer.objective.number_metrics import point, weigh_numbers
from trainer.objective.rankings import weigh_gains


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two models' answers to the same examples.

    Attributes:
        labels: [n]
        challenger: [n] or [n, K]
        champion: In the same shape.
        quantiles: Of a label that is a number.
        costs: Of one with classes; None: it has none.
        groups: Number of each example's group, within which order counts; None: there are none. [n]
    """

    labels: Floats
    challenger: Floats
    champion: Floats
    quantiles: Sequence[float] = ()
    costs: Costs | None = None
    groups: Rows | None = None

    @classmethod
    def of(cls, label: Label, labels: Floats, challenger: Floats, champion: Floats, groups: Rows | None = None) -> Pair:
        """Return two models' answers to a label."""
        scores: dict[str, Any] = {"labels": labels, "challenger": challenger, "champion": champion, "groups": groups}
        if isinstance(label, RegressionLabel):
            return cls(quantiles=label.quantiles, **scores)
        return cls(costs=cost_matrix(label), **scores)

    def part(self, rows: Rows) -> Pair:
        """Return some of the examples."""
        groups = None if self.groups is None else self.groups[rows]
        challenger, champion = self.challenger[rows], self.champion[rows]
        return replace(self, labels=self.labels[rows], challenger=challenger, champion=champion, groups=groups)

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
        if metric in OF_GROUPS:
            if self.groups is None:
                return lambda _: None
            return weigh_gains(self.labels, point(scores, self.quantiles), self.groups, OF_GROUPS[metric])
        if metric in OF_KIND["regression"]:
            return weigh_numbers(metric, self.labels, scores, self.quantiles)
        return weigh_scores(metric, self.labels, scores, self.costs)


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How samples are drawn.

    Attributes:
        samples: How many.
        seed: Of what is random: the same samples each time.
        confidence: Share of the samples inside an interval.
        groups: Number of each example's group, whose examples are drawn together; None: each by itself. [n]
        weights: How much an example counts as often as it is drawn; None: all the same. [n]
        min_rows: Effective rows of each kind below which nothing is judged.
        min_groups: The same of groups.
        unit: What messages call the groups: days are some too.
    """

    samples: int
    seed: int
    confidence: float
    groups: Rows | None = None
    weights: Floats | None = None
    min_rows: int = 20
    min_groups: int = 5
    unit: str = "groups"

    def part(self, rows: Rows) -> Resampling:
        """Return the same of some of the examples."""
        groups = None if self.groups is None else self.groups[rows]
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, groups=groups, weights=weights)

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


def find_evidence(pair: Pair, metric: Metric, resampling: Resampling) -> Evidence:
    """Return what the difference in a metric rests on."""
    kinds = kinds_of_rows(metric, pair.labels, pair.challenger, pair.groups)
    weights = resampling.whole(len(pair.labels))
    least = (resampling.min_rows, resampling.min_groups)
    return gather_evidence(kinds, weights, resampling.groups, *least, resampling.unit)


def bootstrap_metrics(pair: Pair, metrics: Sequence[Metric], resampling: Resampling) -> dict[Metric, Difference]:
    """Return each metric's difference over all examples; those that cannot be judged on them are left out."""
    rests_on = {metric: find_evidence(pair, metric, resampling) for metric in metrics}
    judged = [metric for metric in metrics if is_enough(rests_on[metric])]
    compared = _compare(len(pair.labels), [(pair.weigh(metric), None) for metric in judged], resampling)
    found = [
        _difference(metric, *values, rests_on[metric], resampling)
        for metric, values in zip(judged, compared, strict=True)
    ]
    return {difference.metric: difference for difference in found if difference is not None}


def bootstrap_estimates(n: int, weighings: Sequence[Weighing], resampling: Resampling) -> list[Estimate | None]:
    """Return shares of n examples with their intervals; None where one is not defined."""
    found = _compare(n, [(weigh, None) for weigh in weighings], resampling)
    return [_estimate(mean, drawn, resampling) for mean, drawn in found]


def bootstrap_slices(
    pair: Pair, metric: Metric, slices: Sequence[Rows], resampling: Resampling
) -> list[tuple[Difference | None, Evidence]]:
    """Return the difference in each slice and what it rests on; None where that is too little, or none is defined."""
    rests_on = [find_evidence(pair.part(rows), metric, resampling.part(rows)) for rows in slices]
    judged = [place for place, evidence in enumerate(rests_on) if is_enough(evidence)]
    every = [(pair.part(slices[place]).weigh(metric), slices[place]) for place in judged]
    compared = dict(zip(judged, _compare(len(pair.labels), every, resampling), strict=True))
    return [
        (_difference(metric, *compared[place], evidence, resampling) if place in compared else None, evidence)
        for place, evidence in enumerate(rests_on)
    ]


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


def _difference(
    metric: Metric, mean: float | None, drawn: Floats, evidence: Evidence, resampling: Resampling
) -> Difference | None:
    """Return the paired percentile interval and the standard error, both as much wider as few units make them.

    Samples of m units spread less than the truth, by the root of (m - 1) / m, and percentiles take their spread for
    certain, as Student's quantiles do not (Efron, Tibshirani 1993, chapters 12 and 13; Hesterberg, What Teachers Should
    Know About the Bootstrap, 2015, The American Statistician 69).
    """
    if mean is None:
        return None
    units, known = evidence.effective, drawn[~np.isnan(drawn)]
    known = known if known.size else np.array([mean])
    level = (1 + resampling.confidence) / 2
    narrow = float(np.sqrt(units / (units - 1)))
    wider = narrow * student_quantile(level, units - 1) / NormalDist().inv_cdf(level)
    low, high = mean + wider * (np.quantile(known, [1 - level, level]) - mean)
    return Difference(
        metric=metric,
        mean=mean,
        low=float(low),
        high=float(high),
        deviation=narrow * float(known.std()),
        confidence=resampling.confidence,
        samples=resampling.samples,
    )


def student_quantile(level: float, degrees: float) -> float:
    """Return a quantile of Student's distribution from the median on, to half a percent from 4 degrees of freedom on.

    By Wallace, Bounds on normal approximations to Student's and the chi-square distributions (1959), Annals of
    Mathematical Statistics 30; the decision asks the same formula for the chance of a slice's loss.
    """
    normal = NormalDist().inv_cdf(level) * (8 * degrees + 3) / (8 * degrees + 1)
    return float(np.sqrt(degrees * np.expm1(normal**2 / degrees)))


def _estimate(value: float | None, drawn: Floats, resampling: Resampling) -> Estimate | None:
    """Return a share with its percentile interval (Efron, Tibshirani 1993, chapter 13)."""
    if value is None:
        return None
    known = drawn[~np.isnan(drawn)]
    tail = (1 - resampling.confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail]) if known.size else (value, value)
    return Estimate(value=value, low=float(low), high=float(high))
