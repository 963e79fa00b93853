"""Days of data that ended, from this process's environment: the one setting that DAG files need to be parsed."""

from __future__ import annotations

import os
from datetime import datetime

from retraining.core import settings


def data_days() -> tuple[datetime, datetime] | None:
    """Return the first moment of the first and of the last day; None: data goes on, and schedules tick."""
    return settings.data_days(os.environ)
