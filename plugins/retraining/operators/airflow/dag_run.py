"""What Airflow says of a DAG run: its type, who started it, and what the asset event that did brought along."""

from __future__ import annotations

from typing import Any

from retraining.core.documents import Trigger
from retraining.core.planning.triggers import trigger_of
from retraining.core.untyped import JsonObject


def run_type(dag_run: Any) -> str:
    """Return the run's type as text: `manual`, `scheduled`, `backfill`, `asset_triggered`."""
    return str(getattr(dag_run.run_type, "value", dag_run.run_type))


def newest_extra(dag_run: Any) -> JsonObject:
    """Return `extra` of the newest asset event that started the run; empty when none did."""
    events = sorted(getattr(dag_run, "consumed_asset_events", None) or (), key=lambda event: event.timestamp)
    return dict(events[-1].extra or {}) if events else {}


def trigger(dag_run: Any) -> Trigger:
    """Return who started the run, and the reason given."""
    reason = newest_extra(dag_run).get("reason")
    person = getattr(dag_run, "triggering_user_name", None)
    return trigger_of(run_type(dag_run), person=person, event_reason=str(reason) if reason else None)
