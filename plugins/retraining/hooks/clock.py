"""The time of day, for what waits: passed in with the other hooks, so that a test can set it."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class Clock:
    """This machine's."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds that only grow, for durations."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
