"""Preprocessing and hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.support.refusals import refuses
from tests.support.trainer_documents import make_feature, make_feature_statistics, make_statistics
from trainer.contract.documents import Column, FeatureStatistics, ValueCount
from trainer.errors import DataError, RequestError
from trainer.features.preprocessing import FeatureColumns, Preprocessing
from trainer.features.values import as_number, as_text, parse_feature
from trainer.models.dense import DenseHyperparameters
from trainer.models.registry import ARCHITECTURES, find_architecture, read_hyperparameters

NAN = float("nan")


def numeric(nulls: int = 0, mean: float | None = 10.0, stddev: float | None = 4.0) -> FeatureStatistics:
    return make_feature_statistics(kind="numeric", nulls=nulls, mean=mean, stddev=stddev)


@pytest.mark.parametrize(
    ("feature", "found", "encoded"),
    [
        pytest.param({}, numeric(), [[0.5], [0.0]], id="normalised-mean"),
        pytest.param({"missing": "zero"}, numeric(), [[0.5], [-2.5]], id="normalised-zero"),
        pytest.param({"normalize": False}, numeric(), [[12.0], [10.0]], id="raw-mean"),
        pytest.param({"normalize": False, "missing": "zero"}, numeric(), [[12.0], [0.0]], id="raw-zero"),
        pytest.param({}, numeric(nulls=2), [[0.5, 0.0], [0.0, 1.0]], id="indicator"),
        pytest.param({}, numeric(stddev=0.0), [[2.0], [0.0]], id="constant"),
        pytest.param({}, numeric(mean=None, stddev=None), [[12.0], [0.0]], id="no-statistics"),
    ],
)
def test_numbers_are_normalised_and_missing_ones_filled(feature: dict, found, encoded: list[list[float]]) -> None:
    preprocessing = Preprocessing([make_feature(name="x", kind="numeric", **feature)], make_statistics(x=found))
    result = preprocessing({"x": tf.constant([12.0, NAN])})
    np.testing.assert_allclose(result["numeric"], encoded, rtol=1e-6)
    said_in_json = preprocessing({"x": tf.constant([12.0, -1e38])})
    np.testing.assert_array_equal(said_in_json["numeric"], result["numeric"])
    assert result["categorical"].shape == (2, 0)
    assert preprocessing.shape.numbers == len(encoded[0])


def test_categories_are_ids_by_rank() -> None:
    top = tuple(ValueCount(value=value, count=1) for value in ("UA", "", "Ü"))
    found = make_feature_statistics(kind="categorical", nulls=0, top=top)
    feature = make_feature(name="c", kind="categorical", embedding_dim=3)
    preprocessing = Preprocessing([feature], make_statistics(c=found))
    result = preprocessing({"c": tf.constant(["UA", "", "Ü", "rare", "never"])})
    assert result["categorical"].numpy().tolist() == [[2], [0], [3], [1], [1]]
    (category,) = preprocessing.shape.categories
    assert (category.ids, category.embedding_dim) == (4, 3)


def test_statistics_of_another_kind_or_none_are_named() -> None:
    with pytest.raises(DataError, match="nothing about feature 'x'"):
        Preprocessing([make_feature(name="x", kind="numeric")], make_statistics())
    with pytest.raises(DataError, match="'x' is numeric"):
        Preprocessing([make_feature(name="x", kind="categorical")], make_statistics(x=numeric()))


def columns(**types: str) -> list[Column]:
    return [Column(name=name, type=type_, mode="NULLABLE") for name, type_ in types.items()]


@pytest.mark.parametrize(
    ("kind", "type_"),
    [("numeric", "STRING"), ("numeric", "TIMESTAMP"), ("categorical", "FLOAT"), ("categorical", "BYTES")],
)
def test_a_column_whose_type_does_not_fit_is_refused(kind: str, type_: str) -> None:
    with refuses(RequestError, where="feature 'x'", found=type_):
        FeatureColumns([make_feature(name="x", kind=kind)], columns(x=type_))


def test_a_column_that_is_not_there_is_refused() -> None:
    with refuses(RequestError, found="no such column"):
        FeatureColumns([make_feature(name="y", kind="numeric")], columns(x="INTEGER"))


@pytest.mark.parametrize(
    ("type_", "feature", "text", "number"),
    [
        pytest.param("INTEGER", {"int64_list": {"value": [-7]}}, b"-7", -7.0, id="integer"),
        pytest.param("BOOLEAN", {"int64_list": {"value": [1]}}, b"true", 1.0, id="true"),
        pytest.param("BOOLEAN", {"int64_list": {"value": [0]}}, b"false", 0.0, id="false"),
        pytest.param("INTEGER", None, b"", NAN, id="missing-integer"),
        pytest.param("BOOLEAN", None, b"", NAN, id="missing-boolean"),
        pytest.param("STRING", {"bytes_list": {"value": [b"x"]}}, b"x", None, id="string"),
        pytest.param("STRING", None, b"", None, id="missing-string"),
        pytest.param("FLOAT", {"float_list": {"value": [1.5]}}, None, 1.5, id="float"),
        pytest.param("NUMERIC", None, None, NAN, id="missing-numeric"),
    ],
)
def test_a_stored_value_reads_as_a_request_would_hold_it(type_, feature, text, number) -> None:
    features = (
        {}
        if feature is None
        else {"x": tf.train.Feature(**{key: dict_list(key, value) for key, value in feature.items()})}
    )
    example = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    parsed = tf.io.parse_example([example], {"x": parse_feature(type_)})["x"]
    if text is not None:
        assert as_text(parsed, type_).numpy().tolist() == [text]
    if number is not None:
        np.testing.assert_equal(as_number(parsed).numpy(), np.array([number], np.float32))


def dict_list(key: str, value: dict):
    return {"int64_list": tf.train.Int64List, "float_list": tf.train.FloatList, "bytes_list": tf.train.BytesList}[key](
        **value
    )


LAYERED = [name for name, known in ARCHITECTURES.items() if issubclass(known.hyperparameters, DenseHyperparameters)]


@pytest.mark.parametrize("name", LAYERED)
def test_hyperparameters_have_defaults_and_are_read_as_their_type(name: str) -> None:
    architecture: Any = find_architecture(name)
    assert read_hyperparameters(architecture, {}) == architecture.hyperparameters()
    read: Any = read_hyperparameters(
        architecture, {"learning_rate": "1e-2", "hidden_units": "32-16", "dropout": 0, "activation": "gelu"}
    )
    assert (read.learning_rate, read.hidden_units, read.dropout, read.activation) == (0.01, (32, 16), 0.0, "gelu")
    for given, wanted in (("[8, 4]", (8, 4)), (8, (8,))):
        read = read_hyperparameters(architecture, {"hidden_units": given})
        assert read.hidden_units == wanted


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"learning_rat": 0.1}, r"unknown name 'learning_rat'.*Did you mean 'learning_rate'"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'. Expected a number"),
        ({"learning_rate": 0}, "a number above 0"),
        ({"dropout": 1.0}, r"in \[0, 1\)"),
        ({"hidden_units": []}, "one or more whole numbers"),
        ({"hidden_units": "a,b"}, "a list of whole numbers"),
        ({"cross_buckets": 1.5}, "a whole number"),
        ({"activation": "relux"}, "a Keras activation: elu"),
        ({"l2": True}, "a number"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_hyperparameter_is_named_with_what_was_expected(values: dict, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        read_hyperparameters(find_architecture("wide_deep"), values)


def test_an_unknown_architecture_is_refused() -> None:
    with refuses(RequestError, found="'rnn'", expected="one of: boosted_trees, cnn,"):
        find_architecture("rnn")
