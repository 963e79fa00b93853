"""Custom jobs of Vertex AI: find, create, look, cancel.

In: job specs and labels. Out: `Job` values. The service has no request id for a create, so whoever creates looks by
label first (and again after a response that got lost).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from retraining.core.names import location_name
from retraining.hooks.session import Session, call

CALL_TIMEOUT_S = 60
ACTIVE_STATES = frozenset(
    {
        "JOB_STATE_QUEUED",
        "JOB_STATE_PENDING",
        "JOB_STATE_RUNNING",
        "JOB_STATE_PAUSED",
        "JOB_STATE_UPDATING",
        "JOB_STATE_CANCELLING",
        "JOB_STATE_UNSPECIFIED",
    }
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A custom job as the service sees it. `error_code` is a google.rpc.Code, 0 for none."""

    name: str
    state: str
    labels: dict[str, str]
    created: datetime | None
    started: datetime | None = None
    ended: datetime | None = None
    error_code: int = 0
    error_message: str = ""

    @property
    def job_id(self) -> str:
        """Last part of the name."""
        return self.name.rsplit("/", 1)[-1]

    @property
    def seconds(self) -> float | None:
        """How long its machines worked; None before it ended."""
        return (self.ended - self.started).total_seconds() if self.started and self.ended else None

    @property
    def active(self) -> bool:
        """Whether it may still do something, and cost."""
        return self.state in ACTIVE_STATES


class VertexJobs:
    """The job service of one region.

    Args:
        session: Where and as whom.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parent = location_name(session.project, session.region)

    def find(self, labels: Mapping[str, str]) -> list[Job]:
        """All jobs with these labels, oldest first."""
        condition = " AND ".join(f'labels.{name}="{value}"' for name, value in sorted(labels.items()))
        request = {"parent": self._parent, "filter": condition}
        found = call(lambda: list(self._client.list_custom_jobs(request=request, timeout=CALL_TIMEOUT_S)))
        return sorted((_job(job) for job in found), key=lambda job: (job.created is None, job.created, job.name))

    def create(self, custom_job: Mapping[str, Any]) -> Job:
        """Create a job. Not repeated here: after an error the job may be there, so look before creating again.

        Args:
            custom_job: `aiplatform_v1.CustomJob` in proto-JSON with snake_case names.
        """
        from google.cloud import aiplatform_v1
        from google.protobuf import json_format

        message = aiplatform_v1.CustomJob()
        json_format.ParseDict(dict(custom_job), aiplatform_v1.CustomJob.pb(message))
        return _job(
            self._client.create_custom_job(parent=self._parent, custom_job=message, retry=None, timeout=CALL_TIMEOUT_S)
        )

    def get(self, name: str) -> Job:
        """A job as it stands."""
        return _job(call(lambda: self._client.get_custom_job(name=name, retry=None, timeout=CALL_TIMEOUT_S)))

    def cancel(self, name: str) -> None:
        """Ask a job to end. One that has ended, or is gone, stays as it is."""
        from google.api_core.exceptions import FailedPrecondition, NotFound

        try:
            call(lambda: self._client.cancel_custom_job(name=name, retry=None, timeout=CALL_TIMEOUT_S))
        except (FailedPrecondition, NotFound):
            return

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - JobServiceClient, not imported at parse time
        from google.cloud import aiplatform_v1

        session = self._session
        return aiplatform_v1.JobServiceClient(credentials=session.credentials, client_options=session.client_options)


def _job(job: Any) -> Job:  # noqa: ANN401 - aiplatform_v1.CustomJob has no types
    return Job(
        name=job.name,
        state=job.state.name,
        labels=dict(job.labels),
        created=job.create_time,
        started=job.start_time,
        ended=job.end_time,
        error_code=int(job.error.code) if job.error else 0,
        error_message=str(job.error.message) if job.error else "",
    )
