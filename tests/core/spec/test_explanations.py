"""The section deployment.explanations: what it takes, and what is refused by its name with the way out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.small_model import make_plan, make_spec, spec_values

CONTAINER = {"image": "us-docker.pkg.dev/p/r/own:1", "predict_route": "/p", "health_route": "/h"}
PHOTO = {"name": "photo", "kind": "image", "height": 8, "width": 8}
CLICKS = {"name": "clicks", "kind": "sequence", "of": "numeric", "length": 4}
HOUR = {"name": "hour", "kind": "time", "parts": ["hour"]}


def explained(explanations: Any = None, *, deployment: Any = None, **changes: Any) -> Any:
    section = {"explanations": explanations or {}, **(deployment or {})}
    return make_spec(deployment=section, **changes)


def test_a_model_without_it_has_the_documents_and_the_key_of_before():
    """Nothing of it stands in a plan, and the run's key is the same as with `null`."""
    assert "explanations" not in json.dumps(make_plan().to_json()["spec"])
    assert make_plan(make_spec(deployment={"explanations": None})).run_key == make_plan().run_key
    assert make_plan(explained()).run_key != make_plan().run_key


def test_its_values():
    section = explained({"paths": 50, "baselines": {"distance": 1.5, "carrier": "AA"}}).deployment.explanations
    assert (section.paths, section.baselines) == (50, {"distance": 1.5, "carrier": "AA"})
    assert explained().deployment.explanations.paths == 10


@pytest.mark.parametrize(
    ("explanations", "words"),
    [
        pytest.param({"paths": 1}, "paths", id="one path"),
        pytest.param({"paths": 51}, "paths", id="51 paths"),
        pytest.param({"method": "integrated_gradients"}, "needs gradients by what a request holds.*remove", id="ig"),
        pytest.param({"method": "xrai"}, "method 'xrai' needs gradients", id="xrai"),
        pytest.param({"method": "sampled_shapley"}, "is the only one, and no key: remove it", id="method"),
        pytest.param({"baselines": {"colour": 1}}, "deployment.explanations.baselines", id="no feature"),
        pytest.param({"baselines": {"distance": "far"}}, "distance is 'far'.*give a number", id="text"),
        pytest.param({"baselines": {"carrier": 3}}, "carrier is 3.*give a text", id="number"),
        pytest.param({"baselines": {"distance": True}}, "baselines", id="boolean"),
    ],
)
def test_what_it_does_not_take_is_refused(explanations, words):
    with pytest.raises(ValueError, match=words):
        explained(explanations)


@pytest.mark.parametrize("feature", [PHOTO, CLICKS], ids=lambda feature: feature["kind"])
def test_images_and_sequences_are_refused(feature):
    """An attribution is one number for a feature."""
    with pytest.raises(ValueError, match=rf"'{feature['name']}' is of kind {feature['kind']}: remove"):
        explained(features=[feature, *spec_values()["features"]])


def test_the_baseline_of_a_time_is_whole_microseconds():
    features = [HOUR, *spec_values()["features"]]
    assert explained({"baselines": {"hour": 10**15}}, features=features)
    with pytest.raises(ValueError, match=r"hour is 1\.5.*whole number"):
        explained({"baselines": {"hour": 1.5}}, features=features)


@pytest.mark.parametrize(
    ("deployment", "words"),
    [
        pytest.param({"endpoint": False}, "explanations is of an endpoint, and endpoint is false", id="no endpoint"),
        pytest.param({"dedicated_endpoint": True}, "explains no answers of a dedicated one", id="dedicated"),
        pytest.param(
            {"container": {"image": "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"}},
            "which Vertex AI explains by tensors: remove container",
            id="pre-built",
        ),
    ],
)
def test_endpoints_that_are_not_explained_are_refused(deployment, words):
    with pytest.raises(ValueError, match=words):
        explained(deployment=deployment)


def test_boosted_trees_and_containers_of_ones_own_are_explained():
    """Both are asked by the names of features, and need no gradients."""
    assert explained(training={"model": "boosted_trees"})
    assert explained(deployment={"container": CONTAINER})
