"""An evaluation in the field names of Google's registry."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud.aiplatform_v1 import types

from retraining.core.documents import Evaluation, Slice
from retraining.core.promotion.model_evaluations import MOST_SLICES, SCHEMATA, model_evaluation, slice_batches
from tests.support.contracts import EXAMPLES

URI = "gs://bucket/late/runs/x/evaluation.json"


def stored(name: str, **challenger: Any) -> Evaluation:
    found = Evaluation.parse((EXAMPLES / f"evaluation__{name}.json").read_bytes())
    return found.model_copy(update={"challenger": found.challenger.model_copy(update=challenger)})


def imported(evaluation: Evaluation) -> dict[str, Any]:
    """As Google's client sends it."""
    message = types.ModelEvaluation(model_evaluation(evaluation, URI))
    return types.ModelEvaluation.to_dict(message)


def test_a_classification_has_googles_names_and_the_metadata_the_rest():
    evaluation = stored("duel")
    found, ours = imported(evaluation), evaluation.challenger.metrics
    assert found["display_name"] == evaluation.run_key
    assert found["metrics_schema_uri"] == f"{SCHEMATA}/classification_metrics_1.0.0.yaml"
    (at,) = found["metrics"].pop("confidenceMetrics")
    assert found["metrics"] == {"auRoc": 0.71, "auPrc": 0.47, "logLoss": 0.46}
    assert at == {
        "confidenceThreshold": 0.125,
        "precision": 0.3306,
        "recall": 0.781,
        "f1Score": 0.4645,
        "truePositiveCount": 82,
        "falsePositiveCount": 166,
        "falseNegativeCount": 23,
        "trueNegativeCount": 229,
    }
    assert found["slice_dimensions"] == ["slice"]
    assert found["metadata"]["rows"] == evaluation.rows
    assert found["metadata"]["evaluation_uri"] == URI
    assert found["metadata"]["metrics"]["accuracy"] == ours.accuracy


def test_several_classes_have_their_confusion_matrix():
    evaluation = stored("classes")
    matrix = imported(evaluation)["metrics"]["confusionMatrix"]
    assert matrix["rows"] == [list(row) for row in evaluation.challenger.confusion]
    assert [item["id"] for item in matrix["annotationSpecs"]] == [str(number) for number in range(len(matrix["rows"]))]


def test_a_regression_has_its_own_schema():
    evaluation = stored("numbers")
    found, ours = imported(evaluation), evaluation.challenger.metrics
    assert found["metrics_schema_uri"] == f"{SCHEMATA}/regression_metrics_1.0.0.yaml"
    assert found["metrics"] == {"rootMeanSquaredError": ours.rmse, "meanAbsoluteError": ours.mae, "rSquared": ours.r2}


@pytest.mark.parametrize(
    ("column", "value", "configs"),
    [
        ("carrier", "UA", {"carrier": "UA"}),
        ("carrier", "", {"carrier": ""}),
        ("carrier & origin", "UA & EWR", {"carrier": "UA", "origin": "EWR"}),
        ("carrier & origin", "A & B & EWR", {}),
    ],
    ids=["one column", "missing", "two columns", "a value that looks like two"],
)
def test_a_slice_names_its_columns_and_values(column, value, configs):
    evaluation = stored("duel")
    metrics = evaluation.challenger.metrics
    (batch,) = slice_batches(stored("duel", slices=(Slice(column=column, value=value, rows=5, metrics=metrics),)), ())
    (found,) = (types.ModelEvaluationSlice(item) for item in batch)
    assert (found.slice_.dimension, found.slice_.value) == ("slice", f"{column}={value}")
    spec = found.slice_.slice_spec.configs
    assert {name: spec[name].value.string_value for name in spec} == configs
    assert found.metrics["logLoss"] == metrics.log_loss


def test_slices_come_in_batches_without_those_that_are_there():
    metrics = stored("duel").challenger.metrics
    slices = tuple(Slice(column="tail", value=f"N{number}", rows=5, metrics=metrics) for number in range(120))
    batches = list(slice_batches(stored("duel", slices=slices), {"tail=N0", "tail=N119"}))
    assert [len(batch) for batch in batches] == [MOST_SLICES, MOST_SLICES, 18]
    values = [item["slice_"]["value"] for batch in batches for item in batch]
    assert values == [f"tail=N{number}" for number in range(1, 119)]
