"""What the trainer would refuse is refused before a job is paid for."""

from __future__ import annotations

import pytest

from retraining.core import settings
from retraining.core.catalog.capabilities import load_capabilities, require_trainable
from retraining.core.errors import SettingsError, SpecError
from tests.support.hyperparameter_rows import ROWS
from tests.support.refusals import refuses
from tests.support.small_model import make_spec

KNOWN = load_capabilities()
IMAGE = {"name": "photo", "kind": "image", "height": 32, "width": 32}
TEXT = {"name": "note", "kind": "text"}
STEPS = {"name": "steps", "kind": "sequence", "of": "numeric", "length": 5}
OTHER = {"data": {"query": "q.sql", "key": "id", "event_time": "at"}, "evaluation": {"min_value": 0.6}}


def require(**changes):
    require_trainable(make_spec(**changes), KNOWN)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.architecture}-{row.name}-{row.value}")
def test_hyperparameters_are_taken_and_refused_as_the_trainer_does(row):
    """`tests/trainer/tools/test_capabilities.py` runs the same rows."""
    known = KNOWN.architectures[row.architecture].hyperparameters.get(row.name)
    assert (known is not None and known.takes(row.value)) == row.taken


def test_the_small_model_can_be_trained():
    require()


@pytest.mark.parametrize(
    ("training", "words"),
    [
        (
            {"model": "wide_dep"},
            r"late.yaml, training.model: unknown architecture 'wide_dep'.*Did you mean 'wide_deep'",
        ),
        (
            {"model": "dense", "hyperparameters": {"learning_rat": 0.1}},
            r"training.hyperparameters: architecture 'dense' has no hyperparameter 'learning_rat'.*'learning_rate'",
        ),
        (
            {"model": "dense", "hyperparameters": {"dropout": 1.5}},
            r"training.hyperparameters.dropout: 1.5. Expected a number in \[0, 1\)",
        ),
        ({"model": "dense", "hyperparameters": {"hidden_units": [0]}}, r"hidden_units: \[0\]. Expected one or more"),
        (
            {"model": "lstm"},
            r"needs sequences, and no feature is one.*Set training.model to boosted_trees or deep_cross or",
        ),
        (
            {"model": "deep_cross", "initial": "champion"},
            "'deep_cross' cannot begin with the champion's weights. Expected one that can: dense, wide_deep",
        ),
        (
            {"model": "boosted_trees", "ensemble": 3},
            r"training.ensemble: 3, and .* is an ensemble of trees already. Expected one of: cnn, .*, wide_deep.",
        ),
    ],
    ids=str,
)
def test_what_the_trainer_would_refuse_is_said(training, words):
    with pytest.raises(SpecError, match=words):
        require(training=training)


def test_features_whose_weights_are_not_carried_over_are_named():
    time = {"name": "sent", "kind": "time", "parts": ["hour"]}
    with pytest.raises(SpecError, match=r"training.initial: feature .sent., whose weights"):
        require(**OTHER, features=[time], training={"model": "dense", "initial": "champion"})


def test_trees_are_one_network_and_other_architectures_may_have_members():
    for ensemble in ("auto", 1):
        require(training={"model": "boosted_trees", "ensemble": ensemble})
    require(**OTHER, features=[IMAGE], training={"model": "cnn", "ensemble": 2})
    wheel = {"wheel": "gs://mine/mine-1.0-py3-none-any.whl", "sha256": ["a" * 64]}
    require(training={"model": "mine", "ensemble": 2, "packages": [wheel]})


def test_all_findings_come_at_once():
    with pytest.raises(SpecError, match="2 errors") as caught:
        require(training={"model": "dense", "hyperparameters": {"dropout": 2, "l2": -1}})
    assert "dropout" in str(caught.value)
    assert "l2" in str(caught.value)


@pytest.mark.parametrize(
    ("model", "feature", "missing"),
    [("transfer", IMAGE, "weights"), ("module", IMAGE, "module"), ("module", TEXT, "text_module")],
)
def test_what_cannot_learn_without_something_needs_it(model, feature, missing):
    with pytest.raises(SpecError, match=f"architecture '{model}' has no {missing}.*hyperparameters.{missing}"):
        require(**OTHER, features=[feature], training={"model": model})
    require(**OTHER, features=[feature], training={"model": model, "hyperparameters": {missing: "gs://bucket/there"}})


def test_features_that_an_architecture_cannot_read_are_named():
    words = r"'dense' does not read images, and 'photo' is one.*Set training.model to cnn or module or transfer"
    with pytest.raises(SpecError, match=words):
        require(**OTHER, features=[IMAGE], training={"model": "dense"})
    with refuses(SpecError, found="sequences", way_out="Change the features"):
        require(**OTHER, features=[IMAGE, STEPS], training={"model": "cnn"})


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        (
            {"name": "dropout", "kind": "double", "min": 0, "max": 1},
            r"dropout: 1.0 would be tried. Expected a number in",
        ),
        ({"name": "hidden_units", "kind": "categorical", "values": ["8", "8-x"]}, r"'8-x' would be tried"),
        ({"name": "hidden_units", "kind": "double", "min": 1, "max": 9}, "kind double.*Search it as integer"),
        ({"name": "dropout", "kind": "discrete", "values": [0.5, 3]}, "3.* would be tried"),
    ],
    ids=str,
)
def test_a_search_that_would_try_what_is_refused_is_refused(parameter, words):
    training = {"model": "dense", "hyperparameters": {"dropout": 0.1, "hidden_units": [8]}}
    with pytest.raises(SpecError, match=words):
        require(training=training, tuning={"parameters": [parameter]})


def test_an_own_image_may_have_architectures_of_its_own():
    runtime = {"image": "europe-docker.pkg.dev/p/r/other:1"}
    require(training={"model": "forest", "hyperparameters": {"trees": 100}, "runtime": runtime})
    with pytest.raises(SpecError, match="dropout"):
        require(training={"model": "dense", "hyperparameters": {"dropout": 9}, "runtime": runtime})


def test_the_place_is_the_callers():
    with refuses(SpecError, where="Params, training.hyperparameters.dropout"):
        require_trainable(
            make_spec(training={"model": "dense", "hyperparameters": {"dropout": 9}}), KNOWN, "this run's Params"
        )


def test_without_the_file_nothing_is_guessed(tmp_path, monkeypatch):
    with monkeypatch.context() as patch, refuses(SettingsError, way_out="Install the package again"):
        patch.setattr(settings, "PACKAGE_DATA", tmp_path)
        load_capabilities(tmp_path)
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "capabilities.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SettingsError, match="make contracts"):
        load_capabilities(tmp_path)
