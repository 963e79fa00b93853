"""When DAGs run: a cron expression in UTC, an asset's events, or both; no run out of turn.

The timetables' import paths moved to the task SDK after Airflow 3.1, which is the floor here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

try:
    from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable
except ImportError:  # Airflow 3.1
    from airflow.timetables.assets import AssetOrTimeSchedule  # type: ignore[assignment]  # the same by another name
    from airflow.timetables.trigger import CronTriggerTimetable  # type: ignore[assignment]  # the same by another name

from airflow.sdk import Asset


def cron_schedule(cron: str) -> Any:  # noqa: ANN401 - core's class or the SDK's
    """A tick of the clock in UTC, beginning with the next one.

    `run_immediately` False would still start the newest past tick within 10 % of the interval; a zero timedelta starts
    none. It works only without a start_date, which the DAGs therefore do not have.
    """
    return CronTriggerTimetable(cron, timezone="UTC", run_immediately=timedelta(0))


def cron_or_asset_schedule(cron: str | None, asset: Asset) -> Any:  # noqa: ANN401 - core's class or the SDK's
    """The clock or an event of the asset; without a cron expression the event alone."""
    if cron is None:
        return [asset]
    return AssetOrTimeSchedule(timetable=cron_schedule(cron), assets=[asset])
