"""How a first model's examples are divided by time: by the days that have rows, whatever lies between them.

In: a table's profile, and today's date. Out: the window and its test days in calendar days, as YAML has them, the rows
of each, and of a table that ended the time that a run can be of.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from statistics import median

from retraining.core.data.table_profile import FilledDay, NewModel, TableProfile
from retraining.core.errors import DataError

LABEL_LAG_DAYS = 1
MAX_WINDOW_DAYS, MAX_TEST_DAYS = 3650, 365
"""The spec's limits, see `spec.data.Data`."""

_FILLED_DAYS = 60
_ENOUGH_ROWS = 5000
"""Until there are so many, the window takes more than `_FILLED_DAYS` days."""

_LONGEST_PAUSE = timedelta(days=30)
"""Without a row, and without 3 of the usual pauses between them: the table ended."""


@dataclass(frozen=True, kw_only=True)
class FirstWindow:
    """Calendar days, the filled days and rows in them, and what is said of them; `ended`: first and last day."""

    days: int
    test_days: int
    filled_days: int
    rows: int
    test_rows: int
    note: str
    ended: tuple[date, date] | None
    as_of: datetime
    """Of the first run whose window ends with the newest row."""


def guess_window(model: NewModel, profile: TableProfile, today: date) -> FirstWindow:
    """Return a window that has some `_FILLED_DAYS` days with rows, or more until there are rows enough.

    Raises:
        DataError: There are rows of fewer than two days, or those of two do not fit the longest window.
    """
    days = [day for day in profile.days if day.day < today]
    if len(days) < 2:
        found = f"{model.time} has rows of {len(days)} days before today"
        out = "Leave out TIME: a hash of the key then decides what is tested"
        raise DataError(f"TIME of {model.source}", found, "two days or more, to train on and to test with", out)
    newest = days[0].day
    if (newest - days[1].day).days >= MAX_WINDOW_DAYS:
        found = f"the newest day of {model.time} is {newest}, the one before it {days[1].day}"
        out = "Leave out TIME: a hash of the key then decides what is tested"
        raise DataError(f"TIME of {model.source}", found, f"less than {MAX_WINDOW_DAYS} days between them", out)
    taken = _taken(days)
    tested = _tested(taken)
    pause = median((later.day - earlier.day).days for later, earlier in pairwise(days))
    ended = today - newest > max(_LONGEST_PAUSE, timedelta(days=3 * pause))
    test_days = min(MAX_TEST_DAYS, (newest - taken[tested].day).days)
    length = (newest - taken[-1].day).days + 1
    longest = ", the longest window" if len(taken) < len(days) and length > MAX_WINDOW_DAYS - 2 * pause else ""
    as_of = datetime.combine(newest + timedelta(days=1 + LABEL_LAG_DAYS), time(), tzinfo=UTC)
    return FirstWindow(
        days=max(length, test_days + 1),
        test_days=test_days,
        filled_days=len(taken),
        rows=sum(day.rows for day in taken),
        test_rows=sum(day.rows for day in taken[:tested]),
        note=f"{len(taken)} days with rows of the {_count(days, profile)} there are{longest}",
        ended=(profile.first or newest, newest) if ended else None,
        as_of=as_of,
    )


def _taken(days: list[FilledDay]) -> list[FilledDay]:
    """Return the days of the window, newest first."""
    oldest, rows = days[0].day - timedelta(days=MAX_WINDOW_DAYS - 1), 0
    taken: list[FilledDay] = []
    for day in days:
        if day.day < oldest or (len(taken) >= _FILLED_DAYS and rows >= _ENOUGH_ROWS):
            break
        taken.append(day)
        rows += day.rows
    return taken


def _tested(taken: list[FilledDay]) -> int:
    """Return how many of the newest are tested: some 7, until they have a tenth of the rows; at most a quarter."""
    total, rows = sum(day.rows for day in taken), 0
    newest = taken[0].day
    for count, day in enumerate(taken[:-1], 1):
        rows += day.rows
        longest = (newest - taken[count].day).days >= MAX_TEST_DAYS
        enough = count >= min(7, len(taken) // 8) and rows >= total / 10
        if enough or longest or count >= len(taken) / 4:
            return count
    return 1


def _count(days: list[FilledDay], profile: TableProfile) -> str:
    return str(len(days)) if len(profile.days) < MAX_WINDOW_DAYS else f"more than {MAX_WINDOW_DAYS}"
