"""Crosses, against their definition, with missing values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.support.trainer_documents import make_feature, make_feature_statistics, make_label, make_statistics
from trainer.contract.documents import Cross, ValueCount
from trainer.features.preprocessing import Preprocessing
from trainer.objective.outputs import objective_of
from trainer.saved_model.model import StoredModel, save_model

NAN = float("nan")


def preprocessing() -> Preprocessing:
    top = (ValueCount(value="a", count=2),)
    features = [make_feature(name=name, kind="categorical") for name in ("c", "d")]
    features.append(make_feature(name="n", kind="numeric", transform="buckets", boundaries=(0.0, 10.0)))
    statistics = make_statistics(
        **{name: make_feature_statistics(kind="categorical", top=top) for name in ("c", "d")},
        n=make_feature_statistics(kind="numeric"),
    )
    crosses = (Cross(columns=("c", "d"), buckets=1000), Cross(columns=("c", "n", "d"), buckets=7, embedding_dim=2))
    return Preprocessing(features, statistics, crosses)


RAW = {
    "c": tf.constant(["a", "b", "a", "", "ax"]),
    "d": tf.constant(["x", "x", "", "x", "x"]),
    "n": tf.constant([5.0, 50.0, 5.0, 5.0, NAN]),
}


def bucket(text: str, buckets: int) -> int:
    return 2 + int(tf.strings.to_hash_bucket_fast(text, buckets))


def test_a_cross_is_the_hash_of_its_texts_and_missing_where_one_is() -> None:
    encode = preprocessing()
    ids = encode(RAW)["categorical"].numpy()
    pair = [bucket("a\x1fx", 1000), bucket("b\x1fx", 1000), 0, 0, bucket("ax\x1fx", 1000)]
    three = [bucket("a\x1f3\x1fx", 7), bucket("b\x1f4\x1fx", 7), 0, 0, 0]
    assert ids[:, 3].tolist() == pair
    assert ids[:, 4].tolist() == three
    assert len(set(pair)) == 4
    categories = encode.shape.categories
    assert [(each.name, each.ids) for each in categories[3:]] == [("c.d", 1002), ("c.n.d", 9)]
    assert categories[4].embedding_dim == 2
    assert all(ids[:, at].max() < category.ids for at, category in enumerate(categories))


def test_a_stored_model_crosses_as_the_training_did(tmp_path: Path) -> None:
    class Sum(tf.Module):
        """Adds up the ids."""

        variables = ()

        def __call__(self, encoded: dict[str, tf.Tensor], training: bool = False) -> tf.Tensor:
            return tf.reduce_sum(tf.cast(encoded["categorical"], tf.float32), axis=1, keepdims=True) / 1000

    encode, objective = preprocessing(), objective_of(make_label(name="y", kind="binary"))
    features = [make_feature(name=name, kind="categorical") for name in ("c", "d")]
    features.append(make_feature(name="n", kind="numeric"))
    save_model(tmp_path / "model", features, encode, Sum(), objective)
    expected = objective.scores(Sum()(encode(RAW))).numpy()
    np.testing.assert_allclose(StoredModel(tmp_path / "model", "gs://m/model").predict(RAW), expected, rtol=1e-6)
