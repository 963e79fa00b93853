"""Every architecture: built from the features alone, its gradients whole, stored, loaded, and the same afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.support.trainer_documents import make_feature, make_feature_statistics, make_label, make_statistics
from trainer.contract.documents import (
    Feature,
    Label,
    Training,
    ValueCount,
)
from trainer.errors import RequestError
from trainer.features.images import as_files
from trainer.features.preprocessing import Preprocessing
from trainer.models.dropout import SeededDropout
from trainer.models.registry import ARCHITECTURES, find_architecture, read_hyperparameters
from trainer.objective.outputs import objective_of
from trainer.saved_model.model import StoredModel, save_model
from trainer.training.keras_internals import seed_layers
from trainer.training.learning_rate import RatePlan
from trainer.training.model import compile_model
from trainer.training.recipe import Recipe

ROWS, SIDE = 6, 8
NAN = float("nan")
VALUES = tuple(ValueCount(value=value, count=9) for value in ("home", "cart", "help"))
TABLE = [
    make_feature(name="weight", kind="numeric"),
    make_feature(name="carrier", kind="categorical", embedding_dim=3),
]
SEQUENCES = [
    make_feature(name="pages", kind="sequence", of="categorical", length=3, embedding_dim=4),
    make_feature(name="heat", kind="sequence", of="numeric", length=3),
    make_feature(name="steps", kind="sequence", of="numeric", length=2, keep="first"),
]
IMAGE = [make_feature(name="photo", kind="image", height=SIDE, width=SIDE, channels=1)]
FEATURES = {("images",): [*TABLE, *IMAGE], ("sequences",): [*TABLE, *SEQUENCES], (): TABLE}
STATISTICS = make_statistics(
    weight=make_feature_statistics(kind="numeric", nulls=3, mean=10.0, stddev=4.0),
    carrier=make_feature_statistics(kind="categorical", nulls=0, top=VALUES),
    pages=make_feature_statistics(kind="sequence", nulls=0, top=VALUES),
    heat=make_feature_statistics(kind="sequence", nulls=2, mean=20.0, stddev=5.0),
    steps=make_feature_statistics(kind="sequence", nulls=0, mean=0.0, stddev=1.0),
)
SMALL = {
    "transformer": {"width": 8, "heads": 2, "blocks": 1, "dropout": 0.1},
    "lstm": {"units": "3,2"},
    "gru": {"units": 3},
}


def raw(reads: tuple[str, ...]) -> dict[str, tf.Tensor]:
    """Some rows, as a request has them."""
    random = np.random.default_rng(0)
    rows: dict[str, Any] = {
        "weight": random.normal(10, 4, ROWS).astype(np.float32),
        "carrier": np.array(["home", "cart", "help", "never", "", "home"]),
    }
    if "images" in reads:
        pixels = random.integers(0, 256, (ROWS, SIDE, SIDE, 1), dtype=np.uint8)
        rows["photo"] = as_files(tf.constant(pixels))
    if "sequences" in reads:
        pages = random.choice(["home", "cart", "help", "never"], (ROWS, 5))
        for row, length in enumerate((5, 4, 3, 2, 1, 0)):
            pages[row, length:] = ""
        rows["pages"] = pages
        rows["heat"] = np.where(pages == "", NAN, random.normal(20, 5, pages.shape)).astype(np.float32)
        rows["steps"] = random.normal(0, 1, (ROWS, 1)).astype(np.float32)
    return {name: tf.constant(values) for name, values in rows.items()}


QUANTILES = make_label(name="y", kind="regression", loss="quantile", quantiles=(0.1, 0.5, 0.9))
CLASSES = make_label(name="y", kind="multiclass", classes=3)


def recipe(name: str, label: Label = CLASSES, **hyperparameters: Any) -> Recipe:
    training = Training(
        model=name, epochs=1, batch_size=2, early_stopping_patience=0, hyperparameters={"hidden_units": 4}
    )
    training = Training(**{**vars(training), "hyperparameters": {**SMALL.get(name, {}), **hyperparameters}})
    return Recipe.from_training(training, objective_of(label))


def built(name: str, label: Label = CLASSES, **hyperparameters: Any):
    """Recipe, preprocessing and model."""
    chosen, preprocessing = recipe(name, label, **hyperparameters), Preprocessing(features_of(name), STATISTICS)
    chosen.require_inputs(preprocessing.shape)
    return chosen, preprocessing, chosen.build_model(preprocessing.shape)


def features_of(name: str) -> list[Feature]:
    return FEATURES[ARCHITECTURES[name].reads]


def scored_after_reload(chosen: Recipe, preprocessing: Preprocessing, model, folder: Path) -> tuple[Any, StoredModel]:
    """What the model says of some rows, and what was stored of it."""
    features = features_of(chosen.training.model)
    save_model(folder / "model", features, preprocessing, model, chosen.objective)
    rows = raw(ARCHITECTURES[chosen.training.model].reads)
    return chosen.objective.scores(model(preprocessing(rows), training=False)).numpy(), StoredModel(
        folder / "model", "m"
    )


def learn_once(chosen: Recipe, preprocessing: Preprocessing, model) -> None:
    """One step, after which no weight may be what it was."""
    encoded = preprocessing(raw(ARCHITECTURES[chosen.training.model].reads))
    with tf.GradientTape() as tape:
        loss = chosen.objective.loss()(
            chosen.objective.kind.targets(tf.constant([0, 1, 2, 0, 1, 2])), model(encoded, training=True)
        )
    gradients = tape.gradient(loss, model.trainable_variables)
    names = [variable.name for variable, found in zip(model.trainable_variables, gradients, strict=True)]
    missing = [name for name, found in zip(names, gradients, strict=True) if found is None]
    assert not missing
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert np.isfinite(tf.convert_to_tensor(gradient)).all(), variable.name
        variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))


def test_the_source_of_layers_is_not_rewritten_while_a_model_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """By AutoGraph, which takes longer than all the rest of it."""
    call, found = SeededDropout.call, []

    def note(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        found.append(tf.__internal__.autograph.control_status_ctx().status.name)
        return call(self, inputs, training)

    monkeypatch.setattr(SeededDropout, "call", note)
    built("dense", dropout=0.5)
    assert set(found) == {"DISABLED"}


LIGHT = sorted({name for name, known in ARCHITECTURES.items() if not known.grows} - {"transfer", "module"})
SLOW = {"lstm": pytest.mark.long}  # gru is built alike


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, ())) for name in LIGHT])
def test_it_says_the_same_after_it_was_stored_and_loaded(name: str, tmp_path: Path) -> None:
    chosen, preprocessing, model = built(name)
    learn_once(chosen, preprocessing, model)
    expected, stored = scored_after_reload(chosen, preprocessing, model, tmp_path)
    assert set(stored.signature.inputs) == {feature.name for feature in features_of(name)}
    assert stored.lists == {feature.name for feature in features_of(name) if feature.kind == "sequence"}
    assert expected.shape == (ROWS, 3)
    assert np.ptp(expected[:, 0]) > 0
    np.testing.assert_allclose(stored.predict(raw(ARCHITECTURES[name].reads)), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, ())) for name in LIGHT])
def test_each_answers_with_quantiles_that_do_not_cross(name: str, tmp_path: Path) -> None:
    chosen, preprocessing, model = built(name, QUANTILES)
    learn_once(chosen, preprocessing, model)
    expected, stored = scored_after_reload(chosen, preprocessing, model, tmp_path)
    found = stored.predict(raw(ARCHITECTURES[name].reads))
    assert stored.answers == chosen.objective.kind.answers
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["dense", "wide_deep", "deep_cross", "cnn", "conv1d"])
def test_several_members_answer_with_their_mean_in_one_stored_model(name: str, tmp_path: Path) -> None:
    chosen, preprocessing, model = built(name, members=3, dropout=0.2)
    learn_once(chosen, preprocessing, model)
    expected, stored = scored_after_reload(chosen, preprocessing, model, tmp_path)
    rows = raw(ARCHITECTURES[name].reads)
    each = tf.nn.softmax(model(preprocessing(rows), training=False)).numpy()  # [B, members, classes]
    assert each.shape == (ROWS, 3, 3)
    assert np.ptp(each, axis=1).max() > 0.001
    np.testing.assert_allclose(expected, each.mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(stored.predict(rows), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("features", [TABLE, TABLE[:1], TABLE[1:]], ids=["both", "first", "second"])
def test_a_linear_model_adds_up_column_by_column(features: list[Feature]) -> None:
    """What one column changes of a logit is the same whatever the others are; without any weights the bias is left."""
    preprocessing = Preprocessing(features, STATISTICS)
    model = recipe("linear").build_model(preprocessing.shape)
    random = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(random.normal(size=variable.shape))
    bias = next(each for each in model.trainable_variables if each.name.startswith("wide_numeric/bias"))
    widths = preprocessing.shape.numbers, len(preprocessing.shape.categories)
    zeros = {"numeric": tf.zeros([3, widths[0]]), "categorical": tf.zeros([3, widths[1]], tf.int32)}
    first = {**zeros, "numeric": zeros["numeric"] + 2.0}
    second = {**zeros, "categorical": zeros["categorical"] + 1}
    both = {**first, "categorical": second["categorical"]}
    none, one, other, all_ = (model(each).numpy() for each in (zeros, first, second, both))
    np.testing.assert_allclose(all_ - other, one - none, atol=1e-5)
    for variable in model.trainable_variables:
        if variable is not bias:
            variable.assign(tf.zeros_like(variable))
    np.testing.assert_allclose(model(both), np.tile(bias.numpy(), (3, 1)), atol=1e-6)


def test_members_answer_with_quantiles_that_do_not_cross() -> None:
    chosen, preprocessing, model = built("wide_deep", QUANTILES, members=3)
    learn_once(chosen, preprocessing, model)
    found = chosen.objective.scores(model(preprocessing(raw(())), training=False)).numpy()
    assert found.shape == (ROWS, 3)
    assert (np.diff(found, axis=1) >= 0).all()


@pytest.mark.parametrize("members", [1, 3])
def test_weights_decay_and_biases_do_not(members: int) -> None:
    """A step without a gradient takes the learning rate times the decay away."""
    chosen, _, model = built("wide_deep", members=members, learning_rate=0.1, weight_decay=0.5)
    compile_model(chosen, model, RatePlan(peak=0.1, warmup_steps=0, changes=False))
    for variable in model.trainable_variables:
        variable.assign(tf.ones_like(variable))
    model.optimizer.apply_gradients([(tf.zeros_like(each), each) for each in model.trainable_variables])
    for variable in model.trainable_variables:
        kept = 1.0 if "/bias" in variable.name else 0.95
        np.testing.assert_allclose(variable.numpy(), kept, rtol=1e-5, err_msg=variable.name)


@pytest.mark.parametrize("name", ["dense", "wide_deep", "deep_cross"])
def test_a_number_is_read_in_intervals_too(name: str) -> None:
    """Between the quantiles -1, 0, 1 and 3: far outside nothing more changes in them."""
    statistics = make_statistics(
        weight=make_feature_statistics(kind="numeric", mean=10.0, stddev=4.0, quantiles=(6.0, 10.0, 10.0, 14.0, 22.0)),
        carrier=STATISTICS.splits["train"].features["carrier"],
    )
    preprocessing = Preprocessing(TABLE, statistics)
    assert preprocessing.shape.quantiles == ((-1.0, 0.0, 1.0, 3.0),)
    chosen = recipe(name, numeric_bins=20)
    layers = [layer for layer in chosen.build_model(preprocessing.shape).submodules if layer.name == "intervals"]
    numbers = tf.constant([[-9.0], [-0.5], [1.0], [2.0], [1e30]])
    np.testing.assert_allclose(
        layers[0](numbers), [[0, 0, 0], [0.5, 0, 0], [1, 1, 0], [1, 1, 0.5], [1, 1, 1]], atol=1e-6
    )
    two = recipe(name, numeric_bins=2).build_model(preprocessing.shape)
    assert next(layer for layer in two.submodules if layer.name == "intervals").intervals == 2
    none = recipe(name).build_model(preprocessing.shape)
    assert not [layer for layer in none.submodules if layer.name == "intervals"]


@pytest.mark.parametrize(
    ("name", "hyperparameters"),
    [
        ("lstm", {}),
        ("gru", {}),
        ("transformer", {}),
        ("conv1d", {}),
        ("conv1d", {"causal": True, "filters": [4, 4, 4]}),
        ("conv1d", {"dilated": False, "kernel_size": 2}),
    ],
)
def test_what_fills_up_a_sequence_changes_nothing(name: str, hyperparameters: dict[str, Any]) -> None:
    _, preprocessing, model = built(name, **hyperparameters)

    def answers(**changes: tf.Tensor) -> np.ndarray:
        return tf.nn.softmax(model(preprocessing({**raw(("sequences",)), **changes}), training=False)).numpy()

    rows, plain = raw(("sequences",)), answers()
    longer = answers(
        pages=tf.concat([rows["pages"], tf.fill([ROWS, 3], "")], axis=1),
        heat=tf.concat([rows["heat"], tf.fill([ROWS, 9], NAN)], axis=1),
    )
    np.testing.assert_allclose(longer, plain, atol=1e-6)
    # The first two rows are longer than what is read: only their last steps count.
    earlier = answers(pages=tf.concat([[["help"]] * 2 + [[""]] * (ROWS - 2), rows["pages"]], axis=1))
    np.testing.assert_allclose(earlier[:2], plain[:2], atol=1e-6)


def answers_to_heat(values: list[list[float]], **hyperparameters: Any) -> np.ndarray:
    """What a `conv1d` of numbers alone says of sequences, its weights the same in each call."""
    feature = make_feature(name="heat", kind="sequence", of="numeric", length=16)
    preprocessing = Preprocessing([feature], STATISTICS)
    seed_layers(1)
    model = recipe("conv1d", filters=[4, 4, 4], kernel_size=2, activation="tanh", **hyperparameters)
    return model.build_model(preprocessing.shape)(preprocessing({"heat": tf.constant(values)})).numpy()


def test_a_dilated_convolution_sees_farther_and_a_causal_one_the_last_step() -> None:
    """Three layers of two steps each: 4 steps back as neighbours, 8 dilated; the last step reads off no others."""
    heat = np.random.default_rng(0).normal(20, 5, 16).astype(np.float32)
    rows = np.tile(heat, (17, 1))
    for step in range(16):
        rows[step, step] += 5  # one step is another in each row but the last

    def seen(**hyperparameters: Any) -> list[int]:
        answers = answers_to_heat(rows.tolist(), causal=True, **hyperparameters)
        return [step for step in range(16) if np.abs(answers[step] - answers[-1]).max() > 1e-6]

    assert seen(dilated=False) == [12, 13, 14, 15]
    assert seen(dilated=True) == [8, 9, 10, 11, 12, 13, 14, 15]


def test_recurrent_layers_read_both_ways_when_asked() -> None:
    chosen, preprocessing, model = built("gru", bidirectional="true", units=[4])
    assert model.get_layer("both_pages_heat_0").output_shape == (None, 8)
    learn_once(chosen, preprocessing, model)


def test_sequences_of_one_length_are_read_side_by_side() -> None:
    model = built("lstm", units=4)[2]
    names = {layer.name for layer in model.layers}
    assert {"steps_pages_heat", "recurrent_pages_heat_0", "recurrent_steps_0"} <= names
    assert model.get_layer("steps_pages_heat").output_shape == (None, 3, 4 + 2)


@pytest.mark.parametrize(
    ("name", "features", "words"),
    [
        (
            "dense",
            SEQUENCES,
            "does not read sequences, and 'pages' is one.*Set training.model to conv1d or gru or lstm or tr",
        ),
        ("lstm", TABLE, "there is no sequence.*Set training.model to boosted_trees or deep_cross"),
        ("cnn", [*IMAGE, *SEQUENCES], "does not read sequences, and 'pages' is one.*Change the features"),
    ],
)
def test_features_that_an_architecture_does_not_read_are_refused(name: str, features, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        recipe(name).require_inputs(Preprocessing(features, STATISTICS).shape)


@pytest.mark.parametrize("name", sorted(ARCHITECTURES.keys() - {"random_forest"}))
def test_an_unknown_hyperparameter_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(RequestError, match=r"unknown name 'learning_rat'.*learning_rate.*Did you mean 'learning_rate'"):
        read_hyperparameters(find_architecture(name), {"learning_rat": 0.1})


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("lstm", {"units": []}, "one or more whole numbers"),
        ("gru", {"bidirectional": "perhaps"}, "true or false"),
        ("transformer", {"heads": 0}, "a whole number from 1 to 64"),
        ("transfer", {"fine_tune_from": 1.5}, r"a number in \[0, 1\]"),
        ("module", {"fine_tune_rate": 0}, "a number above 0, at most 1"),
        ("deep_cross", {"cross_layers": 0}, "a whole number from 1 to 32"),
    ],
)
def test_a_hyperparameter_out_of_its_range_is_refused(name: str, wrong: dict, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        read_hyperparameters(find_architecture(name), wrong)
