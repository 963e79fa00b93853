"""Models for TensorFlow.js: converted in the converter's environment, asked in Node, equal to the SavedModel."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.support.node import install_program
from tests.support.trainer_documents import make_feature, make_feature_statistics, make_label, make_statistics
from trainer.contract.documents import Label, Report, Training, ValueCount
from trainer.contract.reading import serialise
from trainer.errors import DataError
from trainer.features.preprocessing import Preprocessing
from trainer.models.backbones import BACKBONES
from trainer.objective.outputs import objective_of
from trainer.saved_model.model import StoredModel, save_model
from trainer.tools.tfjs import main, require_answers
from trainer.training.recipe import Recipe

ROOT = Path(__file__).parents[3]
TFJS_PYTHON = ROOT / ".venv" / "tfjs" / "bin" / "python"
NODE_FILES = Path(__file__).parent / "tfjs"
ROWS, SIDE, LENGTH = 8, 16, 5
TEXTS = ("Ü", "B", "C")
TOP = tuple(ValueCount(value=value, count=1) for value in TEXTS)
NUMBER = make_feature_statistics(kind="numeric", nulls=1, mean=10.0, stddev=4.0)
FEATURES = {
    "carrier": (make_feature("carrier", "categorical"), make_feature_statistics(kind="categorical", top=TOP)),
    "distance": (make_feature("distance", "numeric"), NUMBER),
    "stops": (
        make_feature("stops", "sequence", of="categorical", length=LENGTH),
        make_feature_statistics(kind="sequence", top=TOP),
    ),
    "heat": (
        make_feature("heat", "sequence", of="numeric", length=LENGTH),
        make_feature_statistics(kind="sequence", mean=0.0, stddev=1.0),
    ),
    "photo": (
        make_feature("photo", "image", height=SIDE, width=SIDE, channels=3),
        make_feature_statistics(kind="image"),
    ),
}
PLAIN, STEPS, PHOTOS = ("carrier", "distance"), ("carrier", "distance", "stops", "heat"), ("distance", "photo")
BINARY = make_label("late", "binary")
CLASSES = make_label("late", "multiclass", classes=3)

in_its_environment = pytest.mark.skipif(
    not TFJS_PYTHON.exists() and sys.version_info >= (3, 13), reason="TensorFlow 2.19 has no Python 3.13"
)


@pytest.fixture(scope="module")
def report(exported, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A training whose model is stored for conversion; `report.json` lies beside it."""
    training = {"model": "dense", "epochs": 2, "export_lite": ["float16"]}
    return exported.train(exported.train_request_in(tmp_path_factory.mktemp("run"), training=training))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that asks, with TensorFlow.js as the lock has it."""
    return install_program(NODE_FILES, tmp_path_factory.mktemp("node") / "ask") / "ask.mjs"


def convert(run: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in the converter's environment."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": "1"}
    command = [str(TFJS_PYTHON), "-m", "trainer.tools.tfjs", str(run)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def ask(node: Path, run: Path, instances: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ask the converted model in Node."""
    command = ["node", str(node), str(run / "training" / "tfjs")]
    done = subprocess.run(
        command, input=json.dumps(instances), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def store(
    run: Path, report: Report, architecture: str, names: tuple[str, ...], label: Label, **given: Any
) -> StoredModel:
    """A model that has learned nothing, as the training of a run leaves it."""
    tf.random.set_seed(3)
    features = [FEATURES[name][0] for name in names]
    preprocessing = Preprocessing(features, make_statistics(**{name: FEATURES[name][1] for name in names}))
    training = Training(model=architecture, epochs=1, batch_size=1, early_stopping_patience=0, hyperparameters=given)
    recipe = Recipe.from_training(training, objective_of(label))
    model = recipe.build_model(preprocessing.shape)
    save_model(run / "model", features, preprocessing, model, recipe.objective, lite=True)
    (run / "report.json").write_bytes(serialise(dataclasses.replace(report, model_uri=str(run / "model"))))
    return StoredModel(run / "model", str(run / "model"))


def make_examples(names: tuple[str, ...]) -> tuple[list[dict[str, Any]], dict[str, tf.Tensor]]:
    """Examples as an app has them, some values missing or unknown, and as the SavedModel takes them."""
    random = np.random.default_rng(5)
    texts, numbers = np.array([*TEXTS, "new", ""]), random.normal(10, 4, (ROWS, 1 + LENGTH))
    drawn: dict[str, Any] = {
        "carrier": random.choice(texts, ROWS),
        "distance": np.where(random.random(ROWS) < 0.3, np.nan, numbers[:, 0]).astype(np.float32),
        "stops": random.choice(texts, (ROWS, LENGTH)),
        "heat": numbers[:, 1:].astype(np.float32),
        "photo": random.integers(0, 256, (ROWS, SIDE, SIDE, 3), dtype=np.uint8),
    }
    drawn["heat"][:4, 3:], drawn["stops"][:4, 3:] = np.nan, ""  # shorter ones, filled up
    raw = {name: tf.constant(drawn[name]) for name in names if name != "photo"}
    if "photo" in names:
        raw["photo"] = tf.stack([tf.io.encode_png(photo) for photo in drawn["photo"]])
    instances = [{name: as_json(drawn[name][row]) for name in names} for row in range(ROWS)]
    return instances, raw


def as_json(values: Any) -> Any:
    """Numbers that are missing as null; the end of a list that is only filled up is cut off."""
    listed = values.tolist()
    if isinstance(listed, list) and not isinstance(listed[0], list):
        kept = [None if one != one else one for one in listed]
        return kept[:3] if kept[3:] in ([None, None], ["", ""]) else kept
    return None if listed != listed else listed


@pytest.mark.long
@in_its_environment
def test_a_runs_model_answers_its_smoke_requests_alike_in_node(node: Path, report: Report) -> None:
    run = Path(report.model_uri).parent
    done = convert(run)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(run / "training" / "tfjs")
    answers = ask(node, run, [dict(golden.instance) for golden in report.golden])
    assert len(answers) == 5
    np.testing.assert_allclose(
        [answer["score"] for answer in answers], [golden.prediction for golden in report.golden], atol=1e-5
    )


@pytest.mark.long
@in_its_environment
@pytest.mark.parametrize(
    ("architecture", "names", "label"),
    [
        ("dense", PLAIN, CLASSES),
        ("deep_cross", PLAIN, BINARY),
        ("wide_deep", PLAIN, BINARY),
        ("cnn", PHOTOS, CLASSES),
        ("conv1d", STEPS, BINARY),
        ("lstm", STEPS, BINARY),
        ("gru", STEPS, BINARY),
    ],
    ids=["dense", "deep_cross", "wide_deep", "cnn", "conv1d", "lstm", "gru"],
)
def test_each_architecture_answers_alike_in_node(
    architecture: str, names: tuple[str, ...], label: Label, node: Path, report: Report, tmp_path: Path
) -> None:
    stored = store(tmp_path, report, architecture, names, label)
    done = convert(tmp_path)
    assert done.returncode == 0, done.stderr
    instances, raw = make_examples(names)
    answers = ask(node, tmp_path, instances)
    expected = stored.predict(raw)
    assert np.ptp(expected) > 1e-4
    np.testing.assert_allclose([answer[stored.output] for answer in answers], expected, atol=1e-5)


@pytest.mark.long
@in_its_environment
def test_a_model_that_would_answer_otherwise_is_refused_by_name(report: Report, tmp_path: Path) -> None:
    """TF.js computes the transformer's layer normalisation wrong, and says nothing."""
    store(tmp_path, report, "transformer", STEPS, BINARY)
    done = convert(tmp_path)
    assert done.returncode == 2
    assert "normalises by the batch at hand, for which TF.js answers NaN. Expected another architecture" in done.stderr
    assert not (tmp_path / "training").exists()


@pytest.mark.long
@in_its_environment
def test_operations_that_tfjs_does_not_have_are_named(report: Report, tmp_path: Path) -> None:
    """Those that the converter makes of DenseNet121."""
    weights = tmp_path / "weights_notop.h5"
    BACKBONES["densenet121"].build_network().save_weights(str(weights))
    store(tmp_path, report, "transfer", ("photo",), CLASSES, weights=str(weights))
    done = convert(tmp_path)
    assert done.returncode == 2
    assert "cannot be converted: Unsupported Ops in the model after optimization _FusedBatchNormEx" in done.stderr


def test_normalisation_by_stored_numbers_is_taken() -> None:
    node = {"name": "norm", "op": "FusedBatchNormV3", "attr": {"is_training": {"b": False}}}
    require_answers({"modelTopology": {"node": [node]}}, "gs://b/model")
    inside = {"function": [{"nodeDef": [{**node, "attr": {"is_training": {"b": True}}}]}]}
    with pytest.raises(DataError, match="gs://b/model: norm normalises by the batch at hand"):
        require_answers({"modelTopology": {"node": [], "library": inside}}, "gs://b/model")


def test_a_model_that_was_not_stored_for_conversion_says_what_to_set(
    exported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported.train(exported.train_request_in(tmp_path, training={"model": "dense", "epochs": 1}))
    assert main(str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert "the model was not stored for conversion. Expected a signature 'lite' beside 'serving_default'" in said
    assert "Set training.export_lite: [float16] and train again." in said


def test_another_environment_is_told_apart(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the converter's has `tensorflowjs`."""
    assert main(str(Path(report.model_uri).parent)) == 2
    assert "tensorflowjs: cannot be imported" in capsys.readouterr().err
