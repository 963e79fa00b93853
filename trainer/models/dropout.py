"""Dropout whose masks follow from a seed and a step counter alone.

Keras's own keeps its random state where a checkpoint does not see it; with this one, a training that was interrupted
draws the same masks as one that was not.
"""

from __future__ import annotations

import random

import tensorflow as tf
import tf_keras


class SeededDropout(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Drops units in training and scales the others up; does nothing in serving.

    Args:
        rate: Share of units dropped, in [0, 1).
        name: Of the layer.
    """

    def __init__(self, rate: float, name: str) -> None:
        super().__init__(name=name)
        self._rate = rate
        self._seed = random.getrandbits(31)

    def build(self, input_shape: tf.TensorShape) -> None:
        """Make the step counter; it is saved with the weights."""
        self._step = self.add_weight(
            name="step",
            shape=[],
            dtype=tf.int64,
            initializer="zeros",
            trainable=False,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )
        super().build(input_shape)

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Drop. [B, n] → [B, n]."""
        if not training:
            return inputs
        step = self._step.assign_add(1)
        return tf.nn.experimental.stateless_dropout(inputs, self._rate, seed=tf.stack([self._seed, step]))
