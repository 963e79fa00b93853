"""How far requests and answers have moved, and what is wrong with the log itself: a signal for each.

Skew holds requests against the champion's training data, drift against earlier requests, prediction drift the
champion's answers against those on its test days and against its earlier ones. An anomaly of the log (garbage, one
giant batch, a wrong clock) is named, and by itself no reason to retrain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from retraining.core.documents.checks import (
    CategoricalStatistics,
    FeatureStatistics,
    NumericStatistics,
    SplitStatistics,
    UsualDistance,
)
from retraining.core.documents.monitoring import NamedState, Signal
from retraining.core.monitoring.distributions import (
    UNSEEN,
    AnswerBaseline,
    Bucket,
    Distance,
    between_bins,
    between_values,
    bin_edges,
    bin_shares,
    category_shares,
    room_of,
    value_shares,
)
from retraining.core.monitoring.limits import EARLIER, Distances, calibrate, explicit_limit, limit_of
from retraining.core.monitoring.request_log import GIANT_SHARE, LoggedWindow, RequestLog
from retraining.core.monitoring.signals import not_judged
from retraining.core.monitoring.usual import usual_of_answers
from retraining.core.signal_kinds import SignalKind
from retraining.core.spec.model import ModelSpec

MAX_GARBAGE = 0.5
"""Of a window's instances: with a larger share of garbage the rest is not judged."""
_CHANGED_MOST: dict[Bucket, str] = {None: ", most of it missing values", UNSEEN: ", most of it values that are new"}


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """Why distributions are not judged."""

    reason: NamedState
    message: str


@dataclass(frozen=True, kw_only=True)
class _Distribution:
    """What is judged: which signal, of what, on how many instances.

    `name` is the feature or label of the file; `usual` how far days of the champion's run are apart in it.
    """

    spec: ModelSpec
    kind: SignalKind
    name: str
    measure: str
    examples: int
    other: str
    subject: str = ""
    usual: UsualDistance | None = None

    @property
    def _distances(self) -> Distances:
        of_answers = self.kind == "prediction_drift"
        return Distances(
            measure=self.measure,
            of_answers=of_answers,
            of_windows=self.kind == "drift" or (of_answers and self.subject.endswith(EARLIER)),
        )

    def by(self, distance: Distance) -> Signal:
        """Return the signal of a distance, with its limit and where that comes from."""
        calibrated = calibrate(self.spec, self._distances, self.usual, distance.chance)
        limit = limit_of(self.spec, self.name, calibrated)
        over = limit.is_exceeded(distance.value, distance.low)
        most = _CHANGED_MOST.get(distance.most, "") if over else ""
        interval = f"{distance.value:.3f} ({distance.low:.3f} to {distance.high:.3f})"
        how_far = f"{interval} from {self.other} (limit {limit.value:.3g}, {limit.source})"
        return Signal(
            kind=self.kind,
            subject=self.subject or self.name,
            state="exceeded" if over else "ok",
            reason=None,
            measure=self.measure,
            value=distance.value,
            low=distance.low,
            high=distance.high,
            threshold=limit.value,
            calibrated=calibrated,
            examples=self.examples,
            message=f"{self.name} is {how_far}{most}.",
        )

    def not_judged(self, reason: NamedState, message: str) -> Signal:
        """Return the signal that says why there is none."""
        return not_judged(
            self.kind,
            self.measure,
            reason,
            message,
            subject=self.subject or self.name,
            threshold=explicit_limit(self.spec, self.name),
            examples=self.examples,
        )


def find_obstacle(spec: ModelSpec, window: LoggedWindow, when: str) -> Obstacle | None:
    """Return why a window's distributions are not judged; None: they are.

    Args:
        spec: The model.
        window: What was logged.
        when: The window, for the sentence.
    """
    least, instances = spec.monitoring.min_requests, window.all.instances
    if not instances:
        return Obstacle(reason="no_traffic", message=f"No request was logged in {when}.")
    if instances < least:
        few = f"{instances} instances in {when} are too few to judge"
        return Obstacle(reason="too_few", message=f"{few} (at least {least}).")
    garbage = window.all.garbage
    if garbage > MAX_GARBAGE * instances:
        return Obstacle(reason="garbage", message=f"{garbage} of {instances} instances in {when} cannot be read.")
    if window.judged < least:
        if window.giant:
            one = f"One request brought {window.giant} of {instances} instances in {when}"
            return Obstacle(reason="giant_batch", message=f"{one}, and the others are too few to judge.")
        few = f"{window.judged} instances in {when} that can be read are too few to judge"
        return Obstacle(reason="too_few", message=f"{few} (at least {least}).")
    return None


def judge_nothing(spec: ModelSpec, obstacle: Obstacle, examples: int = 0) -> tuple[Signal, ...]:
    """Return the signals of a window that is not judged: one of each kind."""
    limit = spec.monitoring.drift.threshold
    kinds: tuple[SignalKind, ...] = ("skew", "drift", "prediction_drift")
    return tuple(
        not_judged(kind, "distance", obstacle.reason, obstacle.message, threshold=limit, examples=examples)
        for kind in kinds
    )


def judge_shifts(
    spec: ModelSpec, train: SplitStatistics, log: RequestLog, answers: Sequence[AnswerBaseline], deployed_id: str
) -> tuple[Signal, ...]:
    """Return skew and drift of each feature, and prediction drift of each label.

    Args:
        spec: The model.
        train: Statistics of what the champion was trained on.
        log: What was logged.
        answers: How answers were counted.
        deployed_id: Of the champion; what others answered is not judged.
    """
    obstacle = find_obstacle(spec, log.now, f"the last {spec.monitoring.window_hours} hours")
    if obstacle is not None:
        return judge_nothing(spec, obstacle, log.now.all.instances)
    earlier = find_obstacle(
        spec, log.earlier, f"the {spec.monitoring.window_hours} hours {_reference_ago(spec)} before"
    )
    return (
        *_skew(spec, train, log.now),
        *_drift(spec, train, log, earlier),
        *(signal for label in answers for signal in _prediction_drift(spec, label, log, deployed_id)),
    )


def _skew(spec: ModelSpec, train: SplitStatistics, now: LoggedWindow) -> Iterator[Signal]:
    for name, measure, edges in _judged_features(spec, train):
        counts, baseline = now.values.get(name, {}), train.features[name]
        judged = _Distribution(
            spec=spec,
            kind="skew",
            name=name,
            measure=measure,
            examples=sum(counts.values()),
            other="the training data",
            usual=_usual(baseline),
        )
        if gone := _explain_gone_feature(name, counts, _missing_share(train, name), "training"):
            yield judged.not_judged("feature_gone", gone)
        elif isinstance(baseline, CategoricalStatistics):
            rows = (train.rows, judged.examples)
            expected, found = category_shares(baseline, train.rows), value_shares(counts, baseline.tail)
            yield judged.by(between_values(expected, found, rows, room_of(baseline.tail)))
        elif isinstance(baseline, NumericStatistics):
            rows = (train.rows, judged.examples)
            shares = bin_shares(baseline, train.rows, edges)
            yield judged.by(between_bins(shares, _bin_shares(counts, len(edges)), rows))


def _drift(spec: ModelSpec, train: SplitStatistics, log: RequestLog, obstacle: Obstacle | None) -> Iterator[Signal]:
    limits = spec.monitoring.drift
    if obstacle is not None:
        yield not_judged("drift", "distance", "no_reference", obstacle.message, threshold=limits.threshold)
        return
    for name, measure, edges in _judged_features(spec, train):
        counts, before = log.now.values.get(name, {}), log.earlier.values.get(name, {})
        judged = _Distribution(
            spec=spec,
            kind="drift",
            name=name,
            measure=measure,
            examples=sum(counts.values()),
            other=f"the requests {_reference_ago(spec)} before",
            usual=_usual(train.features[name]),
        )
        missing_before = before.get(None, 0) / (sum(before.values()) or 1)
        if gone := _explain_gone_feature(name, counts, missing_before, f"the requests {_reference_ago(spec)} before"):
            yield judged.not_judged("feature_gone", gone)
        elif _explain_gone_feature(name, before, 0.0, "") and counts.get(None, 0) < sum(counts.values()):
            yield judged.not_judged(
                "no_reference", f"{name} was missing in all requests {_reference_ago(spec)} before."
            )
        else:
            baseline = train.features[name]
            tail = baseline.tail if isinstance(baseline, CategoricalStatistics) else ()
            yield judged.by(_distance_of_counts(counts, before, len(edges), tail))


def _prediction_drift(spec: ModelSpec, label: AnswerBaseline, log: RequestLog, deployed_id: str) -> Iterator[Signal]:
    now = log.now.answers.get((label.name, deployed_id), {})
    before = log.earlier.answers.get((label.name, deployed_id), {})
    least, answered = spec.monitoring.min_requests, sum(now.values())
    judged = _Distribution(
        spec=spec,
        kind="prediction_drift",
        name=label.name,
        measure=label.measure,
        examples=answered,
        other="the answers on the champion's test days",
        usual=usual_of_answers(label.counted, least) if label.counted else None,
    )
    ago = f"the champion's answers {_reference_ago(spec)} before"
    since = replace(judged, other=ago, subject=f"{label.name} {EARLIER}")
    if answered < least:
        few = f"{answered} answers of the champion are too few to judge (at least {least})."
        yield judged.not_judged("too_few", few)
        return
    if label.shares:
        rows = (label.rows, answered)
        if label.classes:
            expected: dict[Bucket, float] = {str(index): share for index, share in enumerate(label.shares)}
            yield judged.by(between_values(expected, value_shares(now), rows))
        else:
            yield judged.by(between_bins([*label.shares, 0.0], _bin_shares(now, len(label.edges)), rows))
    else:
        yield judged.not_judged("no_reference", f"The champion's evaluation has no answers to {label.name}.")
    if sum(before.values()) < least:
        few = f"{sum(before.values())} answers of the champion {_reference_ago(spec)} before are too few"
        yield since.not_judged("no_reference", f"{few} (at least {least}).")
    else:
        yield since.by(_distance_of_counts(now, before, 0 if label.classes else len(label.edges)))


def _usual(baseline: FeatureStatistics) -> UsualDistance | None:
    return baseline.usual if isinstance(baseline, NumericStatistics | CategoricalStatistics) else None


def _judged_features(spec: ModelSpec, train: SplitStatistics) -> Iterator[tuple[str, str, list[float]]]:
    """Yield the features that the training data has numbers or categories of, with their measure and bins' edges."""
    for name in spec.feature_names if train.rows else ():
        baseline = train.features.get(name)
        if isinstance(baseline, CategoricalStatistics):
            yield name, "l_infinity", []
        elif isinstance(baseline, NumericStatistics) and (edges := bin_edges(baseline)):
            yield name, "jensen_shannon", edges


def _distance_of_counts(
    now: Mapping[Bucket, int], before: Mapping[Bucket, int], edges: int, tail: Sequence[int] = ()
) -> Distance:
    rows = (sum(before.values()), sum(now.values()))
    if edges:
        return between_bins(_bin_shares(before, edges), _bin_shares(now, edges), rows)
    return between_values(value_shares(before, tail), value_shares(now, tail), rows, room_of(tail))


def _missing_share(train: SplitStatistics, name: str) -> float:
    baseline = train.features[name]
    return baseline.nulls / train.rows


def _explain_gone_feature(name: str, counts: Mapping[Bucket, int], missing_before: float, before: str) -> str:
    """Return a sentence when no instance has a value, while there were some before; empty: some has."""
    total = sum(counts.values())
    if not total or counts.get(None, 0) < total or missing_before >= 1:
        return ""
    return f"{name} is missing in all {total} instances; in {before} it was missing in {missing_before:.1%}."


def _bin_shares(counts: Mapping[Bucket, int], edges: int) -> list[float]:
    total = sum(counts.values()) or 1
    shares = [0.0] * (edges + 2)
    for bucket, count in counts.items():
        shares[int(bucket) if isinstance(bucket, str) else -1] += count / total
    return shares


def _reference_ago(spec: ModelSpec) -> str:
    hours = spec.monitoring.reference_hours
    return f"{hours // 24} days" if hours % 24 == 0 else f"{hours} hours"


MAX_GARBAGE_SHARE = 0.01
"""Of a window's instances; strictly more is said."""


def judge_log(spec: ModelSpec, log: RequestLog, requests: int | None) -> tuple[Signal, ...]:
    """Return how many instances the window's log has, and what is wrong with it.

    Args:
        spec: The model.
        log: What was logged.
        requests: That Cloud Monitoring counted in the window; None: not known.
    """
    return (_count_instances(spec, log, requests), *_find_anomalies(log))


def _count_instances(spec: ModelSpec, log: RequestLog, requests: int | None) -> Signal:
    there, hours = log.now.all, spec.monitoring.window_hours
    reason: NamedState | None = None if there.instances else "no_traffic"
    message = f"{there.instances} instances of {there.requests} requests were logged in {hours} hours."
    expected = (requests or 0) * spec.deployment.request_log_sampling
    if not there.instances and expected >= spec.monitoring.min_requests:
        reason = "clock_skew"
        message = (
            f"Cloud Monitoring counted {requests} requests in {hours} hours and none was logged then: the log's times "
            "are wrong, or logging is off."
        )
    return Signal(
        kind="traffic",
        subject="log",
        state="not_judged" if reason else "ok",
        reason=reason,
        measure="instances",
        value=there.instances,
        threshold=None,
        examples=there.instances,
        message=message,
    )


def _find_anomalies(log: RequestLog) -> Iterator[Signal]:
    there, giant = log.now.all, log.now.giant
    if there.instances and (share := there.garbage / there.instances) > MAX_GARBAGE_SHARE:
        message = f"{there.garbage} of {there.instances} logged instances cannot be read; they are left out."
        yield _signal_of_anomaly(
            "garbage", "garbage", "unparsable_share", (share, MAX_GARBAGE_SHARE), there.instances, message
        )
    if giant:
        share = giant / there.instances
        message = f"One request brought {giant} of {there.instances} instances; it and its like are left out."
        yield _signal_of_anomaly(
            "giant batch", "giant_batch", "largest_share", (share, GIANT_SHARE), there.instances, message
        )
    if log.future:
        message = f"{log.future} requests were logged in the future: the clock of what logs them is wrong."
        yield _signal_of_anomaly("clock", "clock_skew", "future_requests", (log.future, 0), log.future, message)


def _signal_of_anomaly(
    subject: str, reason: NamedState, measure: str, found: tuple[float, float], examples: int, message: str
) -> Signal:
    value, threshold = found
    return Signal(
        kind="traffic",
        subject=subject,
        state="exceeded",
        reason=reason,
        measure=measure,
        value=value,
        threshold=threshold,
        examples=examples,
        message=message,
    )
