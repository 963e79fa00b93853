"""ModelService, evaluations: metrics that were measured elsewhere, kept beside the version they are about.

The fields of a slice are documented as the service's own, and are what BatchImportModelEvaluationSlices is given: they
are kept. At most 50 slices come at once, as Google's own pipeline component says that imports them
(google_cloud_pipeline_components, import_model_evaluation). Whether metrics obey their schema nobody looks.
"""

from __future__ import annotations

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import ModelEvaluation, ModelEvaluationSlice

from localcloud.vertex.models.versions import find_version
from localcloud.vertex.resources.store import EVALUATION_SLICES, EVALUATIONS, Store, now
from localcloud.vertex.resources.validation import check_gcs_uri, refuse
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import InvalidArgument
from localcloud.vertex.wire.listing import list_page

_MOST_SLICES = 50


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
        _check_schema(evaluation, "model_evaluation")
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

    def batch_import_model_evaluation_slices(
        self, request: types.BatchImportModelEvaluationSlicesRequest
    ) -> types.BatchImportModelEvaluationSlicesResponse:
        """Keep slices of an evaluation, all or none."""
        parent = self._store.get(EVALUATIONS, request.parent).name
        if len(request.model_evaluation_slices) > _MOST_SLICES:
            raise InvalidArgument(
                f"model_evaluation_slices has {len(request.model_evaluation_slices)} slices. Expected at most"
                f" {_MOST_SLICES}. Import the rest by another call.",
                field="model_evaluation_slices",
            )
        kept = []
        for number, given in enumerate(request.model_evaluation_slices):
            _check_schema(given, f"model_evaluation_slices[{number}]")
            part = ModelEvaluationSlice()
            ModelEvaluationSlice.copy_from(part, given)
            part.name, part.create_time = f"{parent}/slices/{names.new_id()}", now()
            kept.append(part)
        with self._store.transaction():
            for part in kept:
                self._store.insert(EVALUATION_SLICES, part.name, parent, part)
        return types.BatchImportModelEvaluationSlicesResponse(
            imported_model_evaluation_slices=[part.name for part in kept]
        )

    def get_model_evaluation_slice(self, request: types.GetModelEvaluationSliceRequest) -> ModelEvaluationSlice:
        """Return one slice."""
        return self._store.get(EVALUATION_SLICES, request.name)

    def list_model_evaluation_slices(
        self, request: types.ListModelEvaluationSlicesRequest
    ) -> types.ListModelEvaluationSlicesResponse:
        """Return slices of an evaluation, newest first."""
        parent = self._store.get(EVALUATIONS, request.parent).name
        slices = self._store.list_under(EVALUATION_SLICES, parent)
        page, token = list_page(slices, request, {})
        return types.ListModelEvaluationSlicesResponse(model_evaluation_slices=page, next_page_token=token)


def _check_schema(given: ModelEvaluation | ModelEvaluationSlice, field: str) -> None:
    """Refuse metrics without the address of their schema."""
    if given.metrics and not given.metrics_schema_uri:
        raise InvalidArgument(
            f"{field} has metrics without metrics_schema_uri. Expected"
            " gs://google-cloud-aiplatform/schema/modelevaluation/….",
            field=f"{field}.metrics_schema_uri",
        )
    if given.metrics_schema_uri:
        refuse(check_gcs_uri(given.metrics_schema_uri, f"{field}.metrics_schema_uri"))
