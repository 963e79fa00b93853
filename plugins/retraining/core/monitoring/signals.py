"""The two usual signals: of a value held against its limit, and of what could not be judged."""

from __future__ import annotations

from retraining.core.documents.monitoring import NamedState, Signal, SignalKind


def held(
    kind: SignalKind,
    measure: str,
    value: float,
    threshold: float | None,
    words: str,
    *,
    subject: str = "",
    examples: int = 1,
) -> Signal:
    """Return the signal of a value: exceeded when strictly over its threshold; without one it is only shown."""
    return Signal(
        kind=kind,
        subject=subject,
        state="exceeded" if threshold is not None and value > threshold else "ok",
        because=None,
        measure=measure,
        value=value,
        threshold=threshold,
        examples=examples,
        words=words,
    )


def not_judged(
    kind: SignalKind,
    measure: str,
    because: NamedState,
    words: str,
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
        because=because,
        measure=measure,
        value=None,
        threshold=threshold,
        examples=examples,
        words=words,
    )
