"""PipelineService, training pipelines: checked as the service does, kept in the store, run by the runner."""

from __future__ import annotations

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import Model, PipelineState, TrainingPipeline
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.pipelines.checks import CheckJobSpec, check_pipeline
from localcloud.vertex.pipelines.run import ACTIVE_STATES
from localcloud.vertex.pipelines.runner import PipelineRunner
from localcloud.vertex.resources.operations import Operations, Progress
from localcloud.vertex.resources.store import TRAINING_PIPELINES, Store, now
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition
from localcloud.vertex.wire.listing import PIPELINE_FIELDS, list_page
from localcloud.vertex.wire.schema import clear_output_only

_COLLECTION = "trainingPipelines"


class TrainingPipelines:
    """Answers what is asked of training pipelines.

    Args:
        store: Keeps them.
        operations: Deletes them in the background.
        runner: Runs them.
        check_job_spec: Knows the rules of custom jobs, which their tasks are.
    """

    def __init__(
        self, store: Store, operations: Operations, runner: PipelineRunner, check_job_spec: CheckJobSpec
    ) -> None:
        self._store = store
        self._operations = operations
        self._runner = runner
        self._check_job_spec = check_job_spec

    def create_training_pipeline(self, request: types.CreateTrainingPipelineRequest) -> TrainingPipeline:
        """Check the pipeline, keep it, start it."""
        location = names.parse_location(request.parent)
        pipeline = TrainingPipeline()
        TrainingPipeline.copy_from(pipeline, request.training_pipeline)
        clear_output_only(pipeline)
        if "model_to_upload" in pipeline:  # with the aliases that it asks for: the registry checks it
            Model.copy_from(pipeline.model_to_upload, request.training_pipeline.model_to_upload)
        check_pipeline(pipeline, self._check_job_spec)
        pipeline.name = f"{location}/{_COLLECTION}/{names.new_id()}"
        pipeline.state = PipelineState.PIPELINE_STATE_PENDING
        pipeline.create_time = pipeline.update_time = now()
        self._store.insert(TRAINING_PIPELINES, pipeline.name, request.parent, pipeline)
        self._runner.start(pipeline.name)
        return pipeline

    def get_training_pipeline(self, request: types.GetTrainingPipelineRequest) -> TrainingPipeline:
        """Return the pipeline as it stands."""
        return self._store.get(TRAINING_PIPELINES, names.check_name(request.name, _COLLECTION))

    def list_training_pipelines(
        self, request: types.ListTrainingPipelinesRequest
    ) -> types.ListTrainingPipelinesResponse:
        """Return pipelines of a location, newest first."""
        names.parse_location(request.parent)
        pipelines = self._store.list_under(TRAINING_PIPELINES, request.parent)
        page, token = list_page(pipelines, request, PIPELINE_FIELDS)
        return types.ListTrainingPipelinesResponse(training_pipelines=page, next_page_token=token)

    def cancel_training_pipeline(self, request: types.CancelTrainingPipelineRequest) -> empty_pb2.Empty:
        """Ask a pipeline to end, and its custom job with it; one that has ended already stays as it is."""
        with self._store.change(TRAINING_PIPELINES, names.check_name(request.name, _COLLECTION)) as pipeline:
            if pipeline.state.name in ACTIVE_STATES:
                pipeline.state, pipeline.update_time = PipelineState.PIPELINE_STATE_CANCELLING, now()
        self._runner.cancel(request.name)
        return empty_pb2.Empty()

    def delete_training_pipeline(self, request: types.DeleteTrainingPipelineRequest) -> operations_pb2.Operation:
        """Remove a pipeline that has ended; its custom job and its model stay."""
        pipeline = self._store.get(TRAINING_PIPELINES, names.check_name(request.name, _COLLECTION))
        if pipeline.state.name in ACTIVE_STATES:
            raise FailedPrecondition(
                f"The TrainingPipeline {pipeline.name} is in state {pipeline.state.name} and cannot be deleted. Cancel"
                " it and wait until it has ended."
            )

        def work(progress: Progress) -> empty_pb2.Empty:
            progress.check()
            self._store.delete(TRAINING_PIPELINES, pipeline.name)
            return empty_pb2.Empty()

        return self._operations.start(
            "PipelineService.DeleteTrainingPipeline", pipeline.name, types.DeleteOperationMetadata(), work
        )
