"""A model of several members: networks of one architecture that begin with other weights and see the same batches.

Each has a loss of its own, and the model's is their mean, so that none leans on another; the answer is the mean of
theirs. Lakshminarayanan et al., Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles, 2017,
https://arxiv.org/abs/1612.01474; trained side by side as in Gorishniy et al., TabM, 2024,
https://arxiv.org/abs/2410.24210. Logits of such a model are [B, members, outputs], of any other [B, outputs].
"""

from __future__ import annotations

import tensorflow as tf
import tf_keras

_RANK = 3


def mean_of_members(answers: tf.Tensor) -> tf.Tensor:
    """Return what the members answer together. [B, members, n] → [B, n]; of one network as it is."""
    return tf.reduce_mean(answers, axis=1) if answers.shape.rank == _RANK else answers


def count_members(logits: tf.Tensor) -> int:
    """Return how many networks answer. [B, members, n] or [B, n]."""
    return int(logits.shape[1]) if logits.shape.rank == _RANK else 1


class MembersLoss(tf_keras.losses.Loss):  # type: ignore[misc]  # Keras has no types
    """The mean of the members' losses.

    Args:
        inner: Of one.
    """

    def __init__(self, inner: tf_keras.losses.Loss) -> None:
        super().__init__(name="loss")
        self._inner = inner

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Return each example's. [B] or [B, n], [B, outputs] or [B, members, outputs] → [B]."""
        targets = y_true[:, tf.newaxis] if y_true.shape.rank == 1 else y_true
        if y_pred.shape.rank != _RANK:
            return self._inner.call(targets, y_pred)
        losses = [self._inner.call(targets, logits) for logits in tf.unstack(y_pred, axis=1)]
        return tf.add_n(losses) / len(losses)
