"""When DAGs run: a cron expression in UTC, an asset's events, or both; no run out of turn.

The timetables' import paths moved to the task SDK after Airflow 3.1, which is the floor here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

try:
    from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable
except ImportError:  # Airflow 3.1
    from airflow.timetables.assets import AssetOrTimeSchedule  # type: ignore[assignment]  # the same by another name
    from airflow.timetables.trigger import CronTriggerTimetable  # type: ignore[assignment]  # the same by another name

from airflow.sdk import Asset, AssetAny

from retraining.core.naming import dags
from retraining.core.spec.model import ModelSpec
from retraining.hooks.data_days import data_days


def retraining_asset(model: str) -> Asset:
    """Make the asset whose events, the monitor's, start a retraining."""
    return Asset(name=dags.asset_name(model), uri=dags.asset_uri(model))


def starting_assets(spec: ModelSpec) -> list[Asset]:
    """Make the assets each of which starts a retraining by an event: the model's own, and those of its source.

    No references by name alone: a run that these start is not told of their events (Airflow 3.1 to 3.3).
    """
    return [retraining_asset(spec.name), *(Asset(*asset.key) for asset in spec.triggers.assets)]


def cron_schedule(cron: str) -> Any:
    """Tick by the clock in UTC, beginning with the next time; None where data ended (`RETRAINING_DATA_DAYS`).

    `run_immediately` False would still start the newest past tick within 10 % of the interval; a zero timedelta starts
    none. It works only without a start_date, which the DAGs therefore do not have.
    """
    if data_days():
        return None
    return CronTriggerTimetable(cron, timezone="UTC", run_immediately=timedelta(0))


def cron_or_asset_schedule(cron: str | None, assets: Sequence[Asset]) -> Any:
    """Start by the clock or by an event of any of the assets; without a cron expression by an event alone.

    Where data ended the clock has ticked for the last time, so that it starts nothing (after a first backfill Airflow
    would start the newest past tick at once); a backfill takes the ticks of those days.
    """
    any_of = AssetAny(*assets)  # a list would wait for an event of each
    if cron is None:
        return any_of
    return AssetOrTimeSchedule(timetable=_past_ticks(cron) or cron_schedule(cron), assets=any_of)


def _past_ticks(cron: str) -> Any:
    """Return the ticks of the days of data that ended; None where it goes on."""
    days = data_days()
    if days is None:
        return None
    # Only here, where they do not cost every parse. The SDK's own EventsTimetable cannot be stored (Airflow 3.3.2).
    from airflow.timetables.events import EventsTimetable
    from croniter import croniter_range  # type: ignore[import-untyped]  # it has no types
    from pendulum import instance

    first, last = days
    ticks = croniter_range(first, last + timedelta(days=1, microseconds=-1), cron)
    return EventsTimetable([instance(tick) for tick in ticks], presorted=True)
