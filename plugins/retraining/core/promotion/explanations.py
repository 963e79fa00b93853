"""How a version's answers are explained, as the registry is told it.

In: the plan, the statistics of its training data, the signature of its report. Out: an ExplanationSpec for a container
that is asked by the names of features: each with the value that it is compared with, and the output of the label that
decides. https://cloud.google.com/vertex-ai/docs/reference/rest/v1/ExplanationSpec
"""

from __future__ import annotations

from retraining.core.documents import Plan, Signature, Statistics
from retraining.core.documents.checks import CategoricalStatistics, FeatureStatistics, NumericStatistics, TimeStatistics
from retraining.core.errors import ContractError
from retraining.core.naming import storage
from retraining.core.spec.explanations import NUMBERS, BaselineValue, Explanations
from retraining.core.spec.features import MEDIAN, OUTPUT_NAMES, Feature, Label, class_names
from retraining.core.untyped import ProtoJson

_MICROSECONDS = 86_400 * 10**6
"""Of a day."""


def explanation_spec(plan: Plan, statistics: Statistics, signature: Signature) -> ProtoJson:
    """Return what the registry is told, as `aiplatform_v1.ExplanationSpec` in proto-JSON.

    Args:
        plan: Its spec has `deployment.explanations`.
        statistics: Of the same run.
        signature: Of the model; what it does not take is not explained.

    Raises:
        ContractError: The model has no output that the label decides by.
    """
    spec = plan.spec
    explanations = spec.deployment.explanations or Explanations()
    known = statistics.splits["train"].features
    baselines = {
        feature.name: baseline_of(feature, known.get(feature.name), explanations)
        for feature in spec.features
        if feature.name in signature.inputs
    }
    output = next((name for name in OUTPUT_NAMES if name in signature.outputs), None)
    if output is None:
        raise ContractError(
            storage.document_uri(plan.run_uri, "report"),
            f"a signature with the outputs {', '.join(signature.outputs)}",
            f"one of {', '.join(OUTPUT_NAMES)}, which deployment.explanations is about",
            "Let the trainer name the label's output so, or remove deployment.explanations",
        )
    return {
        "parameters": {"sampled_shapley_attribution": {"path_count": explanations.paths}, **_indices(spec.label)},
        "metadata": {
            "inputs": {name: {"input_baselines": [value]} for name, value in baselines.items()},
            "outputs": {output: _names(spec.label)},
        },
    }


def baseline_of(feature: Feature, known: FeatureStatistics | None, explanations: Explanations) -> BaselineValue:
    """Return the value that a feature is compared with: the spec's, or what is usual in the training split.

    Of a number the median, of a time the mean in whole microseconds, of a category the most frequent one. A feature
    without any value there is compared with 0 or an empty text, as other texts are.
    """
    if feature.name in explanations.baselines:
        return explanations.baselines[feature.name]
    if isinstance(known, NumericStatistics) and known.quantiles:
        return known.quantiles[len(known.quantiles) // 2]
    if isinstance(known, TimeStatistics) and known.mean is not None:
        return round(known.mean * _MICROSECONDS)
    if isinstance(known, CategoricalStatistics) and known.top:
        return max(known.top, key=lambda each: each.count).value
    return 0 if feature.kind in NUMBERS else ""


def _indices(label: Label) -> ProtoJson:
    """Name the median of quantiles; of several classes Vertex AI explains the likeliest by itself."""
    quantiles = label.quantiles if label.kind == "regression" else ()
    return {"output_indices": [quantiles.index(MEDIAN)]} if quantiles else {}


def _names(label: Label) -> ProtoJson:
    """Name the numbers of an output that is a list of them."""
    if label.kind == "regression" and label.quantiles:
        return {"index_display_name_mapping": [f"{level:g}" for level in label.quantiles]}
    names = class_names(label) if label.kind == "multiclass" else ()
    return {"index_display_name_mapping": list(names)} if names else {}
