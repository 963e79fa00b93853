"""`wide_deep`: a linear model that memorises beside a deep one that generalises, trained together. `linear`: it alone.

Heng-Tze Cheng et al., Wide & Deep Learning for Recommender Systems, 2016, https://arxiv.org/abs/1606.07792
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.models.bags import BagMean
from trainer.models.dense import DenseHyperparameters, deep, last, model_inputs
from trainer.models.features import InputShape
from trainer.models.hyperparameters import Hyperparameters, whole


@dataclass(frozen=True, kw_only=True)
class WideDeepHyperparameters(DenseHyperparameters):
    """Of `wide_deep`: those of `dense`, for the deep half, and one of the wide half.

    Attributes:
        cross_buckets: Weights for each pair of categorical features, shared by hashing; 0: no crosses.
    """

    cross_buckets: int = whole(0, 0, 1 << 24)


@dataclass(frozen=True, kw_only=True)
class LinearHyperparameters(Hyperparameters):
    """Of `linear`: those of each architecture that is trained by steps, and one of the wide half.

    Attributes:
        cross_buckets: As of `wide_deep`.
    """

    cross_buckets: int = whole(0, 0, 1 << 24)


def build_linear(shape: InputShape, outputs: int, hyperparameters: LinearHyperparameters) -> tf_keras.Model:
    """Build the wide half alone, with a bias. numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    inputs = model_inputs(shape)
    terms = _wide(inputs, shape, outputs, hyperparameters.cross_buckets, bias=True)
    logit = tf_keras.layers.Add(name="logit")(terms) if len(terms) > 1 else terms[0]
    return tf_keras.Model(inputs, logit, name="linear")


def build(shape: InputShape, outputs: int, hyperparameters: WideDeepHyperparameters) -> tf_keras.Model:
    """Build the model. numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    inputs = model_inputs(shape)
    parts = [last(deep(inputs, shape, hyperparameters), outputs, hyperparameters, name="deep_logit")]
    wide = _wide(inputs, shape, outputs, hyperparameters.cross_buckets)  # of all members the same
    parts += wide if hyperparameters.members == 1 else [term[:, tf.newaxis, :] for term in wide]
    logit = tf_keras.layers.Add(name="logit")(parts) if len(parts) > 1 else parts[0]
    return tf_keras.Model(inputs, logit, name="wide_deep")


def _wide(
    inputs: dict[str, Any], shape: InputShape, outputs: int, cross_buckets: int, *, bias: bool = False
) -> list[Any]:
    """Return the wide half's terms: a weight per output and number, category, bag and cross. [B, outputs] each."""
    terms = []
    if shape.numbers or bias:
        wide = tf_keras.layers.Dense(outputs, use_bias=bias, kernel_initializer="zeros", name="wide_numeric")
        terms.append(wide(inputs["numeric"]))
    columns = {category.name: inputs["categorical"][:, index] for index, category in enumerate(shape.categories)}
    for category in shape.categories:
        weights = tf_keras.layers.Embedding(
            category.ids, outputs, embeddings_initializer="zeros", name=f"wide_{category.name}"
        )
        terms.append(weights(columns[category.name]))
    for bag in shape.bags:
        terms.append(BagMean(bag, outputs, name=f"wide_{bag.key}", initializer="zeros")(inputs[bag.key]))
    if cross_buckets:
        for left, right in itertools.combinations(shape.categories, 2):
            crossed = (columns[left.name] * right.ids + columns[right.name]) % cross_buckets
            weights = tf_keras.layers.Embedding(
                cross_buckets,
                outputs,
                embeddings_initializer="zeros",
                name=f"cross_{left.name}_{right.name}",
            )
            terms.append(weights(crossed))
    return terms
