"""Whether drift is worth a retraining: enough requests, a distance over the threshold, and the cool-down over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from retraining.core import backoff
from retraining.core.documents.ledger import Ledger
from retraining.core.documents.monitoring import Drift, FeatureDrift
from retraining.core.naming.run_keys import RunKey
from retraining.core.spec.model import ModelSpec

Because = Literal["drift", "no_drift", "too_few_requests", "cooldown", "paused", "no_champion"]
SHOWN_FEATURES = 5


def decide_retraining(
    spec: ModelSpec,
    drift: Drift | None,
    ledger_rows: Sequence[Ledger],
    as_of: datetime,
    drift_uri: str | None = None,
    paused: str | None = None,
) -> Ledger:
    """Return the ledger row of one monitor run: retrain or wait, and why.

    Args:
        spec: The model.
        drift: What was measured; None when no champion serves.
        ledger_rows: Earlier rows of this model, in any order; those after `as_of` are left out of account.
        as_of: Time of the monitor run.
        drift_uri: Where the drift document is.
        paused: Until when no retraining begins, and why; None: one may. A retraining that is held back so is not
            ordered: it counts for no cool-down, and the drift of the first day after the pause decides anew.
    """
    earlier = [row for row in ledger_rows if row.outcome == "retrain" and row.as_of < as_of]
    last = max((row.as_of for row in earlier), default=None)
    reason, message = _judge(spec, drift, earlier, last, as_of)
    if reason == "drift" and paused:
        reason, message = "paused", f"Waiting: {message.removeprefix('Retraining: ')} But {paused}"
    retrain = reason == "drift"
    causes = tuple(f"skew:{item.name}" for item in _drifted(drift)) if drift else ()
    return Ledger(
        model=spec.name,
        as_of=as_of,
        outcome="retrain" if retrain else "none",
        because=reason,
        cause=causes[0] if causes else None,
        causes=causes,
        severity="warning" if causes else "info",
        words=message,
        drift_uri=drift_uri if drift else None,
        retrain_as_of=as_of if retrain else None,
        last_retrain_as_of=last,
    )


def reach(spec: ModelSpec) -> timedelta:
    """Return how far back ledger rows matter: as long as the longest cool-down."""
    return timedelta(hours=spec.monitoring.cooldown_hours * 2**backoff.MAX_DOUBLINGS)


def retrain_as_of(row: Ledger, as_of: datetime | None) -> Ledger:
    """Return a ledger row whose retraining computes as of another time; a row that waits stays as it is.

    Args:
        row: What was decided.
        as_of: The time that a person gave; None: nobody did.
    """
    if row.outcome != "retrain" or as_of is None:
        return row
    return row.model_copy(update={"retrain_as_of": as_of})


def cooldown(spec: ModelSpec, drift: Drift, retrainings: Sequence[Ledger]) -> timedelta:
    """Return how long after the last ordered retraining the next may be ordered.

    Loop guard: retrainings ordered since the champion's own time did not make a new champion. Each of them but the
    first doubles the wait, up to 16 times: what retraining does not mend, more retraining will not.
    """
    champion_as_of = RunKey.parse(drift.champion.run_key).as_of
    fruitless = sum(row.as_of > champion_as_of for row in retrainings)
    return backoff.cooldown(spec.monitoring.cooldown_hours, max(fruitless - 1, 0))


def _judge(
    spec: ModelSpec, drift: Drift | None, retrainings: Sequence[Ledger], last: datetime | None, as_of: datetime
) -> tuple[Because, str]:
    monitoring = spec.monitoring
    if drift is None:
        return "no_champion", f"Waiting: no champion of {spec.name} serves, so there is nothing to compare with."
    if drift.rows < monitoring.min_requests:
        return "too_few_requests", (
            f"Waiting: {drift.rows} requests in {drift.window_hours} hours are too few to judge "
            f"(at least {monitoring.min_requests})."
        )
    drifted = _drifted(drift)
    if not drifted:
        most = max(drift.features, key=lambda item: item.value, default=None)
        nearest = f" The largest is {most.name} with {most.value:.3f}." if most else ""
        return "no_drift", f"Waiting: no feature is over its threshold.{nearest}"
    listed = ", ".join(f"{item.name} {item.value:.3f} (over {item.threshold:g})" for item in drifted[:SHOWN_FEATURES])
    more = f" and {len(drifted) - SHOWN_FEATURES} more" if len(drifted) > SHOWN_FEATURES else ""
    wait = cooldown(spec, drift, retrainings)
    if last is not None and as_of - last < wait:
        return "cooldown", (
            f"Waiting: {listed}{more} drifted, but a retraining was ordered at "
            f"{last:%Y-%m-%d %H:%M} UTC and the cool-down of {_hours(wait)} lasts until "
            f"{last + wait:%Y-%m-%d %H:%M} UTC."
        )
    return "drift", f"Retraining: {listed}{more} drifted in {drift.rows} requests."


def _drifted(drift: Drift) -> list[FeatureDrift]:
    return sorted((item for item in drift.features if item.drifted), key=lambda item: (-item.value, item.name))


def _hours(wait: timedelta) -> str:
    return f"{wait.total_seconds() / 3600:g} hours"
