"""JobService, batch prediction jobs: checked as the service does, run by processes that serve the model.

Like custom jobs they do not outlive this server.
"""

from __future__ import annotations

from google.cloud.aiplatform_v1.types import BatchPredictionJob, Model

from localcloud.vertex.jobs.batch.checks import check_job, check_offered
from localcloud.vertex.jobs.batch.run import BatchMachinery, BatchRun
from localcloud.vertex.jobs.family import JobFamily
from localcloud.vertex.resources.operations import Operations
from localcloud.vertex.resources.store import BATCH_JOBS
from localcloud.vertex.resources.validation import refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import InvalidArgument


class BatchPredictionJobs(JobFamily):
    """The batch prediction jobs; their output stays when they are deleted."""

    kind = BATCH_JOBS

    def __init__(self, shared: BatchMachinery, operations: Operations) -> None:
        super().__init__(shared.machinery.store, operations)
        self._shared = shared

    def _check(self, job: BatchPredictionJob) -> None:
        version = self._find_model(job)
        check_offered(job, version)
        refuse(check_job(job, self._shared.machinery.buckets, self._shared.machinery.tables))
        job.model, job.model_version_id = version.name, version.version_id

    def _make_run(self, name: str) -> BatchRun:
        return BatchRun(self._shared, name)

    def _find_model(self, job: BatchPredictionJob) -> Model:
        field = "batch_prediction_job.model"
        name, location = names.parse_model(job.model, field), names.location_of(job.name)
        if name.location != location:
            raise InvalidArgument(
                f"The model {job.model} is in another location than the job: {location}. Expected the same.",
                field=field,
            )
        return self._shared.find_version(name)
