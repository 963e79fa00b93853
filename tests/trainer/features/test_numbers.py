"""Transforms of numbers, against their definitions in NumPy, with missing values, and out of a stored model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.held_numbers import hold
from tests.support.refusals import refuses
from tests.support.trainer_documents import make_feature, make_feature_statistics, make_label, make_statistics
from trainer.contract.documents import FeatureStatistics, ValueCount
from trainer.errors import DataError
from trainer.features.numbers import moments
from trainer.features.preprocessing import Preprocessing
from trainer.objective.outputs import objective_of
from trainer.saved_model.model import StoredModel, save_model

NAN = float("nan")
STEPS = np.linspace(0, 1, 21)
TRAINED = np.random.default_rng(7).lognormal(3, 1.5, 5000)
ASKED = np.array([0.0, 0.5, 3.0, 20.0, 20.5, 400.0, 1e5, -3.0], np.float32)


def found_in(values: np.ndarray, nulls: int = 3) -> FeatureStatistics:
    return make_feature_statistics(
        kind="numeric",
        nulls=nulls,
        min=float(values.min()),
        max=float(values.max()),
        mean=float(values.mean()),
        stddev=float(values.std()),
        quantiles=tuple(np.quantile(values, STEPS).tolist()),
    )


def encode(values: np.ndarray, found: FeatureStatistics, **options: Any) -> dict[str, tf.Tensor]:
    preprocessing = Preprocessing([make_feature(name="x", kind="numeric", **options)], make_statistics(x=found))
    return preprocessing({"x": tf.constant(values, tf.float32)})


def log1p(values: np.ndarray) -> np.ndarray:
    return np.log1p(np.maximum(values, TRAINED.min()))


def ranks(values: np.ndarray) -> np.ndarray:
    return np.interp(values, np.quantile(TRAINED, STEPS), STEPS)


@pytest.mark.parametrize(
    ("options", "definition"),
    [
        pytest.param({"transform": "log1p"}, log1p, id="log1p"),
        pytest.param({"transform": "clip", "low": 1, "high": 50}, lambda x: np.clip(x, 1, 50), id="clip"),
        pytest.param(
            {"transform": "clip"}, lambda x: np.clip(x, *np.quantile(TRAINED, [0.05, 0.95])), id="clip-by-the-training"
        ),
        pytest.param({"transform": "quantile"}, ranks, id="quantile"),
    ],
)
def test_a_transform_is_its_definition_in_numpy(options: dict[str, Any], definition: Any) -> None:
    raw = encode(ASKED, found_in(TRAINED), normalize=False, missing="zero", **options)["numeric"].numpy()
    np.testing.assert_allclose(raw[:, 0], definition(ASKED), rtol=2e-5, atol=2e-6)
    missing = encode(np.array([NAN, -1e38]), found_in(TRAINED), normalize=False, missing="zero", **options)["numeric"]
    zero = definition(np.zeros(1))[0]
    np.testing.assert_allclose(missing, [[zero, 1], [zero, 1]], rtol=2e-5, atol=2e-6)
    known = definition(np.quantile(TRAINED, STEPS))
    mean, deviation = moments(known.tolist())
    normalised = encode(ASKED, found_in(TRAINED), **options)["numeric"].numpy()
    expected = hold((definition(ASKED) - mean) / deviation, *((known[[0, -1]] - mean) / deviation))
    np.testing.assert_allclose(normalised[:, 0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(encode(np.array([NAN]), found_in(TRAINED), **options)["numeric"], [[0, 1]], atol=1e-6)


def test_numbers_are_as_they_are_where_training_had_some_and_are_held_near_them_elsewhere() -> None:
    heights = np.random.default_rng(3).normal(170, 10, 5000)
    asked = np.array([heights.min(), 150.0, 170.0, heights.max(), 17_000.0, -1e30, np.inf])
    held = encode(asked, found_in(heights))["numeric"].numpy()[:, 0]
    z = (asked - heights.mean()) / heights.std()
    np.testing.assert_allclose(held[:4], z[:4], rtol=1e-5, atol=1e-5)
    assert held[4] == pytest.approx(z[3] + np.log1p(z[4] - z[3]), rel=1e-5)
    assert -80 < held[5] < -70
    assert held[6] == np.inf
    step = heights.std() / 100
    near = encode(heights.max() + step * np.arange(4), found_in(heights))["numeric"].numpy()[:, 0]
    np.testing.assert_allclose(np.diff(near), 0.01, rtol=0.05)  # no corner
    as_it_comes = encode(asked, found_in(heights), normalize=False)["numeric"].numpy()[:, 0]
    np.testing.assert_allclose(as_it_comes, asked.astype(np.float32), rtol=1e-6)


def test_a_stand_in_for_missing_numbers_is_one_that_training_had() -> None:
    heights = np.random.default_rng(3).normal(170, 10, 5000)
    missing = encode(np.array([NAN, 0.0]), found_in(heights), missing="zero")["numeric"].numpy()[:, 0]
    np.testing.assert_allclose(missing, -heights.mean() / heights.std(), rtol=1e-5)


def test_of_a_number_that_was_always_the_same_another_counts_by_the_logarithm_of_its_distance() -> None:
    held = encode(np.array([5.0, 6.0, 4.0, 1e6]), found_in(np.full(9, 5.0)))["numeric"].numpy()[:, 0]
    np.testing.assert_allclose(held, [0, np.log(2), -np.log(2), np.log1p(1e6 - 5)], rtol=1e-5)


def test_normalised_logarithms_have_about_the_mean_0_and_the_deviation_1() -> None:
    encoded = encode(TRAINED, found_in(TRAINED), transform="log1p")["numeric"].numpy()[:, 0]
    assert abs(encoded.mean()) < 0.1
    assert abs(encoded.std() - 1) < 0.2


def test_equal_quantiles_are_one_rank_in_the_middle() -> None:
    many_zeros = np.concatenate([np.zeros(5000), TRAINED])
    encoded = encode(np.array([0.0]), found_in(many_zeros), transform="quantile", normalize=False)["numeric"].numpy()
    assert encoded[0, 0] == pytest.approx(0.25, abs=0.03)


@settings(max_examples=30, deadline=None)
@example(values=[0.0], trained=[0.0, 1e-45], transform="quantile")
@example(values=[0.0, 1.0], trained=[0.0, 1e-45], transform="clip")
@given(
    values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20),
    trained=st.lists(st.floats(-0.875, 1e6, width=32), min_size=2, max_size=40),
    transform=st.sampled_from(["log1p", "clip", "quantile"]),
)
def test_whatever_comes_is_finite_and_the_order_stays(
    values: list[float], trained: list[float], transform: str
) -> None:
    encoded = encode(np.sort(values), found_in(np.array(trained)), transform=transform)["numeric"].numpy()[:, 0]
    assert np.isfinite(encoded).all()
    assert (np.diff(encoded) >= -1e-4).all()


@pytest.mark.parametrize(
    ("options", "boundaries"),
    [
        pytest.param({"boundaries": (1.0, 20.0, 20.5)}, [1.0, 20.0, 20.5], id="boundaries"),
        pytest.param({"buckets": 4}, np.quantile(TRAINED, [0.25, 0.5, 0.75]), id="buckets"),
        pytest.param({}, np.quantile(TRAINED, np.arange(1, 10) / 10), id="ten"),
    ],
)
def test_buckets_are_numpys_digitize_with_an_id_for_missing(options: dict[str, Any], boundaries: list[float]) -> None:
    encoded = encode(np.append(ASKED, [NAN, -1e38]), found_in(TRAINED), transform="buckets", **options)
    expected = 2 + np.digitize(ASKED, np.array(boundaries, np.float32))
    assert encoded["categorical"].numpy()[:, 0].tolist() == [*expected, 0, 0]
    assert encoded["numeric"].shape == (10, 0)


def test_the_logarithm_of_minus_one_is_refused() -> None:
    with refuses(DataError, where="'x'", found="-1 in train", expected="above -1"):
        encode(ASKED, found_in(np.array([-1.0, 5.0])), transform="log1p")
    encode(ASKED, found_in(np.array([-1.0, 5.0])))
    encode(ASKED, found_in(np.array([0.0, 6.0])), transform="log1p")


def test_values_beyond_the_vocabulary_are_hashed_as_bigquery_does() -> None:
    top = tuple(ValueCount(value=value, count=1) for value in ("a", "b", "c"))
    statistics = make_statistics(c=make_feature_statistics(kind="categorical", nulls=0, top=top))
    feature = make_feature(name="c", kind="categorical", max_vocabulary=2, hash_buckets=10)
    preprocessing = Preprocessing([feature], statistics)
    # With what FARM_FINGERPRINT gives, of https://cloud.google.com/bigquery/docs/reference/standard-sql/hash_functions
    fingerprints = {"1footrue": -1541654101129638711, "2applefalse": 2794438866806483259}
    texts = ["a", "b", "", "c", *fingerprints]
    ids = preprocessing({"c": tf.constant(texts)})["categorical"].numpy()[:, 0].tolist()
    assert ids[:3] == [2, 3, 0]
    assert 4 <= ids[3] < 14
    assert ids[4:] == [4 + value % 2**64 % 10 for value in fingerprints.values()]
    (category,) = preprocessing.shape.categories
    assert category.ids == 14


def test_a_stored_model_transforms_as_the_training_did(tmp_path: Path) -> None:
    found = found_in(TRAINED)
    kinds = ("log1p", "clip", "quantile", "buckets")
    features = [make_feature(name=kind, kind="numeric", transform=kind) for kind in kinds]
    features.append(make_feature(name="c", kind="categorical", max_vocabulary=1, hash_buckets=5))
    top = tuple(ValueCount(value=value, count=1) for value in ("a", "b"))
    category = make_feature_statistics(kind="categorical", nulls=0, top=top)
    preprocessing = Preprocessing(features, make_statistics(**dict.fromkeys(kinds, found), c=category))
    raw: dict[str, tf.Tensor] = {kind: tf.constant([*ASKED, NAN]) for kind in kinds}
    raw["c"] = tf.constant(["a", "b", "", "z", "y", "a", "b", "a", "q"])

    class Sum(tf.Module):
        """Adds up all that it reads."""

        variables = ()

        def __call__(self, encoded: dict[str, tf.Tensor], training: bool = False) -> tf.Tensor:
            codes = tf.cast(encoded["categorical"], tf.float32)
            return tf.reduce_sum(tf.concat([encoded["numeric"], codes], axis=1), axis=1, keepdims=True) / 20

    objective = objective_of(make_label(name="y", kind="binary"))
    save_model(tmp_path / "model", features, preprocessing, Sum(), objective)
    expected = objective.scores(Sum()(preprocessing(raw))).numpy()
    np.testing.assert_allclose(StoredModel(tmp_path / "model", "gs://m/model").predict(raw), expected, rtol=1e-6)
