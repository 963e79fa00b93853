"""ModelService, evaluations: metrics that were measured elsewhere, kept beside the version they are about."""

from __future__ import annotations

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import ModelEvaluation

from localcloud.vertex.models.versions import find_version
from localcloud.vertex.resources.store import EVALUATIONS, Store, now
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import InvalidArgument
from localcloud.vertex.wire.listing import list_page
from localcloud.vertex.wire.schema import clear_output_only


class Evaluations:
    """Answers what is asked of evaluations."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def import_model_evaluation(self, request: types.ImportModelEvaluationRequest) -> ModelEvaluation:
        """Keep an evaluation of a model version (of the default one when the parent names none)."""
        name = names.parse_model(request.parent, "parent")
        version = find_version(self._store, name)
        evaluation = ModelEvaluation()
        ModelEvaluation.copy_from(evaluation, request.model_evaluation)
        clear_output_only(evaluation)
        if evaluation.metrics and not evaluation.metrics_schema_uri:
            raise InvalidArgument(
                "metrics without metrics_schema_uri. Expected gs://google-cloud-aiplatform/schema/modelevaluation/….",
                field="metrics_schema_uri",
            )
        evaluation.name = f"{name.model_name}/evaluations/{names.new_id()}"
        evaluation.create_time = now()
        self._store.insert(EVALUATIONS, evaluation.name, f"{name.model_name}@{version.version_id}", evaluation)
        return evaluation

    def get_model_evaluation(self, request: types.GetModelEvaluationRequest) -> ModelEvaluation:
        """Return one evaluation."""
        return self._store.get(EVALUATIONS, request.name)

    def list_model_evaluations(self, request: types.ListModelEvaluationsRequest) -> types.ListModelEvaluationsResponse:
        """Return evaluations of a model version, newest first."""
        name = names.parse_model(request.parent, "parent")
        version = find_version(self._store, name)
        evaluations = self._store.list_under(EVALUATIONS, f"{name.model_name}@{version.version_id}")
        page, token = list_page(evaluations, request, {"display_name": "display_name"})
        return types.ListModelEvaluationsResponse(model_evaluations=page, next_page_token=token)
