"""One trial of a tuning job while it runs: its custom job, and what that reports.

Comes in: a trial with its parameters. Goes out: measurements as they come, and the custom job once it has ended.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState, Measurement, Trial

from localcloud.vertex.jobs.runs import TrialRole, is_active
from localcloud.vertex.jobs.tuning.metric_files import MetricFiles
from localcloud.vertex.jobs.tuning.search.space import Value, values_of
from localcloud.vertex.resources.store import CUSTOM_JOBS, Store, now
from localcloud.vertex.resources.validation import MAX_DISPLAY_NAME
from localcloud.vertex.wire import names


def make_trial_job(tuning_job: HyperparameterTuningJob, trial: Trial) -> CustomJob:
    """Return a queued custom job; it carries the tuning job's labels, so that faults find it by them."""
    suffix, moment = f"-trial-{trial.id}", now()
    job = CustomJob(
        name=f"{names.location_of(tuning_job.name)}/customJobs/{names.new_id()}",
        display_name=tuning_job.display_name[: MAX_DISPLAY_NAME - len(suffix)] + suffix,
        job_spec=tuning_job.trial_job_spec,
        labels=dict(tuning_job.labels),
        state=JobState.JOB_STATE_QUEUED,
        create_time=moment,
        update_time=moment,
    )
    given = flags(trial)
    for pool in job.job_spec.worker_pool_specs:
        if "python_package_spec" in pool:
            pool.python_package_spec.args.extend(given)
        elif "container_spec" in pool:
            pool.container_spec.args.extend(given)
    return job


def flags(trial: Trial) -> list[str]:
    """Return `--name=value` for each parameter, in order; whole numbers without a point, to be read as such."""
    return [f"--{name}={_written(value)}" for name, value in values_of(trial).items()]


def _written(value: Value) -> str:
    return str(int(value)) if not isinstance(value, str) and float(value).is_integer() else str(value)


class TrialJobs(Protocol):
    """What trials need of the custom jobs."""

    def start_trial(self, name: str, trial: TrialRole) -> None:
        """Run the job of a trial in the background."""

    def stop(self, name: str) -> None:
        """Ask a running job to end; its state follows."""

    def find_metric_files(self, name: str) -> list[Path]:
        """Return the files that the replicas of a trial have reported metrics into so far."""

    def forget(self, name: str) -> None:
        """Remove a job that has ended, and its files."""


class TrialRun:
    """A running trial.

    Args:
        store: Where jobs are.
    """

    def __init__(self, store: Store, trial_jobs: TrialJobs, tuning_job: HyperparameterTuningJob, trial: Trial) -> None:
        self.trial_id = trial.id
        self.stopping = False
        self._store = store
        self._trial_jobs = trial_jobs
        self._role = TrialRole(tuning_job_id=names.last_part(tuning_job.name), trial_id=trial.id)
        job = make_trial_job(tuning_job, trial)
        self.job_name: str = job.name
        # Below the tuning job, not the location: ListCustomJobs leaves the jobs of trials out.
        self._store.insert(CUSTOM_JOBS, job.name, tuning_job.name, job)
        metric_ids = [metric.metric_id for metric in tuning_job.study_spec.metrics]
        self._metrics = MetricFiles(
            functools.partial(trial_jobs.find_metric_files, job.name), metric_ids, trial.start_time
        )

    def start(self) -> None:
        """Run the custom job."""
        self._trial_jobs.start_trial(self.job_name, self._role)

    def stop(self) -> None:
        """End it early, with what it has measured."""
        self.stopping = True
        self._trial_jobs.stop(self.job_name)

    def job(self) -> CustomJob:
        """Return the custom job as it stands."""
        return self._store.get(CUSTOM_JOBS, self.job_name)

    def new_measurements(self, known: Sequence[Measurement]) -> list[Measurement] | None:
        """Return all measurements when there are new ones, else None."""
        return self._metrics.read_measurements(known)


def has_ended(job: CustomJob) -> bool:
    """Return whether nothing of it runs any more."""
    return not is_active(job)
