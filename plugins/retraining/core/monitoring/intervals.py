"""Quality and its interval from counts and sums alone.

In: a histogram of scores by label, a sum and a sum of squares, a confusion. Out: a number with its interval.

| what | by |
|---|---|
| AUC | mid-ranks; DeLong, DeLong, Clarke-Pearson 1988, Biometrics 44, on binned scores, plus what binning may hide |
| average precision | the step sum over the buckets; the logit interval of Boyd, Eng, Page 2013, ECML PKDD |
| a mean | its standard error, normal |
| rmse, r2 | the delta method, of the mean of squares and of its ratio to the variance |
| a median | order statistics, Conover 1999, Practical Nonparametric Statistics, 3.2 |
| balanced accuracy | the standard errors of the classes' recalls |
| macro F1 | the delta method, Takahashi, Yamamoto, Kuchiba, Koyama 2022, Applied Intelligence 52 |
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

_FEWEST = 2


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A number with its two-sided interval; `error` is what the buckets may hide, and lies in the interval."""

    value: float
    low: float
    high: float
    examples: int
    error: float = 0.0

    def within(self, least: float, most: float) -> Interval:
        """Return the interval cut to what the number can be."""
        low, high = max(self.low, least), min(self.high, most)
        return Interval(value=self.value, low=low, high=high, examples=self.examples, error=self.error)


@dataclass(frozen=True, kw_only=True)
class ScoreBucket:
    """Examples with scores of about one size, by label; counts may be expected ones."""

    positives: float
    negatives: float


@dataclass(frozen=True, kw_only=True)
class Sums:
    """A measure over some examples: how many, the sum, the sum of squares."""

    examples: int
    total: float
    squares: float

    @property
    def mean(self) -> float:
        """The mean."""
        return self.total / self.examples

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        if self.examples < _FEWEST:
            return 0.0
        variance = max(0.0, self.squares - self.total**2 / self.examples) / (self.examples - 1)
        return math.sqrt(variance / self.examples)


def quantile(confidence: float) -> float:
    """Return how many standard errors a two-sided interval reaches."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def auc(buckets: Sequence[ScoreBucket], confidence: float) -> Interval | None:
    """Return the area under the ROC curve; None: one class is absent.

    Two examples in one bucket count as a tie. The AUC of the scores themselves is at most
    `sum(positives * negatives) / 2 / (P * N)` away, which widens the interval.

    Args:
        buckets: By rising score.
        confidence: Of the interval.
    """
    positives, negatives = sum(each.positives for each in buckets), sum(each.negatives for each in buckets)
    if positives <= 0 or negatives <= 0:
        return None
    value = hidden = below = 0.0
    places = []
    for each in buckets:
        above = (below + each.negatives / 2) / negatives
        value += each.positives * above / positives
        hidden += each.positives * each.negatives / 2 / positives / negatives
        below += each.negatives
        places.append(above)
    of_positives = sum(each.positives * (place - value) ** 2 for each, place in zip(buckets, places, strict=True))
    of_negatives, over = 0.0, positives
    for each in buckets:
        over -= each.positives
        of_negatives += each.negatives * ((over + each.positives / 2) / positives - value) ** 2
    variance = of_positives / max(1.0, positives - 1) / positives + of_negatives / max(1.0, negatives - 1) / negatives
    reach = quantile(confidence) * math.sqrt(variance) + hidden
    examples = round(positives + negatives)
    whole = Interval(value=value, low=value - reach, high=value + reach, examples=examples, error=hidden)
    return whole.within(0.0, 1.0)


def mean_auc(classes: Sequence[Sequence[ScoreBucket]], confidence: float) -> Interval | None:
    """Return the mean AUC of each class against the rest; its interval is at least as wide as the true one."""
    found = [one for buckets in classes if (one := auc(buckets, confidence)) is not None]
    if not found:
        return None
    value = sum(each.value for each in found) / len(found)
    reach = sum(each.high - each.low for each in found) / 2 / len(found)
    error = sum(each.error for each in found) / len(found)
    whole = Interval(value=value, low=value - reach, high=value + reach, examples=found[0].examples, error=error)
    return whole.within(0.0, 1.0)


def average_precision(buckets: Sequence[ScoreBucket], confidence: float) -> Interval | None:
    """Return the average precision, with a threshold at each bucket; None: there are no positives."""
    positives = sum(each.positives for each in buckets)
    if positives <= 0:
        return None
    value = right = taken = 0.0
    for each in reversed(buckets):
        right, taken = right + each.positives, taken + each.positives + each.negatives
        if each.positives:
            value += each.positives / positives * right / taken
    examples = round(sum(each.positives + each.negatives for each in buckets))
    if not 0 < value < 1:
        return Interval(value=value, low=value, high=value, examples=examples)
    logit = math.log(value / (1 - value))
    reach = quantile(confidence) / math.sqrt(positives * value * (1 - value))
    low, high = (1 / (1 + math.exp(-(logit + step))) for step in (-reach, reach))
    return Interval(value=value, low=low, high=high, examples=examples)


def mean(sums: Sums, confidence: float) -> Interval:
    """Return a mean."""
    reach = quantile(confidence) * sums.error
    return Interval(value=sums.mean, low=sums.mean - reach, high=sums.mean + reach, examples=sums.examples)


def root_mean(sums: Sums, confidence: float) -> Interval:
    """Return the root of a mean of squares."""
    value = math.sqrt(max(0.0, sums.mean))
    reach = quantile(confidence) * sums.error / 2 / value if value else 0.0
    return Interval(value=value, low=max(0.0, value - reach), high=value + reach, examples=sums.examples)


def explained(errors: Sums, deviations: Sums, product: float, confidence: float) -> Interval | None:
    """Return r2; None: all labels are equal.

    Args:
        errors: Of squared errors.
        deviations: Of squared deviations from the labels' mean.
        product: Sum of squared error times squared deviation.
        confidence: Of the interval.
    """
    if deviations.total <= 0:
        return None
    ratio, examples = errors.total / deviations.total, errors.examples
    spread = max(0.0, errors.squares - 2 * ratio * product + ratio**2 * deviations.squares)
    reach = quantile(confidence) * math.sqrt(spread) / deviations.total
    return Interval(value=1 - ratio, low=1 - ratio - reach, high=min(1.0, 1 - ratio + reach), examples=examples)


def median(quantiles: Sequence[float], examples: int, confidence: float) -> Interval | None:
    """Return the median from evenly spaced quantiles; None: there are none."""
    if not quantiles or not examples:
        return None
    last = len(quantiles) - 1
    reach = quantile(confidence) / 2 / math.sqrt(examples) * last
    low, high = max(0, math.floor(last / 2 - reach)), min(last, math.ceil(last / 2 + reach))
    return Interval(value=quantiles[last // 2], low=quantiles[low], high=quantiles[high], examples=examples)


Confusion = Mapping[tuple[int, int], float]
"""Examples by label and likeliest class."""


def balanced_accuracy(confusion: Confusion, confidence: float) -> Interval | None:
    """Return the mean recall over the classes that are there."""
    rows: dict[int, float] = defaultdict(float)
    for (label, _), count in confusion.items():
        rows[label] += count
    if not rows:
        return None
    recalls = {label: confusion.get((label, label), 0.0) / count for label, count in rows.items()}
    value = sum(recalls.values()) / len(recalls)
    variance = sum(share * (1 - share) / rows[label] for label, share in recalls.items()) / len(recalls) ** 2
    reach = quantile(confidence) * math.sqrt(variance)
    examples = round(sum(rows.values()))
    return Interval(value=value, low=value - reach, high=value + reach, examples=examples).within(0.0, 1.0)


def macro_f1(confusion: Confusion, confidence: float) -> Interval | None:
    """Return the mean F1 over the classes that are there or answered."""
    named: dict[int, float] = defaultdict(float)
    for cell, count in confusion.items():
        for each in cell:
            named[each] += count
    if not named:
        return None
    f1 = {each: 2 * confusion.get((each, each), 0.0) / count for each, count in named.items()}
    value = sum(f1.values()) / len(f1)
    variance = 0.0
    for (label, answer), count in confusion.items():
        slope = sum((2 * (label == answer) / 2 - f1[each]) / named[each] for each in (label, answer))
        variance += count * (slope / len(f1)) ** 2
    reach = quantile(confidence) * math.sqrt(variance)
    examples = round(sum(confusion.values()))
    return Interval(value=value, low=value - reach, high=value + reach, examples=examples).within(0.0, 1.0)
