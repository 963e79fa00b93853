"""Bags as a network reads them: the mean of the embeddings of their parts."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from trainer.models.features import Bag


class BagMean(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """The mean of the embeddings of a bag's parts; of a bag without one it is 0.

    Args:
        bag: What it reads.
        width: Of the mean.
        initializer: Of the embeddings, by its Keras name.
    """

    def __init__(self, bag: Bag, width: int, name: str, initializer: str = "uniform") -> None:
        super().__init__(name=name)
        self._embedding = tf_keras.layers.Embedding(bag.ids, width, embeddings_initializer=initializer, name=name)

    def call(self, codes: tf.Tensor) -> tf.Tensor:
        """Embed. int32 [B, T], 0 where there is no part → [B, width]."""
        embedded = self._embedding(codes)  # [B, T, width]
        there = tf.cast(codes > 0, embedded.dtype)[:, :, tf.newaxis]
        return tf.math.divide_no_nan(tf.reduce_sum(embedded * there, axis=1), tf.reduce_sum(there, axis=1))


def embedded_bag(bag: Bag) -> BagMean:
    """Return what reads a bag in a network's deep half."""
    return BagMean(bag, bag.embedding_dim, name=f"embed_{bag.key}")
