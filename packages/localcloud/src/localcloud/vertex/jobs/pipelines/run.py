"""One training pipeline from start to end: its custom job, then the upload of what that left in AIP_MODEL_DIR.

Comes in: the name of a pipeline in the store. Goes out: its states, metadata, model and error in the store.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Protocol

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import CustomJob, JobState, Model, TrainingPipeline
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2
from google.rpc import code_pb2

from localcloud.vertex.jobs.pipelines.checks import read_job_spec
from localcloud.vertex.jobs.runs import Outcome, Run, is_active
from localcloud.vertex.resources.operations import Cancelled, Operations
from localcloud.vertex.resources.store import TRAINING_PIPELINES, Store
from localcloud.vertex.resources.validation import MAX_DISPLAY_NAME
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError

_SUFFIX = "-custom-job"
_TICK_S = 0.1
_UPLOAD_TIMEOUT_S = 600.0


class Jobs(Protocol):
    """The calls of custom jobs."""

    def create(self, request: types.CreateCustomJobRequest) -> CustomJob:
        """Create a job."""

    def get(self, request: types.GetCustomJobRequest) -> CustomJob:
        """Return a job."""

    def cancel(self, request: types.CancelCustomJobRequest) -> empty_pb2.Empty:
        """Ask a job to end."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Services:
    """What all pipelines share.

    Attributes:
        upload_model: The call of the registry.
    """

    store: Store
    operations: Operations
    jobs: Jobs
    upload_model: Callable[[types.UploadModelRequest], operations_pb2.Operation]


class PipelineRun(Run):
    """One pipeline from start to end."""

    def __init__(self, services: Services, name: str) -> None:
        super().__init__(services.store, TRAINING_PIPELINES, name)
        self._services = services
        self._parent = str(names.location_of(name))

    def _execute(self) -> Outcome:
        try:
            self._train_and_upload()
        except ApiError as error:
            if error.code != "CANCELLED":
                raise
            return Outcome(state=JobState.JOB_STATE_CANCELLED, error=error)  # as its custom job, or its upload
        return Outcome(state=JobState.JOB_STATE_SUCCEEDED)

    def _train_and_upload(self) -> None:
        self._advance(JobState.JOB_STATE_RUNNING)
        spec = read_job_spec(self._job)
        self._progress.check()
        self._train(spec)
        if "model_to_upload" in self._job:
            self._progress.check()
            self._upload(f"{spec.base_output_directory.output_uri_prefix.rstrip('/')}/model")

    def _train(self, spec: types.CustomJobSpec) -> None:
        pipeline: TrainingPipeline = self._job
        jobs = self._services.jobs
        job = CustomJob(
            display_name=pipeline.display_name[: MAX_DISPLAY_NAME - len(_SUFFIX)] + _SUFFIX,
            job_spec=spec,
            labels=dict(pipeline.labels),
            encryption_spec=pipeline.encryption_spec if "encryption_spec" in pipeline else None,
        )
        made = jobs.create(types.CreateCustomJobRequest(parent=self._parent, custom_job=job))
        with self._change() as changed:
            changed.training_task_metadata = {"backingCustomJob": made.name}
        asked = False
        while is_active(seen := jobs.get(types.GetCustomJobRequest(name=made.name))):
            if not self._progress.wait(_TICK_S):
                continue
            if self._abandoned:
                raise Cancelled
            if not asked:
                jobs.cancel(types.CancelCustomJobRequest(name=made.name))
                asked = True
            time.sleep(_TICK_S)
        if seen.state != JobState.JOB_STATE_SUCCEEDED:
            raise ApiError(seen.error.message, code=code_pb2.Code.Name(seen.error.code))

    def _upload(self, artifact_uri: str) -> None:
        pipeline = self._job
        model = Model()
        Model.copy_from(model, pipeline.model_to_upload)
        model.artifact_uri = model.artifact_uri or artifact_uri
        operation = self._services.upload_model(
            types.UploadModelRequest(
                parent=self._parent, model=model, model_id=pipeline.model_id, parent_model=pipeline.parent_model
            )
        )
        operation = self._services.operations.wait(operation.name, _UPLOAD_TIMEOUT_S)
        if not operation.done or operation.error.code:
            message = operation.error.message or f"The model was not uploaded within {_UPLOAD_TIMEOUT_S:g} s."
            raise ApiError(message, code=code_pb2.Code.Name(operation.error.code or code_pb2.DEADLINE_EXCEEDED))
        uploaded = types.UploadModelResponse()
        operation.response.Unpack(types.UploadModelResponse.pb(uploaded))
        model.name, model.version_id = uploaded.model, uploaded.model_version_id
        with self._change() as changed:
            changed.model_to_upload = model
