"""Bags against their definition in Python, their mean in NumPy, and out of stored models of each architecture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.trainer_documents import make_feature, make_feature_statistics, make_label, make_statistics
from trainer.features.bags import Bag
from trainer.features.preprocessing import Preprocessing
from trainer.models.bags import BagMean
from trainer.models.registry import find_architecture, read_hyperparameters
from trainer.objective.outputs import objective_of
from trainer.saved_model.model import StoredModel, save_model

TEXTS = ["red, green,,blue ", "", ",", "Straße Ünder 42-b", "ab", "☃ snow", "a  b\nc", "red"]


def bag(**options: Any) -> Bag:
    feature = make_feature(name="tags", kind="bag", **{"of": "values", **options})
    return Bag.of_feature(feature, 3)


def in_a_row(tokens: list[str], sizes: tuple[int, ...], separator: str) -> list[str]:
    """All n-grams; of a text that is too short for any, itself."""
    found = [separator.join(tokens[start : start + size]) for size in sizes for start in range(len(tokens) - size + 1)]
    return found or ([separator.join(tokens)] if tokens else [])


def parts_of(of: str, text: str, sizes: tuple[int, ...], delimiter: str = ",") -> list[str]:
    if of == "values":
        return [value.strip() for value in text.split(delimiter) if value.strip()]
    if of == "words":
        return in_a_row(re.findall(r"[^\W_]+", text.lower()), sizes, " ")
    return in_a_row(list(text.lower()), sizes, "")


def found_parts(asked: Bag, texts: list[str]) -> list[list[str]]:
    return [[part.decode() for part in parts] for parts in asked.parts(tf.constant(texts)).to_list()]


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        pytest.param({"of": "values"}, (), id="values"),
        pytest.param({"of": "values", "delimiter": " "}, (), id="by-spaces"),
        pytest.param({"of": "words"}, (1,), id="words"),
        pytest.param({"of": "words", "sizes": (1, 2)}, (1, 2), id="pairs-of-words"),
        pytest.param({"of": "characters"}, (3,), id="three-characters"),
        pytest.param({"of": "characters", "sizes": (2, 4)}, (2, 4), id="two-and-four-characters"),
    ],
)
def test_texts_are_taken_apart_as_defined(options: dict[str, Any], sizes: tuple[int, ...]) -> None:
    expected = [sorted(parts_of(options["of"], text, sizes, options.get("delimiter", ","))) for text in TEXTS]
    assert [sorted(parts) for parts in found_parts(bag(**options), TEXTS)] == expected


@settings(max_examples=60, deadline=None)
@example(text="a,b", sizes=(1,))
@given(text=st.text("ab1 ,;-äÖ", max_size=12), sizes=st.lists(st.integers(1, 5), min_size=1, unique=True).map(tuple))
def test_any_sizes_of_any_text(text: str, sizes: tuple[int, ...]) -> None:
    for of in ("words", "characters"):
        (found,) = found_parts(bag(of=of, sizes=sizes), [text])
        assert sorted(found) == sorted(parts_of(of, text, sizes))


def test_codes_are_hashes_and_0_after_the_last() -> None:
    """At most `length` of them, the first ones; equal values have equal codes wherever they stand."""
    codes = bag(hash_buckets=500, length=3).codes(tf.constant(["x,y,x,z", "", "y"])).numpy()
    (x, y) = 1 + tf.strings.to_hash_bucket_fast(["x", "y"], 500).numpy()
    assert codes.tolist() == [[x, y, x], [0, 0, 0], [y, 0, 0]]
    assert codes.dtype == np.int32


def test_a_bag_is_the_mean_of_its_embeddings() -> None:
    """Each part as often as it stands there; of none it is 0, and no gradient comes from the places without a part."""
    asked = bag(hash_buckets=7, length=4)
    layer = BagMean(asked, 2, name="mean")
    codes = tf.constant([[3, 5, 3, 0], [0, 0, 0, 0]], tf.int32)
    with tf.GradientTape() as tape:
        found = layer(codes)
        total = tf.reduce_sum(found)
    table = layer.trainable_variables[0]
    rows = table.numpy()
    np.testing.assert_allclose(found.numpy(), [(2 * rows[3] + rows[5]) / 3, [0, 0]], rtol=1e-6)
    gradient = tf.convert_to_tensor(tape.gradient(total, table)).numpy()
    np.testing.assert_allclose(gradient[[0, 3, 5]], [[0, 0], [2 / 3] * 2, [1 / 3] * 2], rtol=1e-6)


@pytest.mark.parametrize("architecture", ["dense", "wide_deep", "deep_cross"])
def test_a_stored_model_reads_texts_as_training_did(architecture: str, tmp_path: Path) -> None:
    """Of each architecture for tables; other parts give other answers, the same in other places the same one."""
    features = [
        make_feature(name="tags", kind="bag", of="values", hash_buckets=50),
        make_feature(name="title", kind="bag", of="characters", sizes=(2,), hash_buckets=50, length=8),
        make_feature(name="x", kind="numeric"),
    ]
    number = make_feature_statistics(kind="numeric", min=0, max=1, mean=0, stddev=1, quantiles=(0.0, 1.0))
    encode = Preprocessing(features, make_statistics(x=number))
    known = find_architecture(architecture)
    known.require_inputs(architecture, encode.shape)
    objective = objective_of(make_label(name="y", kind="binary"))
    tf.keras.utils.set_random_seed(1)
    model = known.build(encode.shape, objective.outputs, read_hyperparameters(known, {}))
    raw = {
        "tags": tf.constant(["a,b", "b, a", "", "c"]),
        "title": tf.constant(["Snow", "snow", "", "rain"]),
        "x": tf.constant([0.5, 0.5, 0.5, 0.5]),
    }
    save_model(tmp_path / "model", features, encode, model, objective)
    answers = StoredModel(tmp_path / "model", "gs://m/model").predict(raw)
    expected = objective.scores(model(encode(raw), training=False)).numpy()
    np.testing.assert_allclose(answers, expected, rtol=1e-6)
    assert answers[0] == pytest.approx(answers[1], rel=1e-6)
    assert len(set(np.round(answers, 9))) == 3
