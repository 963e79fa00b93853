"""How good the answers may be, before a label is known; and how far that was off, once some are.

In: how many answers there are of each size, and what the champion's evaluation says of such answers. Out: signals.

Binary: the evaluation's calibration says how often an answer of a size is positive. The expected counts of positives
and negatives give each metric as if they were labels (confidence-based performance estimation: Guillory et al. 2021,
ICCV, arXiv:2107.03315; Garg et al. 2022, arXiv:2201.04234). Several classes: how often the likeliest class is right, so
accuracy alone. Numbers: the mean error that the evaluation found for answers of a size.

It sees that requests moved to where the model is less sure. It cannot see that the same requests now turn out otherwise
(concept drift): for that labels are needed.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping

from retraining.core.documents.evaluation import Evaluation, Scores
from retraining.core.documents.monitoring import Signal, SignalState
from retraining.core.monitoring import intervals
from retraining.core.monitoring.intervals import Interval, ScoreBucket, Sums
from retraining.core.monitoring.performance import allowed_drop, measure
from retraining.core.monitoring.request_log import Counted, Cut, Histogram, VersionAnswers
from retraining.core.monitoring.signals import not_judged
from retraining.core.spec.metrics import HIGHER_IS_BETTER, Metric
from retraining.core.spec.model import ModelSpec

SHOWN: Mapping[str, tuple[Metric, ...]] = {
    "binary": ("auc", "log_loss", "accuracy", "brier", "pr_auc"),
    "multiclass": ("accuracy",),
    "regression": ("mae",),
}
"""What can be estimated, by the kind of the label."""
_CLIP = 1e-7


def judge_estimate(spec: ModelSpec, own: VersionAnswers, evaluation: Evaluation | None) -> tuple[Signal, ...]:
    """Return the estimated metric, held against the evaluation's; and where labels are, how far it is off.

    Args:
        spec: The model.
        own: The champion's answers.
        evaluation: By which it became champion; None: it is not there.
    """
    names = SHOWN[spec.label.kind]
    metric = spec.evaluation.metric if spec.evaluation.metric in names else names[0]
    scores = evaluation.challenger if evaluation else None
    answers = round(sum(each.examples for each in own.answers.values()))
    if scores is None or not _has_curve(spec, scores):
        words = "The champion's evaluation does not tell how often an answer of which size is right."
        return (not_judged("estimate", metric, "no_reference", words, examples=answers),)
    least = spec.monitoring.min_requests
    if answers < least:
        words = f"{answers} answers; at least {least} are judged."
        return (not_judged("estimate", metric, "too_few" if answers else "no_traffic", words, examples=answers),)
    found = estimate(spec, metric, own.answers, scores)
    if found is None:
        words = f"{metric} is not defined on these answers."
        return (not_judged("estimate", metric, "too_few", words, examples=answers),)
    main = _held(spec, metric, found, getattr(scores.metrics, metric, None))
    return (main, *_own_error(spec, metric, own, scores))


def estimate(spec: ModelSpec, metric: Metric, answers: Histogram, scores: Scores) -> Interval | None:
    """Return what a metric is expected to be over answers; None: it is not defined on them.

    Args:
        spec: The model.
        metric: One of `SHOWN`.
        answers: By bucket.
        scores: Of the evaluation, with the curve that is gone by.
    """
    confidence = spec.evaluation.promote.confidence
    if spec.label.kind == "regression":
        return intervals.mean(_expected_errors(answers, scores), confidence)
    if metric == "auc":
        return intervals.auc(_expected_buckets(answers, scores), confidence)
    if metric == "pr_auc":
        return intervals.average_precision(_expected_buckets(answers, scores), confidence)
    return intervals.mean(_expected_sums(spec, metric, answers, scores), confidence)


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


def _expected_sums(spec: ModelSpec, metric: Metric, answers: Histogram, scores: Scores) -> Sums:
    """Return sum and sum of squares of a loss over the labels that are expected."""
    total = squares = examples = 0.0
    for each in answers.values():
        score = each.total / each.examples
        share = calibrated(score, scores)
        right, wrong = (1.0, 0.0) if spec.label.kind == "multiclass" else _losses(metric, score)
        examples += each.examples
        total += each.examples * (share * right + (1 - share) * wrong)
        squares += each.examples * (share * right**2 + (1 - share) * wrong**2)
    return Sums(examples=round(examples), total=total, squares=squares)


def _losses(metric: Metric, score: float) -> tuple[float, float]:
    """Return the loss of a score where the label is 1, and where it is 0."""
    if metric == "accuracy":
        return float(score >= 0.5), float(score < 0.5)
    if metric == "brier":
        return (1 - score) ** 2, score**2
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


def _has_curve(spec: ModelSpec, scores: Scores) -> bool:
    if spec.label.kind != "regression":
        return scores.curves is not None
    return scores.answers is not None and all(each.absolute_error is not None for each in scores.answers.bins)


def _held(spec: ModelSpec, metric: Metric, found: Interval, before: float | None) -> Signal:
    """Return the estimate, held against the evaluation where it is of the metric that decides."""
    drop, higher = allowed_drop(spec), metric in HIGHER_IS_BETTER
    limit = None
    if before is not None and drop is not None and metric == spec.evaluation.metric:
        limit = before - drop if higher else before + drop
    worse = limit is not None and (found.high < limit if higher else found.low > limit)
    was = f"; it was {before:.4f} when it became champion" if before is not None else ""
    words = (
        f"{metric} is expected to be {found.value:.4f} ({found.low:.4f} to {found.high:.4f}) over {found.examples} "
        f"answers{was}. Without labels: what turns out otherwise for the same requests is not in it."
    )
    return _signal("exceeded" if worse else "ok", metric, found, limit, words)


def _own_error(spec: ModelSpec, metric: Metric, own: VersionAnswers, scores: Scores) -> list[Signal]:
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
    words = (
        f"Over the {truth.examples} answers whose label is known the estimate of {metric} is {found.value:.4f}, "
        f"and the truth is {truth.value:.4f}."
    )
    reach = (truth.high - truth.low) / 2
    error = Interval(value=off, low=off - reach, high=off + reach, examples=truth.examples)
    return [_signal("ok", f"{metric}_error", error, None, words)]


def _signal(state: SignalState, name: str, found: Interval, limit: float | None, words: str) -> Signal:
    return Signal(
        kind="estimate",
        subject="",
        state=state,
        because=None,
        measure=name,
        value=found.value,
        low=found.low,
        high=found.high,
        threshold=limit,
        examples=found.examples,
        words=words,
    )
