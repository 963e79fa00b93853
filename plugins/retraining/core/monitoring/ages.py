"""How old things are: the champion's data, and the tables and files that the query reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from retraining.core.documents.monitoring import Signal
from retraining.core.monitoring.signals import held, not_judged
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
        return not_judged("age", "days", "no_champion", f"No champion of {spec.name} serves.", threshold=limit)
    days = max(timedelta(), as_of - champion_as_of) / timedelta(days=1)
    words = f"The champion's data ends {days:.1f} days ago{_most(limit)}."
    return held("age", "days", round(days, 3), limit, words)


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
        gone = f"{name} is gone, or may not be looked at."
        return not_judged("source", "hours", "source_stopped", gone, subject=name, threshold=limit)
    hours = max(timedelta(), as_of - changed) / timedelta(hours=1)
    words = f"{name} changed last {hours:.1f} hours ago{_most(limit)}."
    signal = held("source", "hours", round(hours, 3), limit, words, subject=name)
    return signal.model_copy(update={"because": "source_stopped"}) if signal.state == "exceeded" else signal


def _most(limit: float | None) -> str:
    return f" (limit {limit:g})" if limit is not None else ""
