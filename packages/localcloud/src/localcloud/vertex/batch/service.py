"""JobService, batch prediction jobs: checked as the service does, kept in the store, run by the runner."""

from __future__ import annotations

from collections.abc import Callable

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import BatchPredictionJob, JobState, Model
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.batch.checks import check_job, check_offered
from localcloud.vertex.batch.runner import BatchRunner
from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.resources.jobs import ACTIVE_STATES
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import BATCH_JOBS, Store, now
from localcloud.vertex.resources.tables import Tables
from localcloud.vertex.resources.validation import refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition, InvalidArgument, Unimplemented
from localcloud.vertex.wire.listing import JOB_FIELDS, list_page
from localcloud.vertex.wire.schema import clear_output_only

_COLLECTION = "batchPredictionJobs"
FindVersion = Callable[[names.ModelName], Model]


class BatchPredictionJobs:
    """Answers what is asked of batch prediction jobs.

    Args:
        store: Keeps them.
        operations: Deletes them in the background.
        buckets: Where lines come from and go to.
        tables: Where rows come from and go to.
        find_version: Finds the model version that a name means.
        runner: Runs them.
    """

    def __init__(
        self,
        *,
        store: Store,
        operations: Operations,
        buckets: Buckets,
        tables: Tables,
        find_version: FindVersion,
        runner: BatchRunner,
    ) -> None:
        self._store = store
        self._operations = operations
        self._buckets = buckets
        self._tables = tables
        self._find_version = find_version
        self._runner = runner

    def create_batch_prediction_job(self, request: types.CreateBatchPredictionJobRequest) -> BatchPredictionJob:
        """Check the job, keep it, start it."""
        location = names.parse_location(request.parent)
        job = BatchPredictionJob()
        BatchPredictionJob.copy_from(job, request.batch_prediction_job)
        clear_output_only(job)
        version = self._find_model(job, location)
        check_offered(job, version)
        refuse(check_job(job, self._buckets, self._tables))
        job.model, job.model_version_id = version.name, version.version_id
        job.name = f"{location}/{_COLLECTION}/{names.new_id()}"
        job.state = JobState.JOB_STATE_PENDING
        job.create_time = job.update_time = now()
        self._store.insert(BATCH_JOBS, job.name, request.parent, job)
        self._runner.start(job.name)
        return job

    def get_batch_prediction_job(self, request: types.GetBatchPredictionJobRequest) -> BatchPredictionJob:
        """Return the job as it stands."""
        return self._store.get(BATCH_JOBS, names.check_name(request.name, _COLLECTION))

    def list_batch_prediction_jobs(
        self, request: types.ListBatchPredictionJobsRequest
    ) -> types.ListBatchPredictionJobsResponse:
        """Return jobs of a location, newest first."""
        names.parse_location(request.parent)
        page, token = list_page(self._store.list_under(BATCH_JOBS, request.parent), request, JOB_FIELDS)
        return types.ListBatchPredictionJobsResponse(batch_prediction_jobs=page, next_page_token=token)

    def cancel_batch_prediction_job(self, request: types.CancelBatchPredictionJobRequest) -> empty_pb2.Empty:
        """Ask a job to end; one that has ended already stays as it is."""
        with self._store.change(BATCH_JOBS, names.check_name(request.name, _COLLECTION)) as job:
            if job.state.name in ACTIVE_STATES:
                job.state, job.update_time = JobState.JOB_STATE_CANCELLING, now()
        self._runner.cancel(request.name)
        return empty_pb2.Empty()

    def delete_batch_prediction_job(self, request: types.DeleteBatchPredictionJobRequest) -> operations_pb2.Operation:
        """Remove a job that has ended; its output stays."""
        job = self._store.get(BATCH_JOBS, names.check_name(request.name, _COLLECTION))
        if job.state.name in ACTIVE_STATES:
            raise FailedPrecondition(
                f"The BatchPredictionJob {job.name} is in state {job.state.name} and cannot be deleted. Cancel it and"
                " wait until it has ended."
            )

        def work(progress: Progress) -> empty_pb2.Empty:
            progress.check()
            self._store.delete(BATCH_JOBS, job.name)
            return empty_pb2.Empty()

        return self._operations.start(
            "JobService.DeleteBatchPredictionJob", job.name, types.DeleteOperationMetadata(), work
        )

    def _find_model(self, job: BatchPredictionJob, location: names.Location) -> Model:
        field = "batch_prediction_job.model"
        if "unmanaged_container_model" in job:
            raise Unimplemented(
                "The local cloud does not offer batch_prediction_job.unmanaged_container_model. Upload the model and"
                " name it in batch_prediction_job.model."
            )
        name = names.parse_model(job.model, field)
        if name.location != location:
            raise InvalidArgument(
                f"The model {job.model} is in another location than the job: {location}. Expected the same.",
                field=field,
            )
        return self._find_version(name)
