"""Lists of any length become steps: cut, filled up, normalised, looked up."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.support.trainer_documents import make_feature, make_feature_statistics, make_statistics
from trainer.contract.documents import Column, Feature, FeatureStatistics, ValueCount
from trainer.errors import RequestError
from trainer.features.preprocessing import FeatureColumns, Preprocessing
from trainer.features.sequences import window
from trainer.features.values import as_list, parse_list_feature

NAN = float("nan")


@pytest.mark.parametrize(
    ("keep", "values", "expected"),
    [
        pytest.param("last", [[1.0, 2, 3, 4]], [[2.0, 3, 4]], id="last-of-four"),
        pytest.param("first", [[1.0, 2, 3, 4]], [[1.0, 2, 3]], id="first-of-four"),
        pytest.param("last", [[1.0, 2, 3, 4], [1, 2, NAN, NAN]], [[2.0, 3, 4], [1, 2, NAN]], id="by-row"),
        pytest.param("last", [[1.0, NAN, 3, 4, NAN]], [[NAN, 3, 4]], id="gap-inside"),
        pytest.param("last", [[1.0]], [[1.0, NAN, NAN]], id="short"),
        pytest.param("first", [[1.0]], [[1.0, NAN, NAN]], id="short-first"),
        pytest.param("last", [[]], [[NAN, NAN, NAN]], id="empty"),
        pytest.param("last", [["a", "b", "c", "d"], ["a", "", "", ""]], [["b", "c", "d"], ["a", "", ""]], id="text"),
    ],
)
def test_a_list_is_cut_or_filled_up(keep, values, expected) -> None:
    dtype = tf.string if isinstance(expected[0][0], str) else tf.float32
    found = window(tf.constant(values, dtype), 3, keep)
    if dtype == tf.string:
        assert [[item.decode() for item in row] for row in found.numpy()] == expected
    else:
        np.testing.assert_equal(found.numpy(), np.array(expected, np.float32))


def encoded(feature: Feature, found: FeatureStatistics, values) -> np.ndarray:
    preprocessing = Preprocessing([feature], make_statistics(x=found))
    result = preprocessing({"x": tf.constant(values)})
    assert result["numeric"].shape == (len(values), 0)
    (sequence,) = preprocessing.shape.sequences
    assert result["sequence_x"].shape[1:] == sequence.shape
    assert result["sequence_x"].dtype == sequence.dtype
    return result["sequence_x"].numpy()


def test_numbers_are_normalised_and_say_where_they_are() -> None:
    feature = make_feature(name="x", kind="sequence", of="numeric", length=3)
    found = make_feature_statistics(kind="sequence", nulls=0, mean=10.0, stddev=4.0)
    steps = encoded(feature, found, [[12.0, NAN, 10.0, 6.0], [10.0, NAN, NAN, NAN]])
    np.testing.assert_allclose(steps[..., 0], [[0, 0, -1], [0, 0, 0]])
    np.testing.assert_allclose(steps[..., 1], [[0, 1, 1], [1, 0, 0]])
    said_in_json = encoded(feature, found, [[12.0, -1e38, 10.0, 6.0], [10.0, -1e38, -1e38, -1e38]])
    np.testing.assert_array_equal(said_in_json, steps)


def test_categories_are_ids_and_0_after_the_end() -> None:
    feature = make_feature(name="x", kind="sequence", of="categorical", length=3, embedding_dim=3)
    top = tuple(ValueCount(value=value, count=1) for value in ("b", "a"))
    found = make_feature_statistics(kind="sequence", top=top)
    ids = encoded(feature, found, [["a", "b", "rare", "new"], ["b"] * 4])
    assert ids.tolist() == [[2, 1, 1], [2, 2, 2]]
    assert encoded(feature, found, [["a", ""]]).tolist() == [[3, 0, 0]]


def example(**lists) -> bytes:
    return tf.train.Example(features=tf.train.Features(feature=lists)).SerializeToString()


@pytest.mark.parametrize(
    ("type_", "stored", "of", "expected"),
    [
        ("INTEGER", {"int64_list": {"value": [7, -1]}}, "numeric", [[7.0, -1.0, NAN], [NAN, NAN, NAN]]),
        ("FLOAT", {"float_list": {"value": [0.5]}}, "numeric", [[0.5, NAN, NAN], [NAN, NAN, NAN]]),
        ("STRING", {"bytes_list": {"value": [b"a", b"b"]}}, "categorical", [[b"a", b"b", b""], [b"", b"", b""]]),
        ("INTEGER", {"int64_list": {"value": [1, 2, 3, 4]}}, "categorical", [[b"2", b"3", b"4"], [b"", b"", b""]]),
        ("BOOLEAN", {"int64_list": {"value": [1, 0]}}, "categorical", [[b"true", b"false", b""], [b"", b"", b""]]),
    ],
)
def test_a_stored_list_reads_as_a_request_would_hold_it(type_, stored, of, expected) -> None:
    lists = {"int64_list": tf.train.Int64List, "float_list": tf.train.FloatList, "bytes_list": tf.train.BytesList}
    feature = tf.train.Feature(**{key: lists[key](**value) for key, value in stored.items()})
    columns = FeatureColumns(
        [make_feature(name="x", kind="sequence", of=of, length=3)], [Column(name="x", type=type_, mode="REPEATED")]
    )
    parsed = tf.io.parse_example([example(x=feature), example()], columns.parse_spec())
    np.testing.assert_equal(columns.raw(parsed)["x"].numpy(), np.array(expected, object if of != "numeric" else "f4"))


def test_a_whole_list_is_as_wide_as_the_longest() -> None:
    parsed = tf.io.parse_example(
        [example(x=tf.train.Feature(float_list=tf.train.FloatList(value=range(count)))) for count in (2, 5)],
        {"x": parse_list_feature("FLOAT")},
    )
    assert as_list(parsed["x"], "FLOAT", numeric=True).shape == (2, 5)


@pytest.mark.parametrize(
    ("feature", "column", "words"),
    [
        (
            {"kind": "sequence", "of": "numeric", "length": 3},
            {"type": "FLOAT", "mode": "NULLABLE"},
            "of type FLOAT.*REPEATED",
        ),
        (
            {"kind": "sequence", "of": "numeric", "length": 3},
            {"type": "STRING", "mode": "REPEATED"},
            "type REPEATED STRING",
        ),
        (
            {"kind": "sequence", "of": "categorical", "length": 3},
            {"type": "FLOAT", "mode": "REPEATED"},
            "type REPEATED FLOAT",
        ),
        ({"kind": "numeric"}, {"type": "FLOAT", "mode": "REPEATED"}, "type REPEATED FLOAT.*one of INTEGER"),
    ],
)
def test_a_column_that_is_no_such_list_is_refused(feature, column, words) -> None:
    with pytest.raises(RequestError, match=words):
        FeatureColumns([make_feature(name="x", **feature)], [Column(name="x", **column)])
