"""One training pipeline from start to end: its custom job, then the upload of what that left in AIP_MODEL_DIR.

Comes in: the name of a pipeline in the store. Goes out: its states, metadata, model and error in the store.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import CustomJob, JobState, Model, PipelineState, TrainingPipeline
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2
from google.rpc import code_pb2

from localcloud.vertex.pipelines.checks import read_job_spec
from localcloud.vertex.resources.jobs import ACTIVE_STATES as ACTIVE_JOB_STATES
from localcloud.vertex.resources.operations import Operations
from localcloud.vertex.resources.store import TRAINING_PIPELINES, Store, now
from localcloud.vertex.resources.validation import MAX_DISPLAY_NAME
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import ApiError, NotFound

LOGGER = logging.getLogger(__name__)
ACTIVE_STATES = tuple(state.replace("JOB_", "PIPELINE_") for state in ACTIVE_JOB_STATES)
_SUFFIX = "-custom-job"
_TICK_S = 0.1
_UPLOAD_TIMEOUT_S = 600.0


class Jobs(Protocol):
    """The calls of custom jobs."""

    def create_custom_job(self, request: types.CreateCustomJobRequest) -> CustomJob:
        """Create a job."""

    def get_custom_job(self, request: types.GetCustomJobRequest) -> CustomJob:
        """Return a job."""

    def cancel_custom_job(self, request: types.CancelCustomJobRequest) -> empty_pb2.Empty:
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


class PipelineRun:
    """One pipeline from start to end, in a thread of its own."""

    def __init__(self, services: Services, name: str, on_end: Callable[[str], None]) -> None:
        self._services = services
        self._store = services.store
        self._name = name
        self._on_end = on_end
        self._parent = str(names.location_of(name))
        self._pipeline: TrainingPipeline = self._store.get(TRAINING_PIPELINES, name)
        self._cancelled = threading.Event()
        self._abandoned = False
        self._thread = threading.Thread(
            target=self._run_pipeline, name=f"pipeline-{names.last_part(name)}", daemon=True
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self) -> None:
        """End as CANCELLED, with the custom job."""
        self._cancelled.set()

    def abandon(self) -> None:
        """End because the server ends, which ends the custom job too."""
        self._abandoned = True
        self.cancel()

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
        self._thread.join(timeout_s)

    def _run_pipeline(self) -> None:
        error: ApiError | None = None
        try:
            self._execute()
        except ApiError as refusal:
            error = refusal
        except Exception as problem:  # the thread's last line: a pipeline without an end would be waited for for ever
            LOGGER.exception("%s failed", self._name)
            error = ApiError(f"Internal error: {type(problem).__name__}: {problem}.", code="INTERNAL")
        if not self._abandoned:
            finish_pipeline(self._store, self._name, error)
        self._on_end(self._name)

    def _execute(self) -> None:
        with self._change() as pipeline:
            if pipeline.state == PipelineState.PIPELINE_STATE_PENDING:
                pipeline.state, pipeline.start_time = PipelineState.PIPELINE_STATE_RUNNING, now()
        spec = read_job_spec(self._pipeline)
        self._check()
        self._train(spec)
        if "model_to_upload" in self._pipeline:
            self._check()
            self._upload(f"{spec.base_output_directory.output_uri_prefix.rstrip('/')}/model")

    def _train(self, spec: types.CustomJobSpec) -> None:
        pipeline, jobs = self._pipeline, self._services.jobs
        job = CustomJob(
            display_name=pipeline.display_name[: MAX_DISPLAY_NAME - len(_SUFFIX)] + _SUFFIX,
            job_spec=spec,
            labels=dict(pipeline.labels),
            encryption_spec=pipeline.encryption_spec if "encryption_spec" in pipeline else None,
        )
        made = jobs.create_custom_job(types.CreateCustomJobRequest(parent=self._parent, custom_job=job))
        with self._change() as changed:
            changed.training_task_metadata = {"backingCustomJob": made.name}
        asked = False
        while (seen := jobs.get_custom_job(types.GetCustomJobRequest(name=made.name))).state.name in ACTIVE_JOB_STATES:
            if not self._cancelled.wait(_TICK_S):
                continue
            if self._abandoned:
                raise _cancelled()
            if not asked:
                jobs.cancel_custom_job(types.CancelCustomJobRequest(name=made.name))
                asked = True
            time.sleep(_TICK_S)
        if seen.state != JobState.JOB_STATE_SUCCEEDED:
            raise ApiError(seen.error.message, code=code_pb2.Code.Name(seen.error.code))

    def _upload(self, artifact_uri: str) -> None:
        pipeline = self._pipeline
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

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise _cancelled()

    @contextlib.contextmanager
    def _change(self) -> Iterator[TrainingPipeline]:
        """Change the pipeline in the store; not one that was deleted meanwhile."""
        with contextlib.suppress(NotFound), self._store.change(TRAINING_PIPELINES, self._name) as pipeline:
            pipeline.update_time = now()
            yield pipeline


def _cancelled() -> ApiError:
    return ApiError("CANCELED", code="CANCELLED")


def finish_pipeline(store: Store, name: str, error: ApiError | None) -> None:
    """Write a pipeline's end into the store."""
    with contextlib.suppress(NotFound), store.change(TRAINING_PIPELINES, name) as pipeline:
        pipeline.update_time = pipeline.end_time = now()
        if error is None:
            pipeline.state = PipelineState.PIPELINE_STATE_SUCCEEDED
            return
        cancelled = error.code == "CANCELLED"
        pipeline.state = PipelineState.PIPELINE_STATE_CANCELLED if cancelled else PipelineState.PIPELINE_STATE_FAILED
        pipeline.error = error.to_status()
