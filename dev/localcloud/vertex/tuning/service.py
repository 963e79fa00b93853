"""JobService, hyperparameter tuning jobs: checked as the service does, kept in the store, run by the tuner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import HyperparameterTuningJob, JobState
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.jobs.runner import ACTIVE_STATES
from localcloud.vertex.jobs.service import check_job_spec
from localcloud.vertex.resources.store import TUNING_JOBS, now
from localcloud.vertex.resources.validation import Finding, check_display_name, check_labels, refuse
from localcloud.vertex.tuning.search.algorithms import needs_designer
from localcloud.vertex.tuning.search.study_spec import check_study_spec
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition
from localcloud.vertex.wire.listing import JOB_FIELDS, list_page
from localcloud.vertex.wire.methods import Message, raw
from localcloud.vertex.wire.schema import clear_output_only

if TYPE_CHECKING:
    from localcloud.vertex.front.dispatch import Context
    from localcloud.vertex.resources.operations import Progress

_COLLECTION = "hyperparameterTuningJobs"
_FIELD = "hyperparameter_tuning_job"


def create_hyperparameter_tuning_job(
    request: types.CreateHyperparameterTuningJobRequest, context: Context
) -> HyperparameterTuningJob:
    """Check the job, keep it, queue it."""
    location = names.parse_location(request.parent)
    job = HyperparameterTuningJob()
    HyperparameterTuningJob.copy_from(job, request.hyperparameter_tuning_job)
    clear_output_only(job)
    refuse(_check(job, context))
    if needs_designer(job.study_spec):
        context.cloud.tuner.designer.check_ready()
    moment = now()
    job.name = f"{location}/{_COLLECTION}/{names.new_id()}"
    job.state = JobState.JOB_STATE_QUEUED
    job.create_time = job.update_time = moment
    context.cloud.store.insert(TUNING_JOBS, job.name, request.parent, job)
    context.cloud.tuner.start(job.name)
    return job


def get_hyperparameter_tuning_job(
    request: types.GetHyperparameterTuningJobRequest, context: Context
) -> HyperparameterTuningJob:
    """The job as it stands, with its trials."""
    return context.cloud.store.get(TUNING_JOBS, names.check_name(request.name, _COLLECTION))


def list_hyperparameter_tuning_jobs(
    request: types.ListHyperparameterTuningJobsRequest, context: Context
) -> types.ListHyperparameterTuningJobsResponse:
    """Jobs of a location, newest first."""
    names.parse_location(request.parent)
    page, token = list_page(context.cloud.store.list_under(TUNING_JOBS, request.parent), request, JOB_FIELDS)
    return types.ListHyperparameterTuningJobsResponse(hyperparameter_tuning_jobs=page, next_page_token=token)


def cancel_hyperparameter_tuning_job(
    request: types.CancelHyperparameterTuningJobRequest, context: Context
) -> empty_pb2.Empty:
    """Ask a job to end, and its trials with it; one that has ended already stays as it is."""
    with context.cloud.store.change(TUNING_JOBS, names.check_name(request.name, _COLLECTION)) as job:
        if job.state.name in ACTIVE_STATES:
            job.state, job.update_time = JobState.JOB_STATE_CANCELLING, now()
    context.cloud.tuner.cancel(request.name)
    return empty_pb2.Empty()


def delete_hyperparameter_tuning_job(
    request: types.DeleteHyperparameterTuningJobRequest, context: Context
) -> operations_pb2.Operation:
    """Remove a job that has ended, its trials, and their files."""
    job = context.cloud.store.get(TUNING_JOBS, names.check_name(request.name, _COLLECTION))
    if job.state.name in ACTIVE_STATES:
        raise FailedPrecondition(
            f"The HyperparameterTuningJob {job.name} is in state {job.state.name} and cannot be deleted. Cancel it and"
            " wait until it has ended."
        )

    def work(progress: Progress) -> empty_pb2.Empty:
        progress.check()
        context.cloud.tuner.delete(job.name)
        return empty_pb2.Empty()

    return context.cloud.operations.start(context, job.name, types.DeleteOperationMetadata(), work)


def _check(job: HyperparameterTuningJob, context: Context) -> Iterator[Finding]:
    yield from check_display_name(job.display_name, f"{_FIELD}.display_name")
    yield from check_labels(job.labels, f"{_FIELD}.labels")
    yield from _check_counts(job)
    yield from check_study_spec(job.study_spec, f"{_FIELD}.study_spec")
    yield from _check_vizier_only(job)
    yield from check_job_spec(job.trial_job_spec, f"{_FIELD}.trial_job_spec", context)


def _check_counts(job: HyperparameterTuningJob) -> Iterator[Finding]:
    for name in ("max_trial_count", "parallel_trial_count"):
        if getattr(job, name) < 1:
            yield f"{_FIELD}.{name}", f"{name} is {getattr(job, name)}. Expected 1 or more."
    if job.parallel_trial_count > job.max_trial_count:
        yield (
            f"{_FIELD}.parallel_trial_count",
            (
                f"parallel_trial_count {job.parallel_trial_count} is more than max_trial_count {job.max_trial_count}."
                " Expected at most as many."
            ),
        )
    if job.max_failed_trial_count < 0:
        yield (
            f"{_FIELD}.max_failed_trial_count",
            f"max_failed_trial_count is {job.max_failed_trial_count}. Expected 0 (the service decides) or more.",
        )


def _check_vizier_only(job: HyperparameterTuningJob) -> Iterator[Finding]:
    """What only studies of the Vizier service may set, by the API's documentation."""
    field = f"{_FIELD}.study_spec"
    if job.study_spec.observation_noise:
        yield (
            f"{field}.observation_noise",
            "A HyperparameterTuningJob does not support observation_noise. Leave it out.",
        )

    def below(parameters: Message, where: str) -> Iterator[Finding]:
        for index, parameter in enumerate(parameters):
            chosen = parameter.WhichOneof("parameter_value_spec")
            if chosen and getattr(parameter, chosen).HasField("default_value"):
                yield (
                    f"{where}[{index}].{chosen}.default_value",
                    "A HyperparameterTuningJob does not support default values. Leave it out.",
                )
            children = [child.parameter_spec for child in parameter.conditional_parameter_specs]
            yield from below(children, f"{where}[{index}].conditional_parameter_specs")

    yield from below(raw(job.study_spec).parameters, f"{field}.parameters")
