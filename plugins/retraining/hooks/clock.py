"""The time of day, passed in with the other hooks so that a test can set it; and days of data that ended."""

from __future__ import annotations

import os
import time
from datetime import UTC, date, datetime

from retraining.core import settings
from retraining.core.spec.model import ModelSpec


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


def data_days(spec: ModelSpec | None) -> tuple[date, date] | None:
    """Return the first and the last day; None: data goes on, and schedules tick.

    Args:
        spec: Whose `data.days` come first; None: of what belongs to no model.
    """
    if spec is not None and spec.data.days is not None:
        return spec.data.days
    return settings.data_days(os.environ, spec.name if spec else "")
