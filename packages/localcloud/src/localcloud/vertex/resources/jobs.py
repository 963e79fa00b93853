"""What custom jobs and tuning jobs have in common: when they are active, and how they end."""

from __future__ import annotations

import contextlib
import dataclasses

from google.cloud.aiplatform_v1.types import JobState

from localcloud.vertex.resources.store import Kind, Store, now
from localcloud.vertex.wire.errors import ApiError, NotFound

ACTIVE_STATES = ("JOB_STATE_QUEUED", "JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_CANCELLING")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialRole:
    """Which trial of which tuning job a custom job is."""

    tuning_job_id: str
    trial_id: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a job ended."""

    state: JobState
    error: ApiError | None = None


def cancelled() -> Outcome:
    """Return the end of a job that was cancelled."""
    return Outcome(state=JobState.JOB_STATE_CANCELLED, error=ApiError("CANCELED", code="CANCELLED"))


def finish_job(store: Store, kind: Kind, name: str, outcome: Outcome) -> None:
    """Write a job's end into the store."""
    with contextlib.suppress(NotFound), store.change(kind, name) as job:
        moment = now()
        job.state, job.update_time, job.end_time = outcome.state, moment, moment
        if outcome.error is not None:
            job.error = outcome.error.to_status()
