"""What an image of one's own says that it cannot do is refused before a job is paid for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retraining.core.catalog import model_check
from retraining.core.catalog.trainers import require_trainer
from retraining.core.errors import SettingsError, SpecError
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from tests.support.refusals import refuses
from tests.support.small_model import make_spec

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
IMAGE = "us-central1-docker.pkg.dev/mine/retraining/sklearn-trainer:1"
RUNTIME = {"image": IMAGE, "models": "own"}
PARAMETER = {"name": "max_leaf_nodes", "kind": "integer", "min": 2, "max": 30}
MACHINE = {"machine": "n1-standard-4"}


def spec_of(**changes):
    """The small model, trained in the image by its own models."""
    plain = {"data": {"query": "q.sql", "key": "id", "event_time": "at"}, "evaluation": {"min_value": 0.6}}
    training = {"model": "boosted_trees", "runtime": RUNTIME} | changes.pop("training", {})
    container = {"image": IMAGE, "predict_route": "/predict", "health_route": "/health"}
    return make_spec(training=training, deployment={"container": container}, **plain | changes)


@pytest.mark.parametrize("name", ["sklearn", "xgboost"])
def test_an_example_is_taken_by_its_image(name):
    (path,) = (EXAMPLES / name / "models").glob("*.yaml")
    assert (EXAMPLES / name / "trainers" / f"{name}-trainer.json").is_file()
    require_trainer(load_spec(path), EXAMPLES / name)


CHANGES = {
    "trials": (
        {"tuning": {"parameters": [PARAMETER]}, "training": {"hyperparameters": {"max_leaf_nodes": 5}}},
        r"late.yaml, tuning: the image sklearn-trainer says of itself that it takes no trials.*Remove the key",
    ),
    "auxiliary": (
        {"auxiliary_labels": [{"name": "delay", "kind": "regression"}]},
        r"late.yaml, auxiliary_labels: .* one label",
    ),
    "loss": (
        {
            "label": {"name": "delay", "kind": "regression", "loss": "huber"},
            "evaluation": {"metric": "mae", "max_value": 9},
        },
        r"late.yaml, label: loss huber. Expected one of: mse, which the image sklearn-trainer takes. Change the value",
    ),
    "transform": (
        {
            "label": {"name": "delay", "kind": "regression", "transform": "log1p"},
            "evaluation": {"metric": "mae", "max_value": 9},
        },
        r"label: transform log1p. Expected one of: none",
    ),
    "feature": (
        {"features": [{"name": "note", "kind": "text"}]},
        r"feature 'note': kind text. Expected one of: categorical, numeric",
    ),
    "feature transform": (
        {"features": [{"name": "miles", "kind": "numeric", "transform": "log1p"}]},
        r"feature 'miles': transform. Expected none: the image sklearn-trainer .*Remove the key",
    ),
    "hashes": (
        {"features": [{"name": "zone", "kind": "categorical", "max_vocabulary": 9, "hash_buckets": 9}]},
        r"feature 'zone': max_vocabulary.*\n.*feature 'zone': hash_buckets",
    ),
    "cross": (
        {"features": [{"name": name, "kind": "categorical"} for name in "ab"], "crosses": [{"columns": ["a", "b"]}]},
        r"late.yaml, crosses: crosses. Expected none",
    ),
    "input": ({"training": {"input": "bigquery"}}, r"training: input bigquery. Expected one of: tfrecord"),
    "ensemble": (
        {"training": {"ensemble": 3, "runtime": {"image": IMAGE}}},
        r"training.ensemble: hyperparameter members. Expected one of: ",
    ),
    "warm start": (
        {"training": {"initial": "champion", "runtime": {"image": IMAGE}}},
        r"training.initial: .*weights drawn by the seed alone",
    ),
    "hyperparameter": (
        {"training": {"hyperparameters": {"max_leaf_node": 3}}},
        r"hyperparameter max_leaf_node. Expected one of: .*Did you mean 'max_leaf_nodes'",
    ),
    "machines": (
        {"training": {"cluster": {"tier": "CUSTOM", "chief": MACHINE, "workers": {**MACHINE, "count": 2}}}},
        r"training.cluster: .* one machine",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_the_image_would_refuse_is_said(name):
    changes, words = CHANGES[name]
    spec = spec_of(**changes)
    with pytest.raises(SpecError, match=words):
        require_trainer(spec, EXAMPLES / "sklearn")
    require_trainer(spec, EXAMPLES / "smallest")  # nobody has described the image there


def test_a_label_of_another_kind_is_said(tmp_path):
    described = json.loads((EXAMPLES / "sklearn" / "trainers" / "sklearn-trainer.json").read_bytes())
    path = tmp_path / "trainers" / "sklearn-trainer.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**described, "labels": ["regression"]}))
    with refuses(SpecError, where="a run, label", found="binary", expected="one of: regression"):
        require_trainer(spec_of(), tmp_path, "a run")
    path.write_text(json.dumps({**described, "colour": "blue"}))
    with refuses(SettingsError, where="trainers/sklearn-trainer.json", found="colour", way_out="describe"):
        require_trainer(spec_of(), tmp_path)


def test_an_image_of_before_takes_no_weights(tmp_path):
    """Its description does not know the word; today's examples take them."""
    described = json.loads((EXAMPLES / "sklearn" / "trainers" / "sklearn-trainer.json").read_bytes())
    assert described.pop("weights") is True
    path = tmp_path / "trainers" / "sklearn-trainer.json"
    path.parent.mkdir()
    path.write_text(json.dumps(described))
    spec = spec_of(data={"query": "q.sql", "key": "id", "event_time": "at", "weight": "importance"})
    with refuses(SpecError, where="late.yaml, data.weight", found="no weights", way_out="Remove the key"):
        require_trainer(spec, tmp_path)
    require_trainer(spec, EXAMPLES / "sklearn")


def test_an_image_of_before_has_no_digest_in_its_results(tmp_path):
    """It would refuse each request of this release: that is said before a job of it is paid for."""
    described = json.loads((EXAMPLES / "sklearn" / "trainers" / "sklearn-trainer.json").read_bytes())
    assert described.pop("request_digest") is True
    path = tmp_path / "trainers" / "sklearn-trainer.json"
    path.parent.mkdir()
    path.write_text(json.dumps(described))
    with refuses(SpecError, where="training.runtime.image", found="request_digest", way_out="Build the image"):
        require_trainer(spec_of(), tmp_path)


def test_an_image_that_is_not_described_is_said_to_be_unknown(capsys):
    """`make check-models` takes it, and names the file that would say more."""
    spec = spec_of()
    (line,) = model_check.not_looked_at(spec, include_path())
    assert "trainers/sklearn-trainer.json" in line
    assert IMAGE in line
    assert model_check.not_looked_at(spec, EXAMPLES / "sklearn") == []
