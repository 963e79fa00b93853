"""JobService, custom jobs: checked as the service does, kept in the store, run by the runner."""

from __future__ import annotations

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import CustomJob, JobState
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.jobs.checks import check_job
from localcloud.vertex.jobs.runner import Runner
from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.resources.jobs import ACTIVE_STATES
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import CUSTOM_JOBS, Store, now
from localcloud.vertex.resources.validation import refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition
from localcloud.vertex.wire.listing import JOB_FIELDS, list_page
from localcloud.vertex.wire.schema import clear_output_only


class CustomJobs:
    """Answers what is asked of custom jobs.

    Args:
        operations: Deletes them in the background.
        buckets: Where their output goes must exist.
    """

    def __init__(self, store: Store, operations: Operations, buckets: Buckets, runner: Runner) -> None:
        self._store = store
        self._operations = operations
        self._buckets = buckets
        self._runner = runner

    def create_custom_job(self, request: types.CreateCustomJobRequest) -> CustomJob:
        """Check the job, keep it, queue it."""
        location = names.parse_location(request.parent)
        job = CustomJob()
        CustomJob.copy_from(job, request.custom_job)
        clear_output_only(job)
        refuse(check_job(job, self._buckets))
        moment = now()
        job.name = f"{location}/customJobs/{names.new_id()}"
        job.state = JobState.JOB_STATE_QUEUED
        job.create_time = job.update_time = moment
        self._store.insert(CUSTOM_JOBS, job.name, request.parent, job)
        self._runner.start(job.name)
        return job

    def get_custom_job(self, request: types.GetCustomJobRequest) -> CustomJob:
        """Return the job as it stands."""
        return self._store.get(CUSTOM_JOBS, names.check_name(request.name, "customJobs"))

    def list_custom_jobs(self, request: types.ListCustomJobsRequest) -> types.ListCustomJobsResponse:
        """Return jobs of a location, newest first."""
        names.parse_location(request.parent)
        page, token = list_page(self._store.list_under(CUSTOM_JOBS, request.parent), request, JOB_FIELDS)
        return types.ListCustomJobsResponse(custom_jobs=page, next_page_token=token)

    def cancel_custom_job(self, request: types.CancelCustomJobRequest) -> empty_pb2.Empty:
        """Ask a job to end; one that has ended already stays as it is."""
        with self._store.change(CUSTOM_JOBS, names.check_name(request.name, "customJobs")) as job:
            if job.state.name in ACTIVE_STATES:
                job.state, job.update_time = JobState.JOB_STATE_CANCELLING, now()
        self._runner.cancel(request.name)
        return empty_pb2.Empty()

    def delete_custom_job(self, request: types.DeleteCustomJobRequest) -> operations_pb2.Operation:
        """Remove a job that has ended, and its files."""
        job = self._store.get(CUSTOM_JOBS, names.check_name(request.name, "customJobs"))
        if job.state.name in ACTIVE_STATES:
            raise FailedPrecondition(
                f"The CustomJob {job.name} is in state {job.state.name} and cannot be deleted. Cancel it and"
                f" wait until it has ended."
            )

        def work(progress: Progress) -> empty_pb2.Empty:
            progress.check()
            self._store.delete(CUSTOM_JOBS, job.name)
            self._runner.delete_files(job.name)
            return empty_pb2.Empty()

        return self._operations.start("JobService.DeleteCustomJob", job.name, types.DeleteOperationMetadata(), work)
