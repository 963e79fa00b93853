"""ModelService, evaluations: metrics that were measured elsewhere, kept beside the version they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import ModelEvaluation

from localcloud.vertex.models.versions import find_version
from localcloud.vertex.resources.store import EVALUATIONS, now
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import InvalidArgument
from localcloud.vertex.wire.listing import list_page
from localcloud.vertex.wire.schema import clear_output_only

if TYPE_CHECKING:
    from localcloud.vertex.front.dispatch import Context


def import_model_evaluation(request: types.ImportModelEvaluationRequest, context: Context) -> ModelEvaluation:
    """Keep an evaluation of a model version (of the default one when the parent names none)."""
    name = names.parse_model(request.parent, "parent")
    version = find_version(context.cloud.store, name)
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
    context.cloud.store.insert(EVALUATIONS, evaluation.name, f"{name.model_name}@{version.version_id}", evaluation)
    return evaluation


def get_model_evaluation(request: types.GetModelEvaluationRequest, context: Context) -> ModelEvaluation:
    """One evaluation."""
    return context.cloud.store.get(EVALUATIONS, request.name)


def list_model_evaluations(
    request: types.ListModelEvaluationsRequest, context: Context
) -> types.ListModelEvaluationsResponse:
    """Evaluations of a model version, newest first."""
    name = names.parse_model(request.parent, "parent")
    version = find_version(context.cloud.store, name)
    found = context.cloud.store.list_under(EVALUATIONS, f"{name.model_name}@{version.version_id}")
    page, token = list_page(found, request, {"display_name": "display_name"})
    return types.ListModelEvaluationsResponse(model_evaluations=page, next_page_token=token)
