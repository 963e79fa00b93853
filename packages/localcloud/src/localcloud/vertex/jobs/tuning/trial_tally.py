"""Which trials of a tuning job failed, and when that fails the job."""

from __future__ import annotations

from collections.abc import Sequence

from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState
from google.rpc import code_pb2

from localcloud.vertex.jobs.tuning.search.measurements import State
from localcloud.vertex.resources.store import CUSTOM_JOBS, Store
from localcloud.vertex.wire.errors import ApiError

LEAST_LIMIT = 3  # where the service decides


def failed_trials(store: Store, job: HyperparameterTuningJob) -> list[CustomJob]:
    """Return the custom jobs whose program failed, by trial; one that only measured nothing is none of them."""
    infeasible = [trial.custom_job for trial in job.trials if trial.state == State.INFEASIBLE and trial.custom_job]
    jobs = [store.find_resource(CUSTOM_JOBS, name) for name in infeasible]
    return [each for each in jobs if each is not None and each.state != JobState.JOB_STATE_SUCCEEDED]


def failure_limit(job: HyperparameterTuningJob) -> int:
    """Return how many failed trials fail the job.

    With 0 the service decides, and does not say how; here: half of the trials, at least three, at most all.
    """
    own = max(LEAST_LIMIT, job.max_trial_count // 2)
    return int(job.max_failed_trial_count or min(own, job.max_trial_count))


def too_many_failed(job: HyperparameterTuningJob, failed: Sequence[CustomJob]) -> ApiError:
    """Return the job's error: the code and the message of the last failed trial are in it."""
    last = failed[-1]
    trial = next(trial for trial in job.trials if trial.custom_job == last.name)
    return ApiError(
        f"Too many failed trials: {len(failed)} of {len(job.trials)} failed, the job ends at {failure_limit(job)}"
        f" (max_failed_trial_count). Trial {trial.id}: {last.error.message}",
        code=code_pb2.Code.Name(last.error.code),
    )
