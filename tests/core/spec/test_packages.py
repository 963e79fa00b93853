"""A model's packages: what the spec takes, and which jobs get them."""

from __future__ import annotations

import pytest

from retraining.core.catalog.capabilities import load_capabilities, require_trainable
from retraining.core.errors import SpecError
from retraining.core.jobs import requests
from tests.support.small_model import make_plan, make_spec

DIGEST = "ab" * 32
LAYERS = {"wheel": "gs://bucket/wheels/own_layers-1.0-py3-none-any.whl", "sha256": [DIGEST]}
WORDS = {"requirement": "tensorflow-text==2.21.0", "sha256": [DIGEST, "cd" * 32], "imports": "tensorflow_text"}


def plan_with(*packages):
    return make_plan(make_spec(training={"model": "dense", "packages": list(packages)}))


def test_trainings_and_trials_get_all_of_them():
    plan = plan_with(LAYERS, WORDS)
    for request in (
        requests.training_job(plan).request,
        requests.train_request(plan, "gs://bucket/study", trial_metric="val_auc"),
    ):
        assert [package.distribution for package in request.training.packages] == ["own-layers", "tensorflow-text"]
        assert request.to_json()["training"]["packages"][1]["sha256"] == [DIGEST, "cd" * 32]


@pytest.mark.parametrize(("packages", "count"), [((LAYERS,), 0), ((LAYERS, WORDS), 2)], ids=["python", "operations"])
def test_the_evaluation_gets_them_where_a_model_has_operations_of_theirs(packages, count):
    request = requests.evaluation_job(plan_with(*packages), None).request
    assert len(request.packages) == count


def test_another_digest_is_another_request():
    changed = {**LAYERS, "sha256": ["cd" * 32]}
    assert requests.training_job(plan_with(LAYERS)).request.digest() != (
        requests.training_job(plan_with(changed)).request.digest()
    )


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        pytest.param([{**LAYERS, **WORDS}], "either a wheel", id="both"),
        pytest.param([{"sha256": [DIGEST]}], "either a wheel", id="neither"),
        pytest.param([{**LAYERS, "sha256": []}], "at least 1", id="no-digest"),
        pytest.param([{**LAYERS, "wheel": "gs://bucket/own_layers-1.0.tar.gz"}], "whl", id="no-wheel"),
        pytest.param([{**WORDS, "requirement": "tensorflow-text>=2"}], "==", id="no-version"),
        pytest.param([{**WORDS, "requirement": "tensorflow-text==2 --pre"}], "==", id="an-option"),
        pytest.param([LAYERS, {**LAYERS, "wheel": None, "requirement": "own.layers==2"}], "stands twice", id="twice"),
        pytest.param([{**WORDS, "requirement": "NumPy==2.0"}], "'numpy' is the image's own", id="of-the-image"),
    ],
)
def test_what_cannot_be_installed_is_refused(packages, words):
    with pytest.raises((SpecError, ValueError), match=words):
        make_spec(training={"model": "dense", "packages": packages})


def test_an_unknown_architecture_is_left_to_the_packages():
    known = load_capabilities()
    require_trainable(make_spec(training={"model": "one_layer", "packages": [LAYERS]}), known)
    with pytest.raises(SpecError, match="unknown architecture 'one_layer'"):
        require_trainable(make_spec(training={"model": "one_layer"}), known)
