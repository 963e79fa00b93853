"""How good the answers may be before their labels are known: estimates with intervals.

In: the champion's answers by size, and its deciding evaluation. Out: signals.

Binary: the evaluation's calibration says how often an answer of a size is positive. The expected counts of positives
and negatives give each metric as if they were labels (confidence-based performance estimation: Guillory et al. 2021,
ICCV, arXiv:2107.03315; Garg et al. 2022, arXiv:2201.04234). Several classes: how often the likeliest class is right, so
accuracy alone. Numbers: the mean error that the evaluation found for answers of a size. The interval has what is chance
among the answers, and what is chance in the evaluation that is gone by.

An estimate sees that requests moved to where the model is less sure. It cannot see that the same requests now turn out
otherwise (concept drift): for that labels are needed. Where the answers moved as they do when there are more positives
or fewer, calibration does not hold any more, and nothing is judged (label shift: Lipton, Wang, Smola 2018, ICML,
arXiv:1802.03916).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from retraining.core.documents.evaluation import Evaluation, Scores
from retraining.core.documents.monitoring import Signal, SignalState
from retraining.core.metrics import HIGHER_IS_BETTER, LEADING, Kind, Metric
from retraining.core.monitoring import intervals
from retraining.core.monitoring.distributions import EQUAL_BINS
from retraining.core.monitoring.intervals import Interval, ScoreBucket, Sums
from retraining.core.monitoring.performance import allowed_drop, measure
from retraining.core.monitoring.request_log import Counted, Cut, Histogram, VersionAnswers
from retraining.core.monitoring.signals import not_judged
from retraining.core.spec.model import ModelSpec

LossPair = Callable[[float], tuple[float, float]]
"""Of a score: the loss where the answer is right, and where it is wrong."""
Estimate = Callable[[Histogram, Scores, float], Interval | None]
"""From answers by bucket, the evaluation's scores and a confidence."""
_CLIP = 1e-7


def judge_estimate(spec: ModelSpec, own: VersionAnswers, evaluation: Evaluation | None) -> tuple[Signal, ...]:
    """Return the estimated metric, held against the evaluation's; and where labels are, how far it is off.

    Args:
        spec: The model.
        own: The champion's answers.
        evaluation: By which it became champion; None: it is not there.
    """
    kind, metric = spec.label.kind, spec.evaluation.metric
    metric = metric if metric in ESTIMATES[kind] else LEADING[kind]
    scores = evaluation.challenger if evaluation else None
    answers = round(sum(each.examples for each in own.answers.values()))
    if scores is None or not _has_curve(spec, scores):
        what = "errors by size of the answer" if kind == "regression" else "a calibration"
        message = (
            f"The champion's evaluation has not {what}, which an estimate goes by: the next retraining's has."
            if scores
            else "The champion's evaluation is not there, and with it the calibration that an estimate goes by."
        )
        return (not_judged("estimate", metric, "no_reference", message, examples=answers),)
    least = spec.monitoring.min_requests
    if answers < least:
        message = f"{answers} answers; at least {least} are judged."
        return (not_judged("estimate", metric, "too_few" if answers else "no_traffic", message, examples=answers),)
    found = estimate(spec, metric, own.answers, scores)
    if found is None:
        message = f"{metric} is not defined on these answers."
        return (not_judged("estimate", metric, "too_few", message, examples=answers),)
    main = _judge_estimated(spec, metric, found, getattr(scores.metrics, metric, None))
    if kind == "binary" and (shift := find_label_shift(own.answers, scores)) is not None:
        main = main.model_copy(update={"state": "not_judged", "reason": "label_shift", "message": shift.message(main)})
    return (main, *_error_of_estimate(spec, metric, own, scores))


def estimate(spec: ModelSpec, metric: Metric, answers: Histogram, scores: Scores) -> Interval | None:
    """Return what a metric is expected to be over answers; None: it is not defined on them.

    Args:
        spec: The model.
        metric: One of `ESTIMATES` for the kind of its label.
        answers: By bucket.
        scores: Of the evaluation, with the curve that is gone by.
    """
    confidence, of_answers = spec.evaluation.promote.confidence, ESTIMATES[spec.label.kind][metric]
    found = of_answers(answers, scores, confidence)
    if found is None:
        return None
    moved = [of_answers(answers, other, confidence) for other in _by_chance(scores)]
    error = math.sqrt(sum((each.value - found.value) ** 2 for each in moved if each is not None))
    reach = intervals.quantile(confidence) * error
    low, high = (math.hypot(side, reach) for side in (found.value - found.low, found.high - found.value))
    whole = Interval(value=found.value, low=found.value - low, high=found.value + high, examples=found.examples)
    return whole.within(0.0, math.inf if metric in _UNBOUNDED else 1.0)


def _by_chance(scores: Scores) -> Iterator[Scores]:
    """Yield the evaluation as it could be, each time one bin off by its standard error: the delta method by numbers."""
    if scores.curves is not None:
        bins = scores.curves.calibration
        for place, each in enumerate(bins):
            share = (each.positive * each.rows + 1) / (each.rows + 2)  # Agresti, Coull 1998: none of few is not never
            error = math.sqrt(share * (1 - share) / (each.rows + 2))
            other = each.positive + (error if each.positive < 0.5 else -error)
            moved = (*bins[:place], each.model_copy(update={"positive": other}), *bins[place + 1 :])
            yield scores.model_copy(update={"curves": scores.curves.model_copy(update={"calibration": moved})})
    elif scores.answers is not None:
        found = scores.answers.bins
        for place, part in enumerate(found):
            mean, squares = part.absolute_error or 0.0, part.squared_error or 0.0
            off = mean + math.sqrt(max(0.0, squares - mean**2) / part.rows)
            parts = (*found[:place], part.model_copy(update={"absolute_error": off}), *found[place + 1 :])
            yield scores.model_copy(update={"answers": scores.answers.model_copy(update={"bins": parts})})


_UNBOUNDED: frozenset[Metric] = frozenset({"log_loss", "mae"})


@dataclass(frozen=True, kw_only=True)
class LabelShift:
    """The share of positives by the evaluation, and the one by which the answers are as they are."""

    before: float
    now: float

    def message(self, found: Signal) -> str:
        """Return what it means for an estimate."""
        return (
            f"Label shift is likely: the answers are as they would be with {self.now:.1%} positives in the place of "
            f"{self.before:.1%}. Then the calibration does not hold, and the estimate of {found.measure}, "
            f"{found.value:.4f}, is judged by nothing: wait for labels."
        )


_SURELY_MOVED = 10.83
"""Chi-square of one degree of freedom that chance alone passes once in a thousand times."""
_FITS_Z = 2.326
"""Of a normal distribution: chance alone passes it once in a hundred times."""


def find_label_shift(answers: Histogram, scores: Scores) -> LabelShift | None:
    """Return the shift of the labels that explains how the answers moved; None: they did not, or moved otherwise.

    The scores of positives and of negatives, as the calibration has them, are mixed anew: a share of positives is
    sought by which the answers' distribution is surely nearer, and no further away than chance has it.
    """
    bins = scores.curves.calibration if scores.curves else ()
    rows, total = sum(each.rows for each in bins), sum(each.examples for each in answers.values())
    positives = sum(each.rows * each.positive for each in bins)
    if len(bins) < _FEWEST_BINS or not 0 < positives < rows:
        return None
    counts = dict.fromkeys((_bin_of(each.score) for each in bins), 0.0)
    for each in answers.values():
        place = _bin_of(each.total / each.examples)
        if place not in counts:
            return None  # answers of a size that the evaluation does not know
        counts[place] += each.examples
    shares = [counts[_bin_of(each.score)] / total for each in bins]
    chance = 1 / total + 1 / rows

    def distance(of_positives: float) -> float:
        mixed = [
            each.rows
            * (of_positives * each.positive / positives + (1 - of_positives) * (1 - each.positive) / (rows - positives))
            for each in bins
        ]
        return sum((share - part) ** 2 / (part * chance) for share, part in zip(shares, mixed, strict=True) if part)

    before = positives / rows
    now = min((step / 1000 for step in range(1, 1000)), key=distance)
    free = len(bins) - 2
    fits = free * (1 - 2 / (9 * free) + _FITS_Z * math.sqrt(2 / (9 * free))) ** 3  # Wilson, Hilferty 1931
    if distance(before) - distance(now) <= _SURELY_MOVED or distance(now) > fits:
        return None
    return LabelShift(before=before, now=now)


_FEWEST_BINS = 4


def _bin_of(score: float) -> int:
    """Return the place of a score among the bins of the calibration."""
    return min(max(math.ceil(score * EQUAL_BINS) - 1, 0), EQUAL_BINS - 1)


def calibrated(score: float, scores: Scores) -> float:
    """Return how often an answer of this score is right: moved by the calibration's error, between bins linearly."""
    bins = sorted(scores.curves.calibration, key=lambda each: each.score) if scores.curves else []
    places = [each.score for each in bins]
    at = bisect.bisect_left(places, score)
    if at in (0, len(bins)):
        nearest = bins[0 if at == 0 else -1]
        error = nearest.positive - nearest.score
    else:
        low, high = bins[at - 1], bins[at]
        part = (score - low.score) / (high.score - low.score)
        error = (1 - part) * (low.positive - low.score) + part * (high.positive - high.score)
    return min(1.0, max(0.0, score + error))


def _expected_buckets(answers: Histogram, scores: Scores) -> list[ScoreBucket]:
    """Return the buckets with the labels that are expected."""
    found = []
    for _, each in sorted(answers.items()):
        share = calibrated(each.total / each.examples, scores)
        found.append(ScoreBucket(positives=each.examples * share, negatives=each.examples * (1 - share)))
    return found


def _expected_sums(losses: LossPair, answers: Histogram, scores: Scores) -> Sums:
    """Return sum and sum of squares of a loss over the labels that are expected."""
    total = squares = examples = 0.0
    for each in answers.values():
        score = each.total / each.examples
        share = calibrated(score, scores)
        right, wrong = losses(score)
        examples += each.examples
        total += each.examples * (share * right + (1 - share) * wrong)
        squares += each.examples * (share * right**2 + (1 - share) * wrong**2)
    return Sums(examples=round(examples), total=total, squares=squares)


def _log_losses(score: float) -> tuple[float, float]:
    clipped = min(max(score, _CLIP), 1 - _CLIP)
    return -math.log(clipped), -math.log(1 - clipped)


def _expected_errors(answers: Histogram, scores: Scores) -> Sums:
    """Return sum and sum of squares of the absolute error that the evaluation found for such answers."""
    bins = sorted(scores.answers.bins, key=lambda each: each.answer) if scores.answers else []
    total = squares = examples = 0.0
    for place, each in answers.items():
        near = bins[min(max(place, 0), len(bins) - 1)]
        examples += each.examples
        total += each.examples * (near.absolute_error or 0.0)
        squares += each.examples * (near.squared_error or 0.0)
    return Sums(examples=round(examples), total=total, squares=squares)


def _by_buckets(measured: Callable[[Sequence[ScoreBucket], float], Interval | None]) -> Estimate:
    return lambda answers, scores, confidence: measured(_expected_buckets(answers, scores), confidence)


def _by_losses(losses: LossPair) -> Estimate:
    return lambda answers, scores, confidence: intervals.mean(_expected_sums(losses, answers, scores), confidence)


ESTIMATES: Mapping[Kind, Mapping[Metric, Estimate]] = {
    "binary": {
        "auc": _by_buckets(intervals.auc),
        "log_loss": _by_losses(_log_losses),
        "accuracy": _by_losses(lambda score: (float(score >= 0.5), float(score < 0.5))),
        "brier": _by_losses(lambda score: ((1 - score) ** 2, score**2)),
        "pr_auc": _by_buckets(intervals.average_precision),
    },
    "multiclass": {"accuracy": _by_losses(lambda _: (1.0, 0.0))},
    "regression": {
        "mae": lambda answers, scores, confidence: intervals.mean(_expected_errors(answers, scores), confidence)
    },
}
"""What can be estimated, by the kind of the label: the leading metric, and others."""


def _has_curve(spec: ModelSpec, scores: Scores) -> bool:
    if spec.label.kind != "regression":
        return scores.curves is not None
    return scores.answers is not None and all(each.absolute_error is not None for each in scores.answers.bins)


def _judge_estimated(spec: ModelSpec, metric: Metric, found: Interval, before: float | None) -> Signal:
    """Return the estimate, held against the evaluation where it is of the metric that decides."""
    drop, higher = allowed_drop(spec), metric in HIGHER_IS_BETTER
    limit = None
    if before is not None and drop is not None and metric == spec.evaluation.metric:
        limit = before - drop if higher else before + drop
    worse = limit is not None and (found.high < limit if higher else found.low > limit)
    was = f"; it was {before:.4f} when it became champion" if before is not None else ""
    message = (
        f"{metric} is expected to be {found.value:.4f} ({found.low:.4f} to {found.high:.4f}) over {found.examples} "
        f"answers{was}. Without labels: what turns out otherwise for the same requests is not in it."
    )
    return _signal_of_estimate("exceeded" if worse else "ok", metric, found, limit, message)


def _error_of_estimate(spec: ModelSpec, metric: Metric, own: VersionAnswers, scores: Scores) -> list[Signal]:
    """Return how far the estimate over the labelled answers is from the truth; nothing without enough labels."""
    cut = own.cuts.get(("", ""), Cut())
    if cut.examples < spec.monitoring.min_requests:
        return []
    truth = measure(cut, metric, spec.evaluation.promote.confidence)
    answers = {place: Counted(examples=each.examples, total=each.total) for place, each in cut.histograms[""].items()}
    found = estimate(spec, metric, answers, scores)
    if truth is None or found is None:
        return []
    off = found.value - truth.value
    message = (
        f"Over the {truth.examples} answers whose label is known the estimate of {metric} is {found.value:.4f}, "
        f"and the truth is {truth.value:.4f}."
    )
    reach = (truth.high - truth.low) / 2
    error = Interval(value=off, low=off - reach, high=off + reach, examples=truth.examples)
    return [_signal_of_estimate("ok", f"{metric}_error", error, None, message)]


def _signal_of_estimate(state: SignalState, name: str, found: Interval, limit: float | None, message: str) -> Signal:
    return Signal(
        kind="estimate",
        subject="",
        state=state,
        reason=None,
        measure=name,
        value=found.value,
        low=found.low,
        high=found.high,
        threshold=limit,
        examples=found.examples,
        message=message,
    )
