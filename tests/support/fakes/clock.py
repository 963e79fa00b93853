"""Time that passes only where somebody waits, or where a test says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """The clock of the hooks."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        """As the hook."""
        return self.time

    def monotonic(self) -> float:
        """As the hook."""
        return (self.time - START).total_seconds()

    def sleep(self, seconds: float) -> None:
        """As the hook."""
        self.time += timedelta(seconds=seconds)
