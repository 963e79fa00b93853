"""The cool-down that doubles: what did not help waits longer before it is done again."""

from __future__ import annotations

from datetime import timedelta

MAX_DOUBLINGS = 4


def cooldown(hours: float, doublings: int) -> timedelta:
    """Return how long to wait after so many doublings; from the fourth on it grows no more.

    Args:
        hours: Of the first wait.
        doublings: Not below zero.
    """
    return timedelta(hours=hours * (1 << min(doublings, MAX_DOUBLINGS)))
