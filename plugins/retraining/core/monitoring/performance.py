"""How good the answers were, once their labels are known: signals with intervals.

In: counts and sums of answers with their labels, and the champion's deciding evaluation. Out: signals, by version and
by slice. The champion's metric is exceeded when its whole interval is worse than then by more than
`monitoring.performance.max_drop`; all else is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from retraining.core.documents.monitoring import Signal
from retraining.core.metrics import HIGHER_IS_BETTER, IN_UNIT, METRICS, Metric, Quality, watched_metrics
from retraining.core.monitoring import intervals
from retraining.core.monitoring.intervals import Interval
from retraining.core.monitoring.request_log import Cut, VersionAnswers
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
    """Return how much of the metric may be lost; None: it has a unit of its own, and the file does not say."""
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
        unsaid = f"say in monitoring.performance.max_drop how much {metric} may lose: it is in {METRICS[metric].unit}"
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
        value=found.value,
        low=found.low,
        high=found.high,
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
        value=found.value,
        low=found.low,
        high=found.high,
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
