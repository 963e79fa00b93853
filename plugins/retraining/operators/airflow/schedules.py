"""When DAGs run: a cron expression in UTC, an asset's events, or both; no run out of turn.

The timetables' import paths moved to the task SDK after Airflow 3.1, which is the floor here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Any

try:
    from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable
except ImportError:  # Airflow 3.1
    from airflow.timetables.assets import AssetOrTimeSchedule  # type: ignore[assignment]  # the same by another name
    from airflow.timetables.trigger import CronTriggerTimetable  # type: ignore[assignment]  # the same by another name

from airflow.sdk import Asset, AssetAny

from retraining.core.naming import dags
from retraining.core.spec.model import ModelSpec
from retraining.hooks.clock import data_days

ONCE_A_DAY = "0 3 * * *"
"""When a backfill of a model without a schedule runs."""

MAX_TICKS = 1000


def retraining_asset(model: str) -> Asset:
    """Make the asset whose events, the monitor's, start a retraining."""
    return Asset(name=dags.asset_name(model), uri=dags.asset_uri(model))


def starting_assets(spec: ModelSpec) -> list[Asset]:
    """Make the assets each of which starts a retraining by an event: the model's own, and those of its source.

    No references by name alone: a run that these start is not told of their events (Airflow 3.1 to 3.3).
    """
    return [retraining_asset(spec.name), *(Asset(*asset.key) for asset in spec.triggers.assets)]


def cron_schedule(cron: str, spec: ModelSpec | None = None) -> Any:
    """Tick by the clock in UTC, beginning with the next time; None where the model's data ended (`data.days`).

    `run_immediately` False would still start the newest past tick within 10 % of the interval; a zero timedelta starts
    none. It works only without a start_date, which the DAGs therefore do not have.
    """
    if data_days(spec):
        return None
    return CronTriggerTimetable(cron, timezone="UTC", run_immediately=timedelta(0))


def cron_or_asset_schedule(spec: ModelSpec, assets: Sequence[Asset]) -> Any:
    """Start by the model's clock or by an event of any of the assets; without a cron expression by an event alone.

    Where data ended the clock has ticked for the last time, so that it starts nothing (after a first backfill Airflow
    would start the newest past tick at once); a backfill takes the ticks of those days, without a cron expression one
    a day where the model says itself that its data ended.
    """
    any_of, days = AssetAny(*assets), data_days(spec)  # a list would wait for an event of each
    cron = spec.schedule or (ONCE_A_DAY if spec.data.days else None)
    if cron is None:
        return any_of
    return AssetOrTimeSchedule(timetable=_past_ticks(cron, days) if days else cron_schedule(cron, spec), assets=any_of)


def _past_ticks(cron: str, days: tuple[date, date]) -> Any:
    """Return the ticks of days of data that ended, the newest `MAX_TICKS`: each stands in the stored DAG."""
    # Only here, where they do not cost every parse. The SDK's own EventsTimetable cannot be stored (Airflow 3.3.2).
    from airflow.timetables.events import EventsTimetable
    from croniter import croniter_range  # type: ignore[import-untyped]  # it has no types
    from pendulum import instance

    first, last = (datetime.combine(day, time(), tzinfo=UTC) for day in days)
    backwards = croniter_range(last + timedelta(days=1, microseconds=-1), first, cron)
    ticks = [instance(tick) for tick in islice(backwards, MAX_TICKS)]
    return EventsTimetable(ticks[::-1], presorted=True)
