"""PipelineService, training pipelines: checked as the service does, run as a custom job and an upload.

Like custom jobs they do not outlive this server.
"""

from __future__ import annotations

from google.cloud.aiplatform_v1.types import TrainingPipeline

from localcloud.vertex.jobs.family import JobFamily
from localcloud.vertex.jobs.pipelines.checks import CheckJobSpec, check_pipeline
from localcloud.vertex.jobs.pipelines.run import PipelineRun, Services
from localcloud.vertex.resources.store import TRAINING_PIPELINES
from localcloud.vertex.wire.listing import PIPELINE_FIELDS


class TrainingPipelines(JobFamily):
    """The training pipelines; custom job and model stay when they are deleted.

    Args:
        check_job_spec: Knows the rules of custom jobs, which their tasks are.
    """

    service = "PipelineService"
    kind = TRAINING_PIPELINES
    list_fields = PIPELINE_FIELDS
    lost = "the local cloud was stopped while the pipeline ran. Create it again."

    def __init__(self, services: Services, check_job_spec: CheckJobSpec) -> None:
        super().__init__(services.store, services.operations)
        self._services = services
        self._check_job_spec = check_job_spec

    def _check(self, job: TrainingPipeline) -> None:
        check_pipeline(job, self._check_job_spec)

    def _make_run(self, name: str) -> PipelineRun:
        return PipelineRun(self._services, name)
