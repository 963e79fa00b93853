"""What started a run, from what Airflow says of it; several asset events are one trigger, with every cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from retraining.core.documents.plan import Mode, Trigger, TriggerEvent
from retraining.core.errors import PlanError
from retraining.core.planning.windows import parse_time
from retraining.core.untyped import JsonObject

MAX_CAUSES = 20
"""What a plan and its page keep; the causes of the oldest events go first."""
_LONGEST_CAUSE, _LONGEST_REASON = 200, 1000


@dataclass(frozen=True, kw_only=True)
class AssetEvent:
    """An event of an asset: the monitor's, which says why, or that of a source's own DAG, which need not.

    Attributes:
        asset: The asset's name.
        at: When it came.
        extra: What it brings along: `as_of`, `cause`, `reason` and `ledger_uri` are read.
    """

    asset: str
    at: datetime
    extra: JsonObject

    @property
    def cause(self) -> str:
        """What the event says, as `kind:subject`; of one that says nothing its asset."""
        return _text(self.extra, "cause", _LONGEST_CAUSE) or f"asset:{self.asset}"

    @property
    def reason(self) -> str:
        """What the event says, in a sentence."""
        return _text(self.extra, "reason", _LONGEST_REASON) or f"the asset {self.asset} was updated"


def newest_event(events: Sequence[AssetEvent]) -> AssetEvent | None:
    """Return the event as of the newest time, which is the run's: it knows what any of the others knew.

    An event without `as_of` counts by when it came; of two as of one time the later one is taken.
    """
    return max(events, key=lambda event: (_known_at(event), event.at), default=None)


def trigger_of(run_type: str, *, person: str | None = None, events: Sequence[AssetEvent] = ()) -> Trigger:
    """Return who started a run, and the reason given.

    Args:
        run_type: Airflow's: `manual`, `scheduled`, `backfill`, `asset_triggered`.
        person: Who triggered it, where Airflow knows.
        events: The asset events that did.
    """
    if run_type == "asset_triggered":
        newest = newest_event(events)
        if newest is None:
            return Trigger(kind="asset", reason="an asset event")
        causes = _collapse(events, newest)
        return Trigger(kind="asset", reason=newest.reason, cause=newest.cause, events=causes)
    if run_type == "scheduled":
        return Trigger(kind="scheduled", reason="the model's schedule")
    if run_type == "backfill":
        return Trigger(kind="backfill", reason="a backfill")
    return Trigger(kind="manual", reason=f"by {person}" if person else "by hand")


def mode_of(run_type: str) -> Mode:
    """Return the mode of a run of this type: a backfill records a version and deploys nothing."""
    return "backfill" if run_type == "backfill" else "live"


def _collapse(events: Sequence[AssetEvent], first: AssetEvent) -> tuple[TriggerEvent, ...]:
    """Return each cause once, as its newest event has it: that of `first`, then by when they came, newest first."""
    by_cause: dict[str, list[AssetEvent]] = {first.cause: []}
    for event in sorted(events, key=lambda event: event.at, reverse=True):
        by_cause.setdefault(event.cause, []).append(event)
    kept = list(by_cause.items())[:MAX_CAUSES]
    return tuple(_said(first if cause == first.cause else found[0], len(found)) for cause, found in kept)


def _said(event: AssetEvent, times: int) -> TriggerEvent:
    as_of, uri = event.extra.get("as_of"), event.extra.get("ledger_uri")
    return TriggerEvent(
        cause=event.cause,
        reason=event.reason,
        at=event.at.astimezone(UTC).replace(microsecond=0),
        as_of=_time(as_of),
        ledger_uri=uri if isinstance(uri, str) and uri.startswith("gs://") and uri.count("/") > 2 else None,
        times=times,
    )


def _known_at(event: AssetEvent) -> datetime:
    """Return as of when an event speaks; a time that is none comes first, so that the plan refuses it by name."""
    as_of = event.extra.get("as_of")
    if not as_of:
        return event.at
    return _time(as_of) or datetime.max.replace(tzinfo=UTC)


def _time(value: object) -> datetime | None:
    try:
        return parse_time(value, "") if isinstance(value, str) else None
    except PlanError:
        return None


def _text(extra: JsonObject, key: str, longest: int) -> str:
    """Return a text of an event, which anybody may write: on one line, and cut off where it is too long."""
    value = extra.get(key)
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
