"""How a version's answers are explained: its inputs with what is usual of each, and the output that decides."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from google.cloud import aiplatform_v1

from retraining.core import settings
from retraining.core.catalog.containers import load_containers, require_explanations
from retraining.core.catalog.model_check import ended_containers
from retraining.core.documents import Signature, Statistics
from retraining.core.documents.checks import TextStatistics, TimeStatistics
from retraining.core.errors import ContractError, SpecError
from retraining.core.planning import plan
from retraining.core.promotion.explanations import explanation_spec
from tests.support.contracts import EXAMPLES
from tests.support.refusals import refuses
from tests.support.small_model import make_plan, make_spec, spec_values

STATISTICS = Statistics.parse((EXAMPLES / "statistics__two_features.json").read_bytes())
SIGNATURE = Signature(inputs={"carrier": "string", "distance": "float32"}, outputs={"score": "float32"})
CONTAINERS = load_containers(settings.include_path())
PREBUILT = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"


def explained(signature: Signature = SIGNATURE, statistics: Statistics = STATISTICS, **changes: Any) -> dict[str, Any]:
    """What the registry is told of a small model."""
    given = changes.pop("explanations", {})
    spec = make_spec(deployment={"explanations": given}, **changes)
    return explanation_spec(make_plan(spec), statistics, signature)


def with_features(**found: Any) -> Statistics:
    """The statistics with other features in the training split."""
    train = STATISTICS.splits["train"]
    splits = {**STATISTICS.splits, "train": train.model_copy(update={"features": {**train.features, **found}})}
    return STATISTICS.model_copy(update={"splits": splits})


def baselines(spec: dict[str, Any]) -> dict[str, Any]:
    return {name: each["input_baselines"] for name, each in spec["metadata"]["inputs"].items()}


def test_a_feature_is_compared_with_its_median_or_its_most_frequent_category():
    """Of the training split; ten paths where the file says nothing; the message is one that Google's client takes."""
    spec = explained()
    train = STATISTICS.splits["train"].features
    carriers = {each.value: each.count for each in train["carrier"].top}
    usual = max(carriers, key=carriers.__getitem__)
    assert baselines(spec) == {"carrier": [usual], "distance": [train["distance"].quantiles[10]]}
    assert spec["parameters"] == {"sampled_shapley_attribution": {"path_count": 10}}
    assert spec["metadata"]["outputs"] == {"score": {}}
    message = aiplatform_v1.ExplanationSpec.from_json(json.dumps(spec))
    assert dict(message.metadata.inputs)["carrier"].input_baselines == [usual]


def test_the_file_says_another_value_and_other_paths():
    spec = explained(explanations={"paths": 25, "baselines": {"distance": 0}})
    assert baselines(spec)["distance"] == [0]
    assert spec["parameters"]["sampled_shapley_attribution"]["path_count"] == 25


def test_times_texts_and_features_without_values_have_baselines_too():
    """A time its mean in whole microseconds; a text an empty one; a number that was never there 0."""
    features = [
        {"name": "at_hour", "kind": "time", "parts": ["hour"]},
        {"name": "remark", "kind": "bag", "of": "words"},
        *spec_values()["features"],
    ]
    times = TimeStatistics(kind="time", nulls=0, min=1.0, max=2.0, mean=1.5, stddev=0.1)
    texts = TextStatistics(kind="text", nulls=0, min_length=1, max_length=2, mean_length=1.5)
    never = (
        STATISTICS.splits["train"]
        .features["distance"]
        .model_copy(update={"min": None, "max": None, "mean": None, "stddev": None, "quantiles": ()})
    )
    inputs = {"at_hour": "int64", "remark": "string", **SIGNATURE.inputs}
    found = explained(
        SIGNATURE.model_copy(update={"inputs": inputs}),
        with_features(at_hour=times, remark=texts, distance=never),
        features=features,
    )
    told = baselines(found)
    assert (told["at_hour"], told["remark"], told["distance"]) == ([129_600_000_000], [""], [0])


def test_the_key_of_a_request_is_not_explained():
    """It stands in the signature and is no feature."""
    spec = explained(SIGNATURE.model_copy(update={"inputs": {**SIGNATURE.inputs, "id": "string"}}))
    assert set(spec["metadata"]["inputs"]) == {"carrier", "distance"}


def test_of_several_classes_the_likeliest_is_explained_by_its_name():
    """Which Vertex AI chooses for each instance; classes that are numbers have no names."""
    signature = SIGNATURE.model_copy(update={"outputs": {"class": "string", "scores": "float32"}})
    label = {"name": "late", "kind": "multiclass", "classes": ["no", "a bit", "much"]}
    evaluation = {"metric": "accuracy", "min_value": 0.5, "promote": {"min_examples": 10}}
    spec = explained(signature, label=label, evaluation=evaluation)
    assert spec["metadata"]["outputs"] == {"scores": {"index_display_name_mapping": ["no", "a bit", "much"]}}
    assert "output_indices" not in spec["parameters"]
    numbered = explained(signature, label={**label, "classes": 3}, evaluation=evaluation)
    assert numbered["metadata"]["outputs"] == {"scores": {}}


def test_of_quantiles_the_median_is_explained():
    """The greatest one, which Vertex AI would choose by itself, is always the last."""
    signature = SIGNATURE.model_copy(update={"outputs": {"quantiles": "float32"}})
    label = {"name": "late", "kind": "regression", "loss": "quantile", "quantiles": [0.1, 0.5, 0.9]}
    evaluation = {"metric": "mae", "max_value": 9, "promote": {"min_examples": 10}}
    data = spec_values()["data"]
    data = {**data, "checks": {name: each for name, each in data["checks"].items() if name != "label_rate"}}
    spec = explained(signature, label=label, evaluation=evaluation, data=data)
    assert spec["parameters"]["output_indices"] == [1]
    assert spec["metadata"]["outputs"] == {"quantiles": {"index_display_name_mapping": ["0.1", "0.5", "0.9"]}}
    message = aiplatform_v1.ExplanationSpec.from_json(json.dumps(spec))
    assert list(message.parameters.output_indices) == [1]


def test_a_model_without_the_labels_output_is_refused():
    """Of a trainer of one's own, which names its outputs otherwise."""
    signature = SIGNATURE.model_copy(update={"outputs": {"risk": "float32"}})
    with refuses(ContractError, where="report.json", found="outputs risk", expected="score", way_out="remove"):
        explained(signature)


def test_it_is_refused_from_its_end_on_and_a_warning_until_then():
    spec = make_spec(deployment={"explanations": {}})
    end = CONTAINERS.explanations
    warning = require_explanations(spec, "", CONTAINERS, date.fromordinal(end.toordinal() - 1))
    assert warning is not None
    assert f"until {end}" in warning
    with refuses(SpecError, where="late.yaml, deployment.explanations", found=f"ended on {end}", way_out="Remove it"):
        require_explanations(spec, "", CONTAINERS, end)
    assert require_explanations(make_spec(), PREBUILT, CONTAINERS, end) is None


def test_the_check_of_the_files_says_both():
    """A warning until the end, then what `plan` refuses; nothing of a model without the key."""
    spec = make_spec(deployment={"explanations": {}})
    (until,) = ended_containers(spec, CONTAINERS, date(2026, 11, 27))
    (ended,) = ended_containers(spec, CONTAINERS, CONTAINERS.explanations)
    assert f"until {CONTAINERS.explanations}" in until
    assert f"ended on {CONTAINERS.explanations}" in ended
    assert ended_containers(make_spec(), CONTAINERS, CONTAINERS.explanations) == []


def test_a_pre_built_container_that_serves_is_refused():
    """By the setting; a container of the model's own is in its place."""
    day = date(2026, 11, 27)
    with refuses(SpecError, found="RETRAINING_SERVING_IMAGE", way_out="TensorFlow Serving"):
        require_explanations(make_spec(deployment={"explanations": {}}), PREBUILT, CONTAINERS, day)
    own = {"image": "us-docker.pkg.dev/p/r/own:1", "predict_route": "/p", "health_route": "/h"}
    spec = make_spec(deployment={"explanations": {}, "container": own})
    assert require_explanations(spec, PREBUILT, CONTAINERS, day) is not None


def test_the_plan_says_what_an_explanation_costs():
    made = make_plan(make_spec(deployment={"explanations": {"paths": 20}}))
    assert "explanations of 20 paths: up to 41 predictions for each instance" in plan.explain(made)
    assert not any("explanations" in line for line in plan.explain(make_plan()))
