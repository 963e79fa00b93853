"""Whether a cause is to be told now: once, until it changes or is over.

The state is one object per cause, changed by compare-and-set. A task claims the cause (`telling`), sends, and writes
down whom it reached. Of two at once one claims. Who dies between the send and the record leaves its claim: the next try
of the same task goes on at once, any other after `CLAIM_LASTS`. So it fails towards a second message: one about a
failed run that nobody got costs more than one that somebody got twice (a mail's Message-ID is the same then).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from retraining.core.documents import Notification
from retraining.core.notification.notices import Notice

CLAIM_LASTS = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class Claimant:
    """Who wants to tell: a task of a DAG run, by a name that its retries share, and its try."""

    name: str
    attempt: int


def claim(
    found: Notification | None, notice: Notice, channels: Collection[str], claimant: Claimant, now: datetime
) -> Notification | None:
    """Return the claim to write before anything is sent; None: nothing is to be told.

    Args:
        found: What is stored.
        notice: What would be told.
        channels: Names of all who would be told.
        claimant: Who asks.
        now: Whole second.
    """
    same = found is not None and found.state != "over" and found.cause == notice.cause
    if found is not None and same:
        if found.state == "telling" and not _may_take_over(found, claimant, now):
            return None
        if set(channels) <= set(found.told):
            return None
    return Notification(
        model=notice.model,
        event=notice.event,
        cause=notice.cause,
        state="telling",
        claimant=claimant.name,
        attempt=claimant.attempt,
        since=found.since if found is not None and same else now,
        changed=now,
        told=found.told if found is not None and same else (),
    )


def _may_take_over(found: Notification, claimant: Claimant, now: datetime) -> bool:
    own = found.claimant == claimant.name and found.attempt < claimant.attempt
    return own or now - found.changed >= CLAIM_LASTS
