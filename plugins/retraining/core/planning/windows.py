"""The run's time and the days of examples it may use. Nothing here or elsewhere reads the clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from retraining.core.documents.plan import Window
from retraining.core.errors import PlanError
from retraining.core.spec.data import Data

CLOCKS_DIFFER = timedelta(minutes=5)
"""What the clocks of a browser, a scheduler and a worker may be apart: no reason to lose a run."""
NO_TIME = Window(start=date(1970, 1, 1), end=date(1970, 1, 3), test_start=date(1970, 1, 2))
"""Of examples without a time: the first day stands for what is trained on, the second for the test split."""

TIME_TRAVEL = timedelta(days=7)
"""What BigQuery keeps unless a dataset says less: https://cloud.google.com/bigquery/docs/time-travel"""

AsOfSource = Literal["param", "asset", "logical_date", "run_after"]


@dataclass(frozen=True, kw_only=True)
class AsOf:
    """The run's time (UTC, whole seconds): only what was known then is used. `source` says where it came from."""

    value: datetime
    source: AsOfSource


def resolve_as_of(
    param: str | datetime | None,
    asset_extra: Mapping[str, Any] | None,
    logical_date: datetime | None,
    run_after: datetime | None,
    started: datetime | None = None,
) -> AsOf:
    """Return the first that is there: the Param, the asset event's extra, the logical date, `run_after`.

    Args:
        param: The Param `as_of`; an empty string is none. Without a zone it is UTC, as the form says.
        asset_extra: `extra` of the newest triggering asset event.
        logical_date: Of the run; None when an asset or the REST interface started it.
        run_after: Of the run.
        started: When the run started; nothing later is known to it.

    Raises:
        PlanError: A text is no time, none is there, or it is after `started`.
    """
    given: tuple[tuple[Any, str, AsOfSource], ...] = (
        (param, "Param as_of", "param"),
        ((asset_extra or {}).get("as_of"), "asset event, extra.as_of", "asset"),
        (logical_date, "logical date", "logical_date"),
        (run_after, "run_after", "run_after"),
    )
    for text, where, source in given:
        if text:
            return AsOf(value=require_past(parse_time(text, where), started, where), source=source)
    raise PlanError("as_of", "no Param, asset event, logical date or run_after", "one of them", "Set the Param as_of")


def require_past(value: datetime, started: datetime | None, where: str) -> datetime:
    """Return a time that is not after the start of the run; None: not known.

    Raises:
        PlanError: It is. A model of a time to come would be newer than every later run's, and none could replace it.
    """
    if started is not None and value > started + CLOCKS_DIFFER:
        raise PlanError(
            where,
            f"{value:%Y-%m-%d %H:%M:%S} UTC, after the run's own time",
            f"a time up to {started.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, when the run started",
            "Trigger again with an earlier time, or without one",
        )
    return value


def parse_time(value: str | datetime, where: str) -> datetime:
    """Return a time in UTC, cut to whole seconds. A date alone is its midnight.

    Raises:
        PlanError: It is no time.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise PlanError(where, repr(value), "a time such as 2013-11-20T03:00:00Z", "Correct it") from error
    elif not isinstance(value, datetime):
        raise PlanError(where, repr(value), "a time such as 2013-11-20T03:00:00Z", "Correct it")
    value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value.replace(microsecond=0)


def require_within_time_travel(data: Data, as_of: datetime, started: datetime | None, where: str) -> None:
    """Refuse a run whose tables cannot be read as they were at its time.

    Args:
        data: Of the spec.
        as_of: The run's time.
        started: When the run started; None: not known.
        where: Names the model in the message.

    Raises:
        PlanError: The time is further back than BigQuery keeps what tables held.
    """
    if data.time_travel and started is not None and as_of < started - TIME_TRAVEL:
        raise PlanError(
            f"{where}, data.time_travel",
            f"as of {as_of:%Y-%m-%d %H:%M:%S} UTC, {(started - as_of).days} days before the run",
            f"at most {TIME_TRAVEL.days} days: BigQuery knows no longer what its tables held",
            "Trigger with a later as_of. For older days take FOR SYSTEM_TIME out of the query and data.time_travel out "
            "of the spec, and tell by the rows' own times what was known @as_of",
        )


def window(data: Data, as_of: datetime) -> Window:
    """Return the days of examples of a run, half-open: `[start, end)`, test days from `test_start` on.

    The window ends at midnight UTC, `label_lag_days` before `as_of`, so that every label in it was known. Examples
    without a time have one for all runs.

    Raises:
        PlanError: The window would begin before the year 1.
    """
    if data.split == "hash":
        return NO_TIME
    try:
        end = as_of.astimezone(UTC).date() - timedelta(days=data.label_lag_days)
        return Window(
            start=end - timedelta(days=data.window_days), end=end, test_start=end - timedelta(days=data.test_days)
        )
    except OverflowError as error:
        raise PlanError("as_of", as_of.isoformat(), "a later time", "Correct the Param as_of") from error
