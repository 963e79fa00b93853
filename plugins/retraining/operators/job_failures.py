"""Why a job ended badly, and what follows: another job at once, another one later, or the end."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from retraining.hooks.vertex_jobs import Job

# google.rpc.Code
_DEADLINE_EXCEEDED, _RESOURCE_EXHAUSTED, _INTERNAL, _UNAVAILABLE = 4, 8, 13, 14
_EXIT_STATUS = re.compile(r"non-zero status of (\d+)")
USER_ERROR_STATUS = 2  # the trainer's exit status for requests and data that no repetition mends
JOBS_ON_SPOT = 2


class Failure(StrEnum):
    """Kinds of bad ends."""

    PREEMPTED = "preempted"
    STOCKOUT = "no machines"
    QUOTA = "quota"
    INTERNAL = "internal error of the service"
    CANCELLED = "cancelled"
    EXPIRED = "ran into its timeout"
    USER = "user error"
    PROGRAM = "program error"


# Not the job's fault: another one is created without asking Airflow for a retry.
OF_THE_SERVICE = frozenset({Failure.PREEMPTED, Failure.STOCKOUT, Failure.QUOTA, Failure.INTERNAL})
# Of these a new job at once would end the same way: the next wake creates it.
NEED_TIME = frozenset({Failure.STOCKOUT, Failure.QUOTA})
FOR_GOOD = frozenset({Failure.EXPIRED, Failure.USER})


def classify(job: Job) -> Failure:
    """The kind of a bad end, from the job's state and error."""
    message = job.error_message.lower()
    if job.state == "JOB_STATE_EXPIRED" or "timeout" in message:
        return Failure.EXPIRED
    if job.state == "JOB_STATE_CANCELLED":
        return Failure.CANCELLED
    if "preempt" in message:
        return Failure.PREEMPTED
    if "quota" in message:
        return Failure.QUOTA
    if job.error_code == _RESOURCE_EXHAUSTED or "insufficient" in message or "stockout" in message:
        return Failure.STOCKOUT
    if job.error_code in (_INTERNAL, _UNAVAILABLE, _DEADLINE_EXCEEDED):
        return Failure.INTERNAL
    status = _EXIT_STATUS.search(message)
    return Failure.USER if status and int(status[1]) == USER_ERROR_STATUS else Failure.PROGRAM


def on_rung(custom_job: Mapping[str, Any], failures: Sequence[Failure]) -> dict[str, Any]:
    """The job to create after these failures: spot machines twice, then machines on demand."""
    job: dict[str, Any] = copy.deepcopy(dict(custom_job))
    scheduling = (job.get("job_spec") or job.get("trial_job_spec") or {}).get("scheduling", {})
    lost = sum(failure in (Failure.PREEMPTED, Failure.STOCKOUT) for failure in failures)
    if scheduling.get("strategy") == "SPOT" and lost >= JOBS_ON_SPOT:
        del scheduling["strategy"]
    return job
