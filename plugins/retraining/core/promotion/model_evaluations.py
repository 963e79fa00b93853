"""A run's evaluation as the registry of Vertex AI keeps it beside the version: metrics in the field names of Google.

In: the evaluation. Out: `aiplatform_v1.ModelEvaluation` and its slices in proto-JSON. The fields are those of
`SchemaModelevaluationMetricsClassificationEvaluationMetrics` and `…RegressionEvaluationMetrics`
(https://cloud.google.com/vertex-ai/docs/reference/rest); what these have no field for stands in the metadata.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from retraining.core.documents.answers import AtThreshold
from retraining.core.documents.evaluation import Evaluation, Slice
from retraining.core.metrics import METRICS, NumberMetrics, Quality
from retraining.core.untyped import JsonObject, ProtoJson

SCHEMATA = "gs://google-cloud-aiplatform/schema/modelevaluation"
MOST_SLICES = 50
"""That BatchImportModelEvaluationSlices takes at once."""


def model_evaluation(evaluation: Evaluation, evaluation_uri: str) -> ProtoJson:
    """Return a run's evaluation of its own model; its display name is the run's key.

    Args:
        evaluation: How the challenger did.
        evaluation_uri: Of that document.
    """
    scores = evaluation.challenger
    metrics = _metrics(scores.metrics)
    if scores.confusion is not None:
        metrics["confusionMatrix"] = _confusion(scores.confusion)
    at = evaluation.threshold
    if at is not None and at.challenger is not None and at.threshold is not None:
        metrics["confidenceMetrics"] = [_at_threshold(at.threshold, at.challenger)]
    own = {name: value for name, value in scores.metrics.model_dump(mode="json").items() if value is not None}
    return {
        "display_name": evaluation.run_key,
        "metrics_schema_uri": _schema_uri(scores.metrics),
        "metrics": metrics,
        "slice_dimensions": ["slice"] if scores.slices else [],
        "metadata": {"evaluation_uri": evaluation_uri, "rows": evaluation.rows, "metrics": own},
    }


def slice_batches(evaluation: Evaluation, imported: Collection[str]) -> Iterator[list[ProtoJson]]:
    """Yield the slices of a run's evaluation that are not imported yet, as many at once as the service takes.

    Args:
        evaluation: How the challenger did.
        imported: Values of the slices that are.
    """
    rest = [item for item in evaluation.challenger.slices if _value(item) not in imported]
    for start in range(0, len(rest), MOST_SLICES):
        yield [_slice(item) for item in rest[start : start + MOST_SLICES]]


def _slice(item: Slice) -> ProtoJson:
    columns, values = item.column.split(" & "), str(item.value).split(" & ")
    configs = {}
    if len(columns) == len(values):  # a value with " & " in it cannot be told apart: its name says it all the same
        configs = {column: {"value": {"string_value": value}} for column, value in zip(columns, values, strict=True)}
    return {
        "slice_": {"dimension": "slice", "value": _value(item), "slice_spec": {"configs": configs}},
        "metrics_schema_uri": _schema_uri(item.metrics),
        "metrics": _metrics(item.metrics),
    }


def _value(item: Slice) -> str:
    return f"{item.column}={item.value}"


def _schema_uri(metrics: Quality) -> str:
    kind = "regression" if isinstance(metrics, NumberMetrics) else "classification"
    return f"{SCHEMATA}/{kind}_metrics_1.0.0.yaml"


def _metrics(metrics: Quality) -> JsonObject:
    fields = {name: row.vertex_field for name, row in METRICS.items() if hasattr(metrics, name)}
    values = {field: getattr(metrics, name) for name, field in fields.items() if field}
    return {field: value for field, value in values.items() if value is not None}


def _confusion(rows: Sequence[Sequence[int]]) -> JsonObject:
    classes = [{"id": str(number), "displayName": str(number)} for number in range(len(rows))]
    return {"annotationSpecs": classes, "rows": [list(row) for row in rows]}


def _at_threshold(threshold: float, found: AtThreshold) -> JsonObject:
    shares = {"precision": found.precision, "recall": found.recall, "f1Score": found.f1}
    return {
        "confidenceThreshold": threshold,
        **{name: share.value for name, share in shares.items() if share is not None},
        "truePositiveCount": found.true_positives,
        "falsePositiveCount": found.false_positives,
        "falseNegativeCount": found.false_negatives,
        "trueNegativeCount": found.true_negatives,
    }
