"""How old things are: the champion's data, and the tables and files that the query reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from retraining.core.documents.monitoring import Signal
from retraining.core.naming.bigquery import full_table
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
    most = f" (limit {limit})" if limit is not None else ""
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


def judge_sources(
    spec: ModelSpec, changed: Mapping[str, datetime | None], as_of: datetime, project: str
) -> tuple[Signal, ...]:
    """Return for how many hours each source has not changed, held against the limit.

    Args:
        spec: The model.
        changed: When each table, by `project.dataset.table`, or folder of files last changed; None: not known.
        as_of: Time of the monitor run.
        project: Of tables that leave it out.
    """
    static = {full_table(name, project) for name in spec.monitoring.static_sources}
    limit = spec.monitoring.max_source_age_hours or spec.data.checks.max_age_hours
    return tuple(
        _judge_source(name, changed[name], as_of, None if name in static else limit) for name in sorted(changed)
    )


def _judge_source(name: str, changed: datetime | None, as_of: datetime, limit: float | None) -> Signal:
    if changed is None:
        return Signal(
            kind="source",
            subject=name,
            state="not_judged",
            because="source_stopped",
            measure="hours",
            value=None,
            threshold=limit,
            examples=0,
            words=f"{name} is gone, or may not be looked at.",
        )
    hours = max(0.0, (as_of - changed).total_seconds() / 3600)
    over = limit is not None and hours > limit
    most = f" (limit {limit:g})" if limit is not None else ""
    return Signal(
        kind="source",
        subject=name,
        state="exceeded" if over else "ok",
        because="source_stopped" if over else None,
        measure="hours",
        value=round(hours, 3),
        threshold=limit,
        examples=1,
        words=f"{name} changed last {hours:.1f} hours ago{most}.",
    )
