"""Jobs by the minutes of their beginning and end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from retraining.core.jobs.job import Job

START = datetime(2026, 1, 1, tzinfo=UTC)


def job(name: str, state: str, begun: int = 0, done: int | None = None, **values: Any) -> Job:
    """Job of a short name and state (`RUNNING`)."""
    created = START + timedelta(minutes=begun)
    return Job(
        name=f"projects/p/locations/r/customJobs/{name}",
        state=f"JOB_STATE_{state}",
        created=created,
        started=created,
        ended=None if done is None else START + timedelta(minutes=done),
        **{"labels": {}, **values},
    )
