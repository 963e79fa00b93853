"""`deep_cross`: layers that multiply features with each other beside the fully connected ones of `dense`.

Also the example of a model written as a class of its own, with `call`. DCN-V2: Wang et al., 2020,
https://arxiv.org/abs/2008.13535
"""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf
import tf_keras

from trainer.models.bags import embedded_bag
from trainer.models.dense import DenseHyperparameters, dense_of, embed, examples_first, hidden_layers
from trainer.models.dropout import SeededDropout
from trainer.models.features import InputShape
from trainer.models.hyperparameters import whole
from trainer.models.numbers import piecewise_linear


@dataclass(frozen=True, kw_only=True)
class DeepCrossHyperparameters(DenseHyperparameters):
    """Of `deep_cross`: those of `dense`, for the deep half, and those of the crossing half.

    Attributes:
        cross_layers: How many; n of them give products of up to n + 1 features.
        cross_rank: Of their matrices, which are then products of two narrow ones; 0: full.
    """

    cross_layers: int = whole(2, 1, 32)
    cross_rank: int = whole(0, 0, 65536)


def build(shape: InputShape, outputs: int, hyperparameters: DeepCrossHyperparameters) -> tf_keras.Model:
    """Build the model. numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    model = DeepCross(shape, outputs, hyperparameters)
    # Called once, so that it has its variables before the optimizer and the checkpoints ask for them.
    bags = {bag.key: tf.zeros([1, bag.length], tf.int32) for bag in shape.bags}
    ids = tf.zeros([1, len(shape.categories)], tf.int32)
    model({"numeric": tf.zeros([1, shape.numbers]), "categorical": ids, **bags})
    return model


class DeepCross(tf_keras.Model):  # type: ignore[misc]  # Keras has no types
    """Two halves that read the same vector of numbers and embeddings.

    Args:
        outputs: Logits.
    """

    def __init__(self, shape: InputShape, outputs: int, hyperparameters: DeepCrossHyperparameters) -> None:
        super().__init__(name="deep_cross")
        self._numbers = shape.numbers
        self._embeddings = [embed(category) for category in shape.categories]
        self._keys, self._bags = [bag.key for bag in shape.bags], [embedded_bag(bag) for bag in shape.bags]
        self._intervals = piecewise_linear(shape, hyperparameters.numeric_bins)
        self._crosses = [
            Cross(hyperparameters.cross_rank, name=f"cross_{index}") for index in range(hyperparameters.cross_layers)
        ]
        self._hidden, self._members = hidden_layers(hyperparameters), hyperparameters.members
        self._logit = dense_of(hyperparameters)(outputs, name="logit")

    def call(self, inputs: dict[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Return logits. → [B, outputs]."""
        columns = [table(inputs["categorical"][:, index]) for index, table in enumerate(self._embeddings)]
        columns += [bag(inputs[key]) for key, bag in zip(self._keys, self._bags, strict=True)]
        if self._numbers:
            columns.append(tf.cast(inputs["numeric"], self.compute_dtype))
        if self._intervals:
            columns.append(tf.cast(self._intervals(inputs["numeric"]), self.compute_dtype))
        together = tf.concat(columns, axis=1)  # [B, n]
        crossed = together
        for cross in self._crosses:
            crossed = cross(crossed, first=together)
        deep = together
        for layer in self._hidden:
            deep = layer(deep, training=training) if isinstance(layer, SeededDropout) else layer(deep)
        if self._members == 1:
            return self._logit(tf.concat([crossed, deep], axis=1))
        crossed = tf.tile(crossed[tf.newaxis], [self._members, 1, 1])  # of all members the same
        return examples_first(self._logit(tf.concat([crossed, deep], axis=2)))


class Cross(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Multiplies what comes in with the first vector, and adds it: x + first * (W x + b).

    Args:
        rank: Of W; 0: full.
    """

    def __init__(self, rank: int, name: str) -> None:
        super().__init__(name=name)
        self._rank = rank

    def build(self, input_shape: tf.TensorShape) -> None:
        """Make W and b."""
        width = int(input_shape[-1])
        self._narrow = tf_keras.layers.Dense(self._rank, use_bias=False, name="narrow") if self._rank else None
        self._mix = tf_keras.layers.Dense(width, name="mix")
        super().build(input_shape)

    def call(self, inputs: tf.Tensor, first: tf.Tensor) -> tf.Tensor:
        """Cross. [B, n], [B, n] → [B, n]."""
        narrow = inputs if self._narrow is None else self._narrow(inputs)
        return inputs + first * self._mix(narrow)
