"""How old things are: the champion's data, and the tables that the query reads."""

from __future__ import annotations

from datetime import datetime

from retraining.core.documents.monitoring import Signal
from retraining.core.spec.model import ModelSpec


def judge_age(spec: ModelSpec, champion_as_of: datetime | None, as_of: datetime) -> Signal:
    """Return the champion's age in days, held against `monitoring.max_age_days`.

    Args:
        spec: The model.
        champion_as_of: Time of the champion's data; None: none serves.
        as_of: Time of the monitor run.
    """
    limit = spec.monitoring.max_age_days
    if champion_as_of is None:
        return Signal(
            kind="age",
            subject="",
            state="not_judged",
            because="no_champion",
            measure="days",
            value=None,
            threshold=limit,
            examples=0,
            words=f"No champion of {spec.name} serves.",
        )
    days = max(0.0, (as_of - champion_as_of).total_seconds() / 86_400)
    over = limit is not None and days > limit
    most = f", at most {limit}" if limit is not None else ""
    return Signal(
        kind="age",
        subject="",
        state="exceeded" if over else "ok",
        because=None,
        measure="days",
        value=round(days, 3),
        threshold=limit,
        examples=1,
        words=f"The champion's data ends {days:.1f} days ago{most}.",
    )
