"""TF Lite models: converted, measured on the test split, and named when there is none."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests.support.trainer_documents import make_feature, make_feature_statistics, make_label, make_statistics
from trainer.contract.documents import (
    Evaluation,
    LiteArtifact,
    Statistics,
    Training,
    ValueCount,
)
from trainer.contract.reading import parse_document
from trainer.evaluation.job import evaluate
from trainer.evaluation.lite import artifacts
from trainer.evaluation.lite.convert import convert_model, main
from trainer.evaluation.lite.interpreter import LiteModel
from trainer.features.preprocessing import Preprocessing
from trainer.features.vocabulary import Vocabulary
from trainer.input import open_source
from trainer.objective.outputs import objective_of
from trainer.saved_model.model import LITE, SIGNATURE, save_model
from trainer.training.recipe import Recipe

BOTH = ["float16", "int8"]


@pytest.fixture(scope="module")
def model_path(exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stored model that may become a TF Lite model; it has learned nothing."""
    tf.random.set_seed(3)
    request = exported.train_request(training={"export_lite": BOTH, "model": "dense"})
    statistics = parse_document(Statistics, (exported.path / "statistics.json").read_bytes(), "statistics")
    preprocessing = Preprocessing(request.features, statistics)
    recipe = Recipe.from_training(request.training, objective_of(request.label))
    path = tmp_path_factory.mktemp("lite") / "model"
    save_model(
        path, request.features, preprocessing, recipe.build_model(preprocessing.shape), recipe.objective, lite=True
    )
    return path


def judge(run, out: Path, model: Path, forms: list[str] = BOTH, **changes: Any) -> Evaluation:
    """Evaluate in this process."""
    order = {"forms": forms, "folder_uri": str(out / "lite")}
    uris = {"evaluation_uri": str(out / "evaluation.json"), "lite": order}
    request = run.evaluate_request(str(model), None, **uris, **changes)
    manifest = run.manifest()
    with open_source(manifest, manifest.splits, run.storage) as source:
        return evaluate(request, manifest, source, run.storage)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert in this process, which is faster."""

    def run(form: str, place: Any) -> artifacts.Converted:
        samples = dict(np.load(place.samples, allow_pickle=True))
        return artifacts.Converted(content=convert_model(form, str(place.model), samples), message="")

    monkeypatch.setattr(artifacts, "_run_converter", run)


def by_form(evaluation: Evaluation) -> dict[str, LiteArtifact]:
    return {item.form: item for item in evaluation.lite}


def test_both_forms_are_measured_on_the_test_split(here: None, exported, model_path: Path, tmp_path: Path) -> None:
    found = judge(exported, tmp_path, model_path)
    full = found.challenger.metrics
    assert list(by_form(found)) == BOTH
    for form, bound in (("float16", 1e-3), ("int8", 0.01)):
        item = by_form(found)[form]
        content = (tmp_path / "lite" / f"{form}.tflite").read_bytes()
        assert (item.uri, item.bytes) == (str(tmp_path / "lite" / f"{form}.tflite"), len(content))
        assert b"Flex" not in content
        assert item.vocabulary_uri == str(tmp_path / "lite" / "vocabulary.json")
        assert item.difference == pytest.approx(item.metrics.auc - full.auc)
        assert abs(item.difference) < bound
        assert abs(item.metrics.log_loss - full.log_loss) < bound
    assert by_form(found)["float16"].message == "weights in 16 bits"
    assert by_form(found)["int8"].message == "layers in 8 bits, calibrated with 256 training examples"
    stored = json.loads((tmp_path / "evaluation.json").read_text())
    assert [item["form"] for item in stored["lite"]] == BOTH
    vocabulary = json.loads((tmp_path / "lite" / "vocabulary.json").read_text())
    assert (vocabulary["missing"], vocabulary["other"]) == (0, 1)
    carriers = vocabulary["codes"]["carrier"]
    assert sorted(carriers.values()) == [0, *range(2, len(carriers) + 1)]


def test_texts_are_ids_of_the_vocabulary() -> None:
    """As an app looks them up: missing, unknown, and with letters of any language."""
    features = [
        make_feature(name="carrier", kind="categorical"),
        make_feature(name="stops", kind="sequence", of="categorical", length=2),
        make_feature(name="heat", kind="sequence", of="numeric", length=2),
    ]
    top = tuple(ValueCount(value=value, count=1) for value in ("Ü", "B"))
    statistics = make_statistics(
        carrier=make_feature_statistics(kind="categorical", top=top),
        stops=make_feature_statistics(kind="sequence", top=top),
        heat=make_feature_statistics(kind="sequence", mean=0.0, stddev=1.0),
    )
    preprocessing = Preprocessing(features, statistics)
    raw = {
        "carrier": tf.constant(["", "B", "Ü", "new"]),
        "stops": tf.constant([["Ü", ""], ["new", "B"], ["", ""], ["", ""]]),
        "heat": tf.zeros([4, 2]),
    }
    encoded = preprocessing(raw)
    vocabulary = Vocabulary.read(preprocessing.vocabulary.serialise())
    found = vocabulary.encode({name: values.numpy() for name, values in raw.items()})
    assert found["carrier"].tolist() == encoded["categorical"][:, 0].numpy().tolist() == [0, 3, 2, 1]
    assert found["stops"].tolist() == encoded["sequence_stops"].numpy().tolist() == [[2, 0], [1, 3], [0, 0], [0, 0]]
    assert found["carrier"].dtype == found["stops"].dtype == np.int32
    by_ids = preprocessing({name: tf.constant(values) for name, values in found.items()})
    for name, values in encoded.items():
        np.testing.assert_array_equal(by_ids[name], values, err_msg=name)


def test_nothing_is_made_unless_it_is_asked_for(exported, model_path: Path, tmp_path: Path) -> None:
    request = exported.evaluate_request(str(model_path), None, evaluation_uri=str(tmp_path / "evaluation.json"))
    manifest = exported.manifest()
    with open_source(manifest, manifest.splits, exported.storage) as source:
        assert evaluate(request, manifest, source, exported.storage).lite == ()


def test_the_converter_runs_in_a_process_of_its_own(exported, model_path: Path, tmp_path: Path) -> None:
    found = by_form(judge(exported, tmp_path, model_path, ["float16"]))["float16"]
    assert found.message == "weights in 16 bits"
    assert found.bytes


def faults(monkeypatch: pytest.MonkeyPatch, **by: subprocess.CompletedProcess | Exception) -> None:
    """Let conversions end as told, by form."""

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess:
        told = by[command[3]]
        if isinstance(told, Exception):
            raise told
        return told

    monkeypatch.setattr(subprocess, "run", run)


def ended(code: int, stderr: bytes = b"") -> subprocess.CompletedProcess:
    return subprocess.CompletedProcess([], code, b"", stderr)


def test_a_model_that_cannot_be_converted_is_named_and_the_evaluation_goes_on(
    exported, model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    faults(
        monkeypatch,
        float16=ended(1, b"noise\nConverterError: 'tf.Quux' op is neither a custom op nor a flex op\n"),
        int8=ended(-11),
        int8_weights=subprocess.TimeoutExpired([], 900),
    )
    found = by_form(judge(exported, tmp_path, model_path))
    assert found["float16"].message == "ConverterError: 'tf.Quux' op is neither a custom op nor a flex op"
    assert found["int8"].message == "not done after 900 s"
    assert all(item.metrics is None and item.uri is None for item in found.values())
    assert not (tmp_path / "lite").exists()
    assert "evaluate: TF Lite float16: none: ConverterError: 'tf.Quux'" in caplog.text


def test_int8_falls_back_to_its_weights_when_calibration_dies(
    exported, model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(form: str, place: Any) -> artifacts.Converted:
        if form == "int8":
            return artifacts.Converted(content=None, message="the converter died of SIGSEGV")
        samples = dict(np.load(place.samples, allow_pickle=True))
        return artifacts.Converted(content=convert_model(form, str(place.model), samples), message="")

    monkeypatch.setattr(artifacts, "_run_converter", run)
    item = by_form(judge(exported, tmp_path, model_path, ["int8"]))["int8"]
    assert item.message.endswith("activations in float32: calibration failed (the converter died of SIGSEGV)")
    assert abs(item.difference) < 0.05


@pytest.mark.parametrize(("of_weights", "taken"), [(-0.001, "weights in 8 bits"), (0.3, "layers in 8 bits")])
def test_int8_is_what_is_nearer_to_the_full_model_where_activations_cost_too_much(
    exported, model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_weights: float, taken: str
) -> None:
    """Either is measured as it is; only how far off it is is made up here."""
    measured = artifacts._measured

    def made_up(form: str, converted: artifacts.Converted, *others: Any) -> LiteArtifact:
        off = -0.2 if converted.message.startswith("layers in 8 bits") else of_weights
        return dataclasses.replace(measured(form, converted, *others), difference=off)

    monkeypatch.setattr(artifacts, "_measured", made_up)
    item = by_form(judge(exported, tmp_path, model_path, ["int8"]))["int8"]
    assert item.message.startswith(taken)
    content = (tmp_path / "lite" / "int8.tflite").read_bytes()
    assert (item.bytes, item.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    if taken.startswith("weights"):
        assert item.message.endswith("was off by -0.2000")


@pytest.mark.parametrize(
    ("difference", "full", "is_far"),
    [(0.008, 0.8, False), (-0.009, 0.8, True), (None, 0.8, False), (0.1, None, False), (0.2, 30.0, False)],
)
def test_a_form_strays_by_more_than_a_hundredth_of_the_metric(difference, full, is_far: bool) -> None:
    assert artifacts.strays(difference, full) == is_far


def test_a_model_that_cannot_be_run_is_named(
    exported, model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "_run_converter", lambda *_: artifacts.Converted(content=b"no model", message=""))
    item = by_form(judge(exported, tmp_path, model_path, ["float16"]))["float16"]
    assert item.message.startswith("cannot be run: ")
    assert (item.metrics, item.uri) == (None, None)


def test_the_process_says_why_not_in_its_last_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "samples.npz", x=np.zeros([2], np.float32))
    assert main("float16", str(tmp_path / "nothing"), str(tmp_path / "samples.npz"), str(tmp_path / "out")) == 1
    assert "SavedModel file does not exist" in capsys.readouterr().err.strip().splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_the_second_signature_is_there_only_when_asked_for(model_path: Path) -> None:
    assert set(tf.saved_model.load(str(model_path)).signatures) == {SIGNATURE, LITE}


def test_a_sequence_has_its_length_in_the_second_signature_and_any_in_the_first(tmp_path: Path) -> None:
    class Sum(tf_keras.Model):
        def call(self, inputs: dict[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
            """Add up the values. → [B, 1]."""
            del training
            return tf.reduce_sum(inputs["sequence_heat"][:, :, 0], axis=1, keepdims=True)

    features = [make_feature(name="heat", kind="sequence", of="numeric", length=3)]
    heat = make_feature_statistics(kind="sequence", nulls=0, mean=1.0, stddev=1.0)
    preprocessing = Preprocessing(features, make_statistics(heat=heat))
    labels = objective_of(make_label(name="y", kind="binary"))
    save_model(tmp_path / "model", features, preprocessing, Sum(), labels, lite=True)
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    for name, shape in ((SIGNATURE, [None, None]), (LITE, [1, 3])):
        assert loaded.signatures[name].structured_input_signature[1]["heat"].shape.as_list() == shape
    found = LiteModel(convert_model("float16", str(tmp_path / "model"), {})).predict(
        {"heat": np.float32([[9, np.nan, 2]])}
    )
    np.testing.assert_allclose(found, [tf.sigmoid(9.0)], atol=1e-5)


def test_numbers_and_images_alone_need_no_operations_of_tensorflow(tmp_path: Path) -> None:
    features = [
        make_feature(name="weight", kind="numeric"),
        make_feature(name="photo", kind="image", height=8, width=8, channels=1),
    ]
    weight = make_feature_statistics(kind="numeric", nulls=0, mean=10.0, stddev=4.0)
    preprocessing = Preprocessing(features, make_statistics(weight=weight))
    training = Training(model="cnn", epochs=1, batch_size=1, early_stopping_patience=0, hyperparameters={"filters": 4})
    chosen = Recipe.from_training(training, objective_of(make_label(name="y", kind="binary")))
    model = chosen.build_model(preprocessing.shape)
    save_model(tmp_path / "model", features, preprocessing, model, chosen.objective, lite=True)
    random = np.random.default_rng(0)
    raw = {
        "weight": random.normal(10, 4, 20).astype(np.float32),
        "photo": random.integers(0, 256, (20, 8, 8, 1), dtype=np.uint8),
    }
    content = convert_model("int8", str(tmp_path / "model"), raw)
    assert b"Flex" not in content
    expected = chosen.objective.scores(model(preprocessing({name: tf.constant(v) for name, v in raw.items()})))
    np.testing.assert_allclose(LiteModel(content).predict(raw), expected, atol=0.03)


@pytest.mark.parametrize("architecture", ["lstm", "gru"])
def test_a_recurrent_model_takes_one_example_at_a_time(architecture: str, tmp_path: Path) -> None:
    """TF Lite converts a loop over steps of a known size alone."""
    features = [make_feature(name="stops", kind="sequence", of="categorical", length=3)]
    top = tuple(ValueCount(value=value, count=1) for value in ("a", "b"))
    preprocessing = Preprocessing(features, make_statistics(stops=make_feature_statistics(kind="sequence", top=top)))
    training = Training(
        model=architecture, epochs=1, batch_size=1, early_stopping_patience=0, hyperparameters={"units": [4]}
    )
    chosen = Recipe.from_training(training, objective_of(make_label(name="y", kind="binary")))
    model = chosen.build_model(preprocessing.shape)
    save_model(tmp_path / "model", features, preprocessing, model, chosen.objective, lite=True)
    raw = {"stops": np.array([[b"a", b"b", b""], [b"b", b"new", b"a"], [b"", b"", b""]], object)}
    content = convert_model("float16", str(tmp_path / "model"), {})
    expected = chosen.objective.scores(model(preprocessing({"stops": tf.constant(raw["stops"])})))
    found = LiteModel(content, preprocessing.vocabulary).predict(raw)
    np.testing.assert_allclose(found, expected, atol=0.01)
