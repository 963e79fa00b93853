"""What is wrong with the log itself: each is named, and by itself no reason to retrain."""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.documents.monitoring import NamedState, Signal
from retraining.core.monitoring.request_log import GIANT_SHARE, RequestLog
from retraining.core.spec.model import ModelSpec

MAX_GARBAGE_SHARE = 0.01
"""Of a window's instances; strictly more is said."""


def judge_log(spec: ModelSpec, log: RequestLog, requests: int | None) -> tuple[Signal, ...]:
    """Return how many instances the window's log has, and what is wrong with it.

    Args:
        spec: The model.
        log: What was logged.
        requests: That Cloud Monitoring counted in the window; None: not known.
    """
    return (_instances(spec, log, requests), *_findings(log))


def _instances(spec: ModelSpec, log: RequestLog, requests: int | None) -> Signal:
    there, hours = log.now.all, spec.monitoring.window_hours
    because: NamedState | None = None if there.instances else "no_traffic"
    words = f"{there.instances} instances of {there.requests} requests were logged in {hours} hours."
    expected = (requests or 0) * spec.deployment.request_log_sampling
    if not there.instances and expected >= spec.monitoring.min_requests:
        because = "clock_skew"
        words = (
            f"Cloud Monitoring counted {requests} requests in {hours} hours and none was logged then: the log's times "
            "are wrong, or logging is off."
        )
    return Signal(
        kind="traffic",
        subject="log",
        state="not_judged" if because else "ok",
        because=because,
        measure="instances",
        value=there.instances,
        threshold=None,
        examples=there.instances,
        words=words,
    )


def _findings(log: RequestLog) -> Iterator[Signal]:
    there, giant = log.now.all, log.now.giant
    if there.instances and (share := there.garbage / there.instances) > MAX_GARBAGE_SHARE:
        words = f"{there.garbage} of {there.instances} logged instances cannot be read; they are left out."
        yield _warning("garbage", "garbage", "unparsable_share", (share, MAX_GARBAGE_SHARE), there.instances, words)
    if giant:
        share = giant / there.instances
        words = f"One request brought {giant} of {there.instances} instances; it and its like are left out."
        yield _warning("giant batch", "giant_batch", "largest_share", (share, GIANT_SHARE), there.instances, words)
    if log.future:
        words = f"{log.future} requests were logged in the future: the clock of what logs them is wrong."
        yield _warning("clock", "clock_skew", "future_requests", (log.future, 0), log.future, words)


def _warning(
    subject: str, because: NamedState, measure: str, found: tuple[float, float], examples: int, words: str
) -> Signal:
    value, threshold = found
    return Signal(
        kind="traffic",
        subject=subject,
        state="exceeded",
        because=because,
        measure=measure,
        value=value,
        threshold=threshold,
        examples=examples,
        words=words,
    )
