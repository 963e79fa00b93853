"""Dropout whose masks follow from a seed, a step counter and the replica alone.

Keras's own keeps its random state where a checkpoint does not see it; with this one, a training that was interrupted
draws the same masks as one that was not. Replicas in lockstep have other rows, and draw masks of their own for them.
"""

from __future__ import annotations

import random

import tensorflow as tf
import tf_keras

_SEED_BITS = 31  # the replica is above them


class SeededDropout(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Drops units in training and scales the others up; does nothing in serving.

    Args:
        rate: Share of units dropped, in [0, 1).
    """

    def __init__(self, rate: float, name: str) -> None:
        super().__init__(name=name)
        self._rate = rate
        self._seed = random.getrandbits(_SEED_BITS)

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
        replica = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int64)
        seed = self._seed + replica * (1 << _SEED_BITS)
        return tf.nn.experimental.stateless_dropout(inputs, self._rate, seed=tf.stack([seed, step]))
