"""Days of data that ended: a model's own, or of this process's environment, the one setting that DAG files need."""

from __future__ import annotations

import os
from datetime import date

from retraining.core import settings
from retraining.core.spec.model import ModelSpec


def data_days(spec: ModelSpec | None) -> tuple[date, date] | None:
    """Return the first and the last day; None: data goes on, and schedules tick.

    Args:
        spec: Whose `data.days` come first; None: of what belongs to no model.
    """
    if spec is not None and spec.data.days is not None:
        return spec.data.days
    return settings.data_days(os.environ, spec.name if spec else "")
