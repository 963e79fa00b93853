"""JobService, hyperparameter tuning jobs: checked as the service does, kept in the store, run by the tuner."""

from __future__ import annotations

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import HyperparameterTuningJob, JobState
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.resources.jobs import ACTIVE_STATES
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import TUNING_JOBS, Store, now
from localcloud.vertex.resources.validation import refuse
from localcloud.vertex.tuning.checks import CheckJobSpec, check_tuning_job
from localcloud.vertex.tuning.runner import Tuner
from localcloud.vertex.tuning.search.algorithms import needs_designer
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition
from localcloud.vertex.wire.listing import JOB_FIELDS, list_page
from localcloud.vertex.wire.schema import clear_output_only

_COLLECTION = "hyperparameterTuningJobs"


class TuningJobs:
    """Answers what is asked of tuning jobs.

    Args:
        operations: Deletes them in the background.
        check_job_spec: Knows the rules of custom jobs, which their trials are.
    """

    def __init__(self, store: Store, operations: Operations, tuner: Tuner, check_job_spec: CheckJobSpec) -> None:
        self._store = store
        self._operations = operations
        self._tuner = tuner
        self._check_job_spec = check_job_spec

    def create_hyperparameter_tuning_job(
        self, request: types.CreateHyperparameterTuningJobRequest
    ) -> HyperparameterTuningJob:
        """Check the job, keep it, queue it."""
        location = names.parse_location(request.parent)
        job = HyperparameterTuningJob()
        HyperparameterTuningJob.copy_from(job, request.hyperparameter_tuning_job)
        clear_output_only(job)
        refuse(check_tuning_job(job, self._check_job_spec))
        if needs_designer(job.study_spec):
            self._tuner.designer.check_ready()
        moment = now()
        job.name = f"{location}/{_COLLECTION}/{names.new_id()}"
        job.state = JobState.JOB_STATE_QUEUED
        job.create_time = job.update_time = moment
        self._store.insert(TUNING_JOBS, job.name, request.parent, job)
        self._tuner.start(job.name)
        return job

    def get_hyperparameter_tuning_job(
        self, request: types.GetHyperparameterTuningJobRequest
    ) -> HyperparameterTuningJob:
        """Return the job as it stands, with its trials."""
        return self._store.get(TUNING_JOBS, names.check_name(request.name, _COLLECTION))

    def list_hyperparameter_tuning_jobs(
        self, request: types.ListHyperparameterTuningJobsRequest
    ) -> types.ListHyperparameterTuningJobsResponse:
        """Return jobs of a location, newest first."""
        names.parse_location(request.parent)
        page, token = list_page(self._store.list_under(TUNING_JOBS, request.parent), request, JOB_FIELDS)
        return types.ListHyperparameterTuningJobsResponse(hyperparameter_tuning_jobs=page, next_page_token=token)

    def cancel_hyperparameter_tuning_job(self, request: types.CancelHyperparameterTuningJobRequest) -> empty_pb2.Empty:
        """Ask a job to end, and its trials with it; one that has ended already stays as it is."""
        with self._store.change(TUNING_JOBS, names.check_name(request.name, _COLLECTION)) as job:
            if job.state.name in ACTIVE_STATES:
                job.state, job.update_time = JobState.JOB_STATE_CANCELLING, now()
        self._tuner.cancel(request.name)
        return empty_pb2.Empty()

    def delete_hyperparameter_tuning_job(
        self, request: types.DeleteHyperparameterTuningJobRequest
    ) -> operations_pb2.Operation:
        """Remove a job that has ended, its trials, and their files."""
        job = self._store.get(TUNING_JOBS, names.check_name(request.name, _COLLECTION))
        if job.state.name in ACTIVE_STATES:
            raise FailedPrecondition(
                f"The HyperparameterTuningJob {job.name} is in state {job.state.name} and cannot be deleted. Cancel it"
                " and wait until it has ended."
            )

        def work(progress: Progress) -> empty_pb2.Empty:
            progress.check()
            self._tuner.delete(job.name)
            return empty_pb2.Empty()

        return self._operations.start(
            "JobService.DeleteHyperparameterTuningJob", job.name, types.DeleteOperationMetadata(), work
        )
