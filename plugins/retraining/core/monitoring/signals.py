"""Signals of single numbers held against limits: requests, errors and latency of what serves, and how old things are.

In: numbers of Cloud Monitoring for the window and for the earlier one; the times of the champion's data and of the
tables and files that the query reads. Out: signals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from retraining.core.documents.monitoring import NamedState, Signal
from retraining.core.monitoring.distributions import Z95
from retraining.core.naming.bigquery import full_table
from retraining.core.signal_kinds import SignalKind
from retraining.core.spec.model import ModelSpec


def held(
    kind: SignalKind,
    measure: str,
    value: float,
    threshold: float | None,
    message: str,
    *,
    subject: str = "",
    examples: int = 1,
) -> Signal:
    """Return the signal of a value: exceeded when strictly over its threshold; without one it is only shown."""
    return Signal(
        kind=kind,
        subject=subject,
        state="exceeded" if threshold is not None and value > threshold else "ok",
        reason=None,
        measure=measure,
        value=value,
        threshold=threshold,
        examples=examples,
        message=message,
    )


def not_judged(
    kind: SignalKind,
    measure: str,
    reason: NamedState,
    message: str,
    *,
    subject: str = "",
    threshold: float | None = None,
    examples: int = 0,
) -> Signal:
    """Return the signal that says why there is none; without a subject, it is of the model as a whole."""
    return Signal(
        kind=kind,
        subject=subject,
        state="not_judged",
        reason=reason,
        measure=measure,
        value=None,
        threshold=threshold,
        examples=examples,
        message=message,
    )


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What a deployed model answered in a window: requests, errors among them, percentiles of its own latency."""

    requests: int
    errors: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class ServedWindows:
    """What an endpoint answered in the window and in the earlier one, by deployed model, and what these are called."""

    now: Mapping[str, Answered]
    earlier: Mapping[str, Answered]
    names: Mapping[str, str]

    def name(self, deployed_id: str) -> str:
        """Return `version 3`; of one that is deployed no more its id."""
        return self.names.get(deployed_id, f"deployed model {deployed_id}")


def judge_serving(spec: ModelSpec, served: ServedWindows) -> tuple[Signal, ...]:
    """Return requests, errors and latency of each deployed model, and the requests of all of them."""
    now, earlier = (sum(item.requests for item in window.values()) for window in (served.now, served.earlier))
    hours = spec.monitoring.window_hours
    trend = f"{earlier} in the earlier window" if earlier else "none in the earlier window"
    whole = Signal(
        kind="traffic",
        subject="",
        state="ok" if now else "not_judged",
        reason=None if now else "no_traffic",
        measure="requests",
        value=now,
        threshold=None,
        examples=now,
        message=f"{now} requests in {hours} hours; {trend}.",
    )
    return (
        whole,
        *(signal for deployed_id in sorted(served.now) for signal in _judge_deployed_model(spec, served, deployed_id)),
    )


def judge_no_metrics(reason: str) -> tuple[Signal, ...]:
    """Return the signals when Cloud Monitoring does not answer."""
    kinds: tuple[tuple[SignalKind, str], ...] = (
        ("traffic", "requests"),
        ("errors", "error_rate"),
        ("latency", "p99_ms"),
    )
    return tuple(not_judged(kind, measure, "no_metrics", reason) for kind, measure in kinds)


def _judge_deployed_model(spec: ModelSpec, served: ServedWindows, deployed_id: str) -> Iterator[Signal]:
    now, before, name = served.now[deployed_id], served.earlier.get(deployed_id), served.name(deployed_id)
    if not now.requests:
        return
    rows = before.requests if before else 0
    message = f"{name} answered {now.requests} requests; {rows} in the earlier window."
    yield held("traffic", "requests", now.requests, None, message, subject=name, examples=now.requests)
    yield _judge_errors(spec, name, now, before)
    yield from _judge_latency(spec, name, now, before)


def _judge_errors(spec: ModelSpec, name: str, now: Answered, before: Answered | None) -> Signal:
    limit, rate = spec.monitoring.serving.max_error_rate, now.errors / now.requests
    low, high = wilson(now.errors, now.requests)
    few = now.requests < spec.monitoring.min_requests
    trend = f"; {before.errors / before.requests:.2%} in the earlier window" if before and before.requests else ""
    return Signal(
        kind="errors",
        subject=name,
        state="not_judged" if few else "exceeded" if rate > limit else "ok",
        reason="too_few" if few else None,
        measure="error_rate",
        value=rate,
        low=low,
        high=high,
        threshold=limit,
        examples=now.requests,
        message=f"{now.errors} of {now.requests} requests to {name} failed, {rate:.2%} (limit {limit:.2%}){trend}.",
    )


def _judge_latency(spec: ModelSpec, name: str, now: Answered, before: Answered | None) -> Iterator[Signal]:
    limits, few = spec.monitoring.serving, now.requests < spec.monitoring.min_requests
    values = (("p50_ms", now.p50_ms, None), ("p95_ms", now.p95_ms, None), ("p99_ms", now.p99_ms, limits.max_latency_ms))
    for measure, value, limit in values:
        if value is not None and not _is_latency(value):
            message = f"Cloud Monitoring has no number for the latency of {name}: {measure} is {value}."
            yield not_judged("latency", measure, "no_metrics", message, subject=name)
        elif value is not None:
            most = f" (limit {limit:g} ms)" if limit else ""
            message = f"{measure[1:3]} % of the answers of {name} took at most {value:.1f} ms{most}."
            yield _latency_signal(name, measure, value, limit, now.requests, few=few and bool(limit), message=message)
    if now.p99_ms is not None and before and before.p99_ms and _is_latency(now.p99_ms) and _is_latency(before.p99_ms):
        ratio = now.p99_ms / before.p99_ms
        few = few or before.requests < spec.monitoring.min_requests
        message = (
            f"The slowest 1 % of the answers of {name} take {ratio:.2f} times as long as in the earlier window "
            f"(limit {limits.max_latency_ratio:g})."
        )
        yield _latency_signal(
            name, "p99_ratio", ratio, limits.max_latency_ratio, now.requests, few=few, message=message
        )


def _is_latency(value: float) -> bool:
    return math.isfinite(value) and value >= 0


def _latency_signal(
    name: str, measure: str, value: float, limit: float | None, examples: int, *, few: bool, message: str
) -> Signal:
    over = limit is not None and value > limit
    return Signal(
        kind="latency",
        subject=name,
        state="not_judged" if few else "exceeded" if over else "ok",
        reason="too_few" if few else None,
        measure=measure,
        value=value,
        threshold=limit,
        examples=examples,
        message=message,
    )


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927, "Probable inference", JASA 22)."""
    share, square = hits / of, Z95**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = Z95 / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def judge_age(spec: ModelSpec, champion_as_of: datetime | None, as_of: datetime) -> Signal:
    """Return the champion's age in days, held against `monitoring.max_age_days`.

    Args:
        spec: The model.
        champion_as_of: Time of the champion's data; None: none serves.
        as_of: Time of the monitor run.
    """
    limit = spec.monitoring.max_age_days
    if champion_as_of is None:
        return not_judged("age", "days", "no_champion", f"No champion of {spec.name} serves.", threshold=limit)
    days = max(timedelta(), as_of - champion_as_of) / timedelta(days=1)
    message = f"The champion's data ends {days:.1f} days ago{_limit_text(limit)}."
    return held("age", "days", round(days, 3), limit, message)


def judge_sources(
    spec: ModelSpec, changed: Mapping[str, datetime | None], as_of: datetime, project: str
) -> tuple[Signal, ...]:
    """Return for how many hours each source has not changed, held against the limit.

    Args:
        spec: The model.
        changed: When each table, by `project.dataset.table`, or folder of files last changed; None: not known.
        as_of: Time of the monitor run.
        project: Of tables that leave it out.
    """
    static = {full_table(name, project) for name in spec.monitoring.static_sources}
    limit = spec.monitoring.max_source_age_hours or spec.data.checks.max_age_hours
    return tuple(
        _judge_source(name, changed[name], as_of, None if name in static else limit) for name in sorted(changed)
    )


def _judge_source(name: str, changed: datetime | None, as_of: datetime, limit: float | None) -> Signal:
    if changed is None:
        gone = f"{name} is gone, or may not be looked at."
        return not_judged("source", "hours", "source_stopped", gone, subject=name, threshold=limit)
    hours = max(timedelta(), as_of - changed) / timedelta(hours=1)
    message = f"{name} changed last {hours:.1f} hours ago{_limit_text(limit)}."
    signal = held("source", "hours", round(hours, 3), limit, message, subject=name)
    return signal.model_copy(update={"reason": "source_stopped"}) if signal.state == "exceeded" else signal


def _limit_text(limit: float | None) -> str:
    return f" (limit {limit:g})" if limit is not None else ""
