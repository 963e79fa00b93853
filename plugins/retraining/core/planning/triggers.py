"""What started a run, from what Airflow says of it."""

from __future__ import annotations

from retraining.core.documents.plan import Mode, Trigger


def trigger_of(run_type: str, *, person: str | None = None, event_reason: str | None = None) -> Trigger:
    """Return who started a run, and the reason given.

    Args:
        run_type: Airflow's: `manual`, `scheduled`, `backfill`, `asset_triggered`.
        person: Who triggered it, where Airflow knows.
        event_reason: Of the newest asset event that did.
    """
    if run_type == "asset_triggered":
        return Trigger(kind="asset", reason=event_reason or "an asset event")
    if run_type == "scheduled":
        return Trigger(kind="scheduled", reason="the model's schedule")
    if run_type == "backfill":
        return Trigger(kind="backfill", reason="a backfill")
    return Trigger(kind="manual", reason=f"by {person}" if person else "by hand")


def mode_of(run_type: str) -> Mode:
    """Return the mode of a run of this type: a backfill records a version and deploys nothing."""
    return "backfill" if run_type == "backfill" else "live"
