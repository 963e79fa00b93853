"""The custom job that a trial of a tuning job is: the same spec for all, with the trial's hyperparameters as flags."""

from __future__ import annotations

from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState, Trial

from localcloud.vertex.jobs.tuning.search.space import Value, values_of
from localcloud.vertex.resources.store import now
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
