"""Who or what started a run, in plain words: on its page, on the page of all runs, in a shell."""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.documents.plan import Trigger, TriggerEvent
from retraining.core.signal_kinds import SIGNAL_KINDS

_BY = {
    "manual": "by hand",
    "scheduled": "by the model's schedule",
    "backfill": "by a backfill",
    "asset": "by an asset event",
}
_CAUSES: dict[str, str] = {
    **{kind: signal.cause for kind, signal in SIGNAL_KINDS.items()},
    "new_data": "new data in {subject}",
    "asset": "an update of the asset {subject}",
}
"""What the part of a cause before the colon stands for."""


def started_by(trigger: Trigger) -> str:
    """Return what started a run, to follow the word started."""
    if trigger.cause:
        return f"by {explain_cause(trigger.cause)}"
    return _BY[trigger.kind]


def explain_trigger(trigger: Trigger) -> str:
    """Return who started a run and why, as a sentence."""
    reason = trigger.reason.strip().rstrip(".")
    started = f"Started {started_by(trigger)}"
    if trigger.kind in ("scheduled", "backfill") or not reason or reason in started:
        return f"{started}."
    return f"{started}, {reason}." if trigger.kind == "manual" else f"{started}. {reason}."


def further_causes(trigger: Trigger) -> Iterator[tuple[TriggerEvent, str]]:
    """Yield what else asked for the run, each with what its cause stands for: one run is made for all of them."""
    for event in trigger.events[1:]:
        yield event, explain_cause(event.cause)


def explain_cause(cause: str) -> str:
    """Return what a cause stands for, `skew:carrier` or one that somebody else's event brought."""
    kind, _, subject = cause.partition(":")
    message = _CAUSES.get(kind)
    if message is None:
        return cause
    if "{subject}" in message:
        return message.replace("{subject}", subject)
    return f"{message} ({subject})" if subject else message
