"""How good the answers were, once their labels are known, and how good they may be before: signals with intervals.

In: counts and sums of answers with their labels, and the champion's deciding evaluation. Out: signals, by version and
by slice. The champion's metric is exceeded when its whole interval is worse than then by more than
`monitoring.performance.max_drop`; all else is shown.

Before a label is known the metric is estimated. Binary: the evaluation's calibration says how often an answer of a size
is positive. The expected counts of positives and negatives give each metric as if they were labels (confidence-based
performance estimation: Guillory et al. 2021, ICCV, arXiv:2107.03315; Garg et al. 2022, arXiv:2201.04234). Several
classes: how often the likeliest class is right, so accuracy alone. Numbers: the mean error that the evaluation found
for answers of a size. An estimate sees that requests moved to where the model is less sure. It cannot see that the same
requests now turn out otherwise (concept drift): for that labels are needed.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from retraining.core.documents.evaluation import Evaluation, Scores
from retraining.core.documents.monitoring import Signal, SignalState
from retraining.core.metrics import HIGHER_IS_BETTER, IN_UNIT, LEADING, Kind, Metric, Quality, watched_metrics
from retraining.core.monitoring import intervals
from retraining.core.monitoring.intervals import Interval, ScoreBucket, Sums
from retraining.core.monitoring.request_log import Counted, Cut, Histogram, VersionAnswers
from retraining.core.monitoring.signals import not_judged
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.monitoring import PerformanceLimits

_NOT_BY_SLICE: frozenset[str] = frozenset({"r2", "medae"})
"""Not cut by slices: what they need is counted over all answers of a version."""
WAY_OUT_WITHOUT_KEYS = (
    "set deployment.key_input: true, so that a request brings its example's key, or name a table of request_id, "
    "instance and key in monitoring.performance.request_keys"
)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What the champion had when it became champion, and those before it that served not long ago.

    A model that a drift was half learned by is worse than the one before the drift was: it does not lower the bar.

    Attributes:
        metrics: Of its deciding evaluation; None: not known.
        earlier: Of the deciding evaluations of champions that it, or one after them, replaced not long ago.
        reason: Why nothing is held against them; empty: it is.
    """

    metrics: Quality | None
    earlier: Sequence[Quality] = ()
    reason: str = ""

    def own(self, metric: Metric) -> float | None:
        """Return the champion's own, if its evaluation has it."""
        return getattr(self.metrics, metric, None) if self.metrics else None

    def best(self, metric: Metric) -> float | None:
        """Return the best of all of them, if the champion's own is known."""
        own = self.own(metric)
        if own is None:
            return None
        known: list[float] = [value for each in self.earlier if (value := getattr(each, metric, None)) is not None]
        return max([own, *known]) if metric in HIGHER_IS_BETTER else min([own, *known])


def allowed_drop(spec: ModelSpec) -> float | None:
    """Return how much of the metric may be lost; None: it is in the label's unit, and the file does not say."""
    drop = spec.monitoring.performance.max_drop
    unsaid = drop == PerformanceLimits.model_fields["max_drop"].default
    return None if spec.evaluation.metric in IN_UNIT and unsaid else drop


def measure(cut: Cut, metric: Metric, confidence: float) -> Interval | None:
    """Return a metric over labelled answers, by `MEASURES` or as a mean that the query has; None: it is not defined."""
    if metric in MEASURES:
        return MEASURES[metric](cut, confidence)
    sums = cut.means.get(metric)
    return intervals.mean(sums, confidence) if sums is not None and sums.examples else None


def _auc(cut: Cut, confidence: float) -> Interval | None:
    if any(cut.histograms):
        return intervals.mean_auc([cut.buckets(name) for name in sorted(cut.histograms) if name], confidence)
    return intervals.auc(cut.buckets(), confidence)


def _rmse(cut: Cut, confidence: float) -> Interval | None:
    return intervals.root_mean(cut.means["squared_error"], confidence) if "squared_error" in cut.means else None


def _r2(cut: Cut, confidence: float) -> Interval | None:
    if not {"squared_error", "deviation", "error_deviation"} <= cut.means.keys():
        return None
    product = cut.means["error_deviation"].squares
    return intervals.explained(cut.means["squared_error"], cut.means["deviation"], product, confidence)


def _medae(cut: Cut, confidence: float) -> Interval | None:
    return intervals.median([value for _, value in sorted(cut.quantiles.items())], cut.examples, confidence)


MEASURES: Mapping[Metric, Callable[[Cut, float], Interval | None]] = {
    "auc": _auc,
    "pr_auc": lambda cut, confidence: intervals.average_precision(cut.buckets(), confidence),
    "balanced_accuracy": lambda cut, confidence: intervals.balanced_accuracy(cut.confusion, confidence),
    "macro_f1": lambda cut, confidence: intervals.macro_f1(cut.confusion, confidence),
    "medae": _medae,
    "rmse": _rmse,
    "r2": _r2,
}
"""From labelled answers and a confidence; every other metric is the mean of what the query has by its name."""


def judge_performance(
    spec: ModelSpec,
    found: Mapping[str, VersionAnswers],
    versions: Mapping[str, str],
    champion: str,
    reference: Reference,
) -> tuple[Signal, ...]:
    """Return all signals of performance: the metric, coverage, other metrics, slices, other versions.

    Args:
        spec: The model.
        found: By deployed-model id.
        versions: Id of the version, by deployed-model id.
        champion: Deployed-model id of the champion.
        reference: Held against.
    """
    own = found.get(champion, VersionAnswers())
    metric, cut = spec.evaluation.metric, own.cuts.get(("", ""), Cut())
    main = _explain_no_labels(spec, found, champion) or _judge_champion(spec, cut, reference)
    others = [name for name in watched_metrics(spec.label.kind) if name != metric]
    shown = [_show_metric(spec, "", name, cut) for name in others]
    shown += [
        _show_metric(spec, f"{column}={value}", metric, of_slice)
        for (column, value), of_slice in sorted(own.cuts.items())
        if column and metric not in _NOT_BY_SLICE and of_slice.examples >= spec.evaluation.promote.min_slice_examples
    ]
    shown += [
        _show_metric(spec, f"version {versions.get(name, name)}", metric, each.cuts[("", "")])
        for name, each in sorted(found.items())
        if name != champion and ("", "") in each.cuts
    ]
    return (main, *_coverage(own), *(signal for signal in shown if signal is not None))


def _explain_no_labels(spec: ModelSpec, found: Mapping[str, VersionAnswers], champion: str) -> Signal | None:
    """Return why the champion's answers have no labels; None: some have."""
    metric, counts = spec.evaluation.metric, found.get(champion, VersionAnswers()).counts
    asked, keys, labelled, waiting = (counts.get(name, 0) for name in ("asked", "keys", "labelled", "waiting"))
    elsewhere = sum(each.counts.get("labelled", 0) for name, each in found.items() if name != champion)
    if labelled:
        return None
    if elsewhere:
        message = f"{elsewhere} labels are of answers that another version gave; none of the champion's has one yet."
        return not_judged("performance", metric, "labels_of_another_version", message, examples=elsewhere)
    if not asked:
        return not_judged("performance", metric, "no_traffic", "The champion answered nothing in the window.")
    if not keys:
        message = f"None of {asked} requests says which example it is about: {WAY_OUT_WITHOUT_KEYS}."
        return not_judged("performance", metric, "no_keys", message, examples=asked)
    if unknown := keys - waiting:
        message = (
            f"No label has any of the {unknown} keys that were asked about and whose label is due: compare the keys of "
            f"the requests with {spec.data.key} of {_labels_source(spec)}."
        )
        return not_judged("performance", metric, "unknown_keys", message, examples=unknown)
    message = f"The labels of all {keys} keys are not known yet: {spec.data.label_lag_days} days is their lag."
    return not_judged("performance", metric, "no_labels", message, examples=keys)


def _judge_champion(spec: ModelSpec, cut: Cut, reference: Reference) -> Signal:
    """Return the champion's metric held against the bar, where enough answers have a label."""
    metric, least = spec.evaluation.metric, spec.monitoring.min_requests
    found = measure(cut, metric, spec.evaluation.promote.confidence)
    if found is None or found.examples < least:
        examples = found.examples if found else cut.examples
        why = f"at least {least} are judged" if examples < least else f"{metric} is not defined on them"
        message = f"{examples} answers have a label; {why}."
        signal = not_judged("performance", metric, "too_few", message, examples=examples)
        return signal.model_copy(update=_interval_values(found)) if found else signal
    return hold_score(spec, found, reference)


def hold_score(spec: ModelSpec, found: Interval, reference: Reference) -> Signal:
    """Return the metric over labelled answers, held against the best that was served not long ago.

    Args:
        spec: The model.
        found: The metric.
        reference: What it is held against.
    """
    metric = spec.evaluation.metric
    before, own, drop = reference.best(metric), reference.own(metric), allowed_drop(spec)
    if before is None or drop is None or reference.reason:
        unsaid = f"say in monitoring.performance.max_drop how much {metric} may lose: it is in the label's unit"
        why = reference.reason or (unsaid if before is not None else "the champion's evaluation is not there")
        message = f"{_metric_text(metric, found)}; {why}."
        signal = not_judged("performance", metric, "no_reference", message, examples=found.examples)
        return signal.model_copy(update=_interval_values(found))
    higher = metric in HIGHER_IS_BETTER
    limit = before - drop if higher else before + drop
    worse = found.high < limit if higher else found.low > limit
    was = "it was" if before == own else "the best of the last champions, before it, had"
    message = f"{_metric_text(metric, found)}; {was} {before:.4f} when it became champion, and {drop:g} may be lost."
    return Signal(
        kind="performance",
        subject="",
        state="exceeded" if worse else "ok",
        reason=None,
        measure=metric,
        threshold=limit,
        examples=found.examples,
        message=message,
        **_interval_values(found),
    )


def _show_metric(spec: ModelSpec, subject: str, metric: Metric, cut: Cut) -> Signal | None:
    """Return a metric that nothing follows from; None: it is not defined."""
    found = measure(cut, metric, spec.evaluation.promote.confidence)
    if found is None:
        return None
    return Signal(
        kind="performance",
        subject=subject,
        state="ok",
        reason=None,
        measure=metric,
        threshold=None,
        examples=found.examples,
        message=f"{_metric_text(metric, found)}.",
        **_interval_values(found),
    )


def _coverage(own: VersionAnswers) -> list[Signal]:
    """Return which share of the champion's keys has a label, waits for one, and will find none."""
    counts = own.counts
    keys, asked = counts.get("keys", 0), counts.get("asked", 0)
    if not keys:
        return []
    labelled, waiting = counts.get("labelled", 0), counts.get("waiting", 0)
    named = {
        "without a key": counts.get("without_key", 0),
        "asked about again, of which the last answer counts": counts.get("doubled", 0),
        "labelled, with an answer or a label that is no number": counts.get("unreadable", 0),
    }
    more = "".join(f" {count} of {asked} instances are {what}." for what, count in named.items() if count)
    shares = (
        ("coverage", labelled, "have a label"),
        ("waiting", waiting, "wait for one: their label is not due"),
        ("not_found", keys - labelled - waiting, "were due and have none"),
    )
    return [
        Signal(
            kind="performance",
            subject="",
            state="ok",
            reason=None,
            measure=name,
            value=count / keys,
            threshold=None,
            examples=keys,
            message=f"{count} of {keys} keys {what}.{more if name == 'coverage' else ''}",
        )
        for name, count, what in shares
    ]


def _interval_values(found: Interval) -> dict[str, float]:
    return {"value": found.value, "low": found.low, "high": found.high}


def _metric_text(metric: Metric, found: Interval) -> str:
    hidden = f", of which {found.error:.5f} to either side is the buckets'" if found.error else ""
    return (
        f"{metric} is {found.value:.4f} ({found.low:.4f} to {found.high:.4f}{hidden}) over {found.examples} answers "
        "with a label"
    )


def _labels_source(spec: ModelSpec) -> str:
    return spec.monitoring.performance.labels_query or spec.data.source_name


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
        message = "The champion's evaluation does not tell how often an answer of which size is right."
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
    return (main, *_error_of_estimate(spec, metric, own, scores))


def estimate(spec: ModelSpec, metric: Metric, answers: Histogram, scores: Scores) -> Interval | None:
    """Return what a metric is expected to be over answers; None: it is not defined on them.

    Args:
        spec: The model.
        metric: One of `ESTIMATES` for the kind of its label.
        answers: By bucket.
        scores: Of the evaluation, with the curve that is gone by.
    """
    return ESTIMATES[spec.label.kind][metric](answers, scores, spec.evaluation.promote.confidence)


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
