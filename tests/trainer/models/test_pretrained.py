"""Layers that were trained elsewhere: taken from a path, frozen or fine tuned, and whole in the stored model."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests.support.refusals import refuses
from tests.support.trainer_documents import make_feature, make_label, make_statistics
from trainer.contract.documents import Training
from trainer.errors import DataError, RequestError
from trainer.features.images import as_files
from trainer.features.preprocessing import Preprocessing
from trainer.models import pretrained
from trainer.models.backbones import BACKBONES, recognize_weights
from trainer.models.pretrained import Pretrained, pretrained_variables
from trainer.objective.outputs import objective_of
from trainer.saved_model.model import StoredModel, save_model
from trainer.training.keras_internals import seed_layers
from trainer.training.learning_rate import RatePlan
from trainer.training.model import FineTuningAdam, compile_model
from trainer.training.recipe import Recipe

ROWS, SIDE = 8, 6
NOTHING = make_statistics()
PIXELS = np.random.default_rng(0).integers(0, 256, (ROWS, SIDE, SIDE, 1), dtype=np.uint8)
LABELS = tf.constant([0.0, 1.0] * (ROWS // 2))


class Small(tf.Module):
    """Colours mixed by a matrix, named through a table: what a module of TensorFlow Hub may be made of."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = tf.Variable(np.linspace(-1, 1, 15).reshape(3, 5).astype(np.float32))
        self.variables_ = [self.mix]
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant(["scale"]), tf.constant([2.0])), 0.0
        )

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.float32)])
    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        """Mix. [B, h, w, 3] → [B, 5]."""
        return tf.reduce_mean(images, axis=[1, 2]) @ self.mix * self.table.lookup(tf.constant("scale"))


class Words(tf.Module):
    """Texts by their lengths and first letters: what a module of TensorFlow Hub for texts may be."""

    def __init__(self) -> None:
        super().__init__()
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([1.0, -1.0])), 0.0
        )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts: tf.Tensor) -> tf.Tensor:
        """Look at them. [B] → [B, 2]."""
        lengths = tf.cast(tf.strings.length(texts), tf.float32) / 10
        return tf.stack([lengths, self.table.lookup(tf.strings.substr(texts, 0, 1))], axis=1)


class Holder(tf.train.Checkpoint):
    """What a reusable SavedModel has: a call, its variables, and which of them are trained."""

    def __init__(self, inner: Small) -> None:
        super().__init__()
        self.inner, self.__call__ = inner, inner.__call__
        self.variables, self.trainable_variables = [inner.mix], [inner.mix]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module's folder."""
    folder = tmp_path_factory.mktemp("modules") / "small"
    tf.saved_model.save(Holder(Small()), str(folder))
    return folder


def recipe(model: str, **hyperparameters: Any) -> Recipe:
    training = Training(
        model=model,
        epochs=1,
        batch_size=4,
        early_stopping_patience=0,
        hyperparameters={"hidden_units": 4, "learning_rate": 0.1, **hyperparameters},
    )
    return Recipe.from_training(training, objective_of(make_label(name="y", kind="binary")))


def preprocessing() -> Preprocessing:
    return Preprocessing([make_feature(name="photo", kind="image", height=SIDE, width=SIDE, channels=1)], NOTHING)


def inputs() -> dict[str, tf.Tensor]:
    return preprocessing()({"photo": tf.constant(PIXELS)})


def fitted(chosen: Recipe, steps: int = 2, epochs: int = 1):
    """A model that took some steps through `fit`, from the same weights each time."""
    seed_layers(1)
    model = chosen.build_model(preprocessing().shape)
    compile_model(chosen, model, RatePlan(peak=0.1, warmup_steps=0, changes=False, total_steps=steps))
    model.train_step = tf.autograph.experimental.do_not_convert(model.train_step)  # as a training's
    data = tf.data.Dataset.from_tensor_slices((inputs(), LABELS)).repeat().batch(ROWS).take(steps)
    model.fit(data, epochs=epochs, verbose=0)
    return model


def mix_of(model: tf_keras.Model) -> np.ndarray:
    (layer,) = (layer for layer in model.submodules if isinstance(layer, Pretrained))
    return layer.variables[0].numpy()


def test_a_module_is_frozen_unless_it_is_fine_tuned(path: Path) -> None:
    before = Small().mix.numpy()
    frozen = fitted(recipe("module", module=str(path)))
    assert not pretrained_variables(frozen)
    np.testing.assert_array_equal(mix_of(frozen), before)
    tuned = fitted(recipe("module", module=str(path), fine_tune_from=0))
    assert [variable.shape for variable in pretrained_variables(tuned)] == [(3, 5)]
    assert np.abs(mix_of(tuned) - before).max() > 1e-3


def test_fine_tuning_waits_and_then_goes_slowly(path: Path) -> None:
    def moved(steps: int, **hyperparameters: Any) -> float:
        model = fitted(recipe("module", module=str(path), **hyperparameters), steps=steps)
        return float(np.abs(mix_of(model) - Small().mix.numpy()).max())

    assert moved(1, fine_tune_from=0, fine_tune_rate=1) == pytest.approx(0.1, rel=1e-3)  # Adam's first step
    assert moved(1, fine_tune_from=0, fine_tune_rate=0.25) == pytest.approx(0.025, rel=1e-3)
    model = fitted(recipe("module", module=str(path), fine_tune_from=0.5), steps=4, epochs=1)
    assert isinstance(model.optimizer, FineTuningAdam)
    assert moved(2, fine_tune_from=0.9) == 0.0
    assert 0 < moved(2, fine_tune_from=0.5) < 0.02


def test_the_stored_model_is_whole_without_the_modules_folder(path: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    shutil.copytree(path, away)
    chosen = recipe("module", module=str(away), fine_tune_from=0)
    model = fitted(chosen)
    features = [make_feature(name="photo", kind="image", height=SIDE, width=SIDE, channels=1)]
    save_model(tmp_path / "model", features, preprocessing(), model, chosen.objective)
    shutil.rmtree(away)
    expected = chosen.objective.scores(model(inputs(), training=False)).numpy()
    shutil.move(tmp_path / "model", tmp_path / "moved")
    found = StoredModel(tmp_path / "moved", "m").predict({"photo": as_files(tf.constant(PIXELS))})
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_a_module_is_trained_by_replicas_and_copied_to_one_device(path: Path) -> None:
    chosen = recipe("module", module=str(path), fine_tune_from=0)
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = chosen.build_model(preprocessing().shape)
        compile_model(chosen, model, RatePlan(peak=0.1, warmup_steps=0, changes=False, total_steps=1))
    model.fit(tf.data.Dataset.from_tensors((inputs(), LABELS)), verbose=0)
    assert np.abs(mix_of(model) - Small().mix.numpy()).max() == pytest.approx(0.01, rel=1e-3)
    copied = chosen.copy_model(model, preprocessing().shape)
    np.testing.assert_array_equal(copied(inputs(), training=False), model(inputs(), training=False))


def test_a_module_reads_texts_too(tmp_path: Path) -> None:
    module = Words()
    tf.saved_model.save(module, str(tmp_path / "words"))
    chosen = recipe("module", text_module=str(tmp_path / "words"))
    features = [make_feature(name="note", kind="text")]
    encode = Preprocessing(features, NOTHING)
    chosen.require_inputs(encode.shape)
    model = chosen.build_model(encode.shape)
    compile_model(chosen, model, RatePlan(peak=0.05, warmup_steps=0, changes=False, total_steps=30))
    notes = tf.constant(["a fox", "boxes", "", "and now", "but"] * 8)
    labels = tf.constant([1.0, 0.0, 0.0, 1.0, 0.0] * 8)
    model.fit(tf.data.Dataset.from_tensors((encode({"note": notes}), labels)).repeat(30), verbose=0)
    save_model(tmp_path / "model", features, encode, model, chosen.objective)
    shutil.rmtree(tmp_path / "words")
    found = StoredModel(tmp_path / "model", "m").predict({"note": notes})
    np.testing.assert_array_equal(found > 0.5, labels == 1)
    expected = chosen.objective.scores(model(encode({"note": notes}), training=False))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_a_module_that_is_not_there_or_is_none_is_named(path: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"module is missing.*Set training\.hyperparameters\.module"):
        recipe("module").require_inputs(preprocessing().shape)
    with pytest.raises(RequestError, match=r"text_module is missing"):
        recipe("module").require_inputs(Preprocessing([make_feature(name="note", kind="text")], NOTHING).shape)
    with refuses(DataError, where="nowhere", found="nothing", expected="folder"):
        recipe("module", module=str(tmp_path / "nowhere")).build_model(preprocessing().shape)
    with refuses(DataError, found="no SavedModel"):
        recipe("module", module=str(tmp_path)).build_model(preprocessing().shape)
    scalar = tf.Module()
    scalar.f = tf.function(lambda x: tf.reduce_sum(x), input_signature=[tf.TensorSpec([None, SIDE, SIDE, 3])])
    tf.saved_model.save(scalar, str(tmp_path / "scalar"), signatures={"default": scalar.f})
    with refuses(DataError, found="()", expected="[batch, n]"):
        recipe("module", module=str(tmp_path / "scalar")).build_model(preprocessing().shape)
    text = tf.Module()
    text.f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(text, str(tmp_path / "text"), signatures={"default": text.f})
    with refuses(DataError, found="float32 (None, 6, 6, 3)"):
        recipe("module", module=str(tmp_path / "text")).build_model(preprocessing().shape)


class Bucket:
    """Storage with one folder; counts what is taken from it."""

    taken: list[str]

    def __init__(self, folder: Path) -> None:
        self.folder, self.taken = folder, []

    def __call__(self) -> Bucket:
        """Stand in for the class."""
        return self

    def download(self, uri: str, path: Path) -> bool:
        """Copy a file."""
        self.taken.append(uri)
        found = self.folder / Path(uri).name
        return found.is_file() and bool(shutil.copy(found, path))

    def download_folder(self, uri: str, path: Path) -> int:
        """Copy the folder."""
        self.taken.append(uri)
        return len(list(shutil.copytree(self.folder, path).iterdir())) if uri.endswith("small") else 0


def test_a_path_on_storage_is_fetched_once(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket(path)
    monkeypatch.setattr(pretrained, "Storage", bucket)
    monkeypatch.setattr(pretrained, "_copies", lambda: tmp_path)
    for _ in range(2):
        model = recipe("module", module="gs://b/small").build_model(preprocessing().shape)
        np.testing.assert_array_equal(mix_of(model), Small().mix.numpy())
        assert pretrained.fetch_file("gs://b/saved_model.pb").read_bytes() == (path / "saved_model.pb").read_bytes()
    assert sorted(bucket.taken) == ["gs://b/saved_model.pb", "gs://b/small"]
    for fetch in (pretrained.fetch_file, pretrained.fetch_folder):
        with refuses(DataError, where="gs://b/nowhere", found="nothing"):
            fetch("gs://b/nowhere")


def saved_weights(folder: Path, backbone: str = "densenet121") -> Path:
    """A backbone's weights, made up."""
    path = folder / f"{backbone}_notop.h5"
    BACKBONES[backbone].build_network().save_weights(str(path))
    return path


def transfer_is_stored_whole(tmp_path: Path, **hyperparameters: Any) -> tf_keras.Model:
    """Checks that a model says the same after it was stored and loaded, and without the file of weights."""
    weights = saved_weights(tmp_path, hyperparameters.get("backbone", "densenet121"))
    chosen = recipe("transfer", weights=str(weights), **hyperparameters)
    model = chosen.build_model(preprocessing().shape)
    features = [make_feature(name="photo", kind="image", height=SIDE, width=SIDE, channels=1)]
    save_model(tmp_path / "model", features, preprocessing(), model, chosen.objective)
    weights.unlink()
    expected = chosen.objective.scores(model(inputs(), training=False)).numpy()
    found = StoredModel(tmp_path / "model", "m").predict({"photo": as_files(tf.constant(PIXELS))})
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    return model


@pytest.fixture
def shallow(monkeypatch: pytest.MonkeyPatch) -> None:
    """DenseNet with a layer per block instead of 6, 12, 24 and 16: the same code in a second instead of twenty."""

    def build(**wanted: Any) -> tf_keras.Model:
        return tf_keras.src.applications.densenet.DenseNet(blocks=[1, 1, 1, 1], **wanted)

    monkeypatch.setattr(tf_keras.applications, "DenseNet121", build)


def test_transfer_takes_its_weights_from_a_path_and_is_stored_whole(shallow: None, tmp_path: Path) -> None:
    model = transfer_is_stored_whole(tmp_path)
    assert not pretrained_variables(model)
    assert model.get_layer("enlarge_photo").output_shape == (None, 32, 32, 3)


def test_transfer_needs_its_weights(shallow: None) -> None:
    """From random numbers it learns nothing: its batch normalisation keeps the statistics that it came with."""
    with refuses(RequestError, found="weights", way_out="training.hyperparameters.weights"):
        recipe("transfer", fine_tune_from=0).require_inputs(preprocessing().shape)


def test_transfer_keeps_its_statistics_while_it_is_tuned(shallow: None, tmp_path: Path) -> None:
    model = fitted(recipe("transfer", weights=str(saved_weights(tmp_path)), fine_tune_from=0), steps=1)
    assert len(pretrained_variables(model)) > 10
    means = [variable for variable in model.variables if "moving_mean" in variable.name]
    assert means
    assert not any(mean.numpy().any() for mean in means)


# Its trainable weights without the top, by https://keras.io/api/applications/; the large ones take 20 seconds each.
SIZES = {
    "densenet121": 6_953_856,
    "resnet50": 23_534_592,
    "efficientnetv2_b0": 5_858_704,
    "mobilenetv3_small": 927_008,
    "mobilenetv3_large": 2_971_952,
}
EACH = [pytest.param(name, marks=[pytest.mark.long] if name != "mobilenetv3_small" else []) for name in BACKBONES]


@pytest.mark.parametrize("name", EACH)
def test_a_backbone_itself_is_stored_whole(name: str, tmp_path: Path) -> None:
    model = transfer_is_stored_whole(tmp_path, fine_tune_from=0.5, backbone=name)
    assert sum(int(np.prod(variable.shape)) for variable in pretrained_variables(model)) == SIZES[name]


@pytest.mark.parametrize("name", EACH)
def test_each_backbone_is_told_by_its_file_of_weights(name: str, tmp_path: Path) -> None:
    weights = saved_weights(tmp_path, name)
    assert recognize_weights(weights) == name
    other = next(item for item in ("mobilenetv3_small", "mobilenetv3_large") if item != name)
    words = rf"notop\.h5: weights of {BACKBONES[name].title}\. Expected those of {BACKBONES[other].title}"
    with pytest.raises(DataError, match=rf"{words}.*Set the hyperparameter backbone to {name}"):
        recipe("transfer", weights=str(weights), backbone=other).build_model(preprocessing().shape)


@pytest.mark.long
@pytest.mark.parametrize("name", BACKBONES)
def test_a_backbone_is_frozen_or_tuned(name: str, tmp_path: Path) -> None:
    """Tuned, its kernels move and its statistics stay."""
    weights, before = str(saved_weights(tmp_path, name)), {}
    for start in (1, 0):
        chosen = recipe("transfer", weights=weights, backbone=name, fine_tune_from=start, activation="tanh")
        model = fitted(chosen, steps=1)
        (eyes,) = (layer for layer in model.submodules if isinstance(layer, Pretrained))
        before[start] = {variable.name: variable.numpy() for variable in eyes.variables}
    moved = {key for key, value in before[1].items() if np.abs(value - before[0][key]).max() > 0}
    assert len(moved) > 10
    assert not any("moving_" in key for key in moved)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("densenet121", [(1 - 0.485) / 0.229, (0 - 0.456) / 0.224, (0.2 - 0.406) / 0.225]),
        ("resnet50", [51 - 103.939, 0 - 116.779, 255 - 123.68]),  # blue first
        ("efficientnetv2_b0", [255, 0, 51]),
        ("mobilenetv3_large", [255, 0, 51]),
    ],
)
def test_a_backbone_gets_colours_as_it_was_trained_on(name: str, expected: list[float]) -> None:
    """The last two scale by themselves."""
    red = tf.constant([255.0, 0.0, 51.0], shape=[1, 1, 1, 3])
    np.testing.assert_allclose(BACKBONES[name].prepare(red)[0, 0, 0], expected, rtol=1e-5)


def test_weights_of_another_network_are_refused(shallow: None, tmp_path: Path) -> None:
    other = tf_keras.Sequential([tf_keras.Input([2]), tf_keras.layers.Dense(1)])
    other.save_weights(str(tmp_path / "other.h5"))
    with refuses(DataError, where="other.h5", found="DenseNet121", expected="HDF5"):
        recipe("transfer", weights=str(tmp_path / "other.h5")).build_model(preprocessing().shape)
