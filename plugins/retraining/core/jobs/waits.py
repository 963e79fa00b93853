"""How long a task that waits for a job looks at it, and how long it sleeps before it looks again.

A look costs a worker slot for the seconds that Airflow takes to start a task's process, so the sleep grows with what is
still to be expected: a job that has worked for an hour seldom ends within the next minute. The end of a job is seen
late by at most `GROWTH` of its age, and never by more than `LONGEST` sleeps of the setting or `LONGEST_S`, whichever is
less; the setting itself holds where it is longer. So nobody who sleeps is taken for gone (`core.jobs.places`).
"""

from __future__ import annotations

from datetime import timedelta

GROWTH = 0.1
"""Of a job's age: how long a task sleeps at most before it looks again."""
LONGEST = 5
"""Sleeps of the setting (`RETRAINING_WAKE_INTERVAL_S`) that one sleep lasts at most."""
LONGEST_S = 300
"""Seconds that one sleep lasts at most, where the setting is not longer."""
YOUNG = 10
"""Times the setting (`RETRAINING_WATCH_S`): a job of less than that age may end while one looks at it."""


def watch_for(age: timedelta, watch_s: int) -> float:
    """Return the seconds for which a task watches a job in one wake: 0 for a single look at an older one.

    Args:
        age: Since the job was created; by another clock, so it may be below zero.
        watch_s: The setting.
    """
    return watch_s if age.total_seconds() < YOUNG * watch_s else 0


def sleep_for(age: timedelta, wake_interval_s: int) -> float:
    """Return the seconds until a task looks at a job again: `GROWTH` of its age, within one interval and the longest.

    Args:
        age: Since the job was created; by another clock, so it may be below zero.
        wake_interval_s: The setting.
    """
    return _bounded(GROWTH * age.total_seconds(), wake_interval_s)


def queue_for(ahead: int, wake_interval_s: int) -> float:
    """Return the seconds until a task asks again for room: one interval for the next in order, more behind it.

    Args:
        ahead: How many are before it, at least 0.
        wake_interval_s: The setting.
    """
    return _bounded((1 + ahead) * wake_interval_s, wake_interval_s)


def _bounded(wanted_s: float, wake_interval_s: int) -> float:
    return max(wake_interval_s, min(wanted_s, LONGEST * wake_interval_s, LONGEST_S))
