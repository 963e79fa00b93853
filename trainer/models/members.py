"""Fully connected layers of several members side by side: what differs between them; what comes before they share.

One operation computes a layer of all members, so that eight take little longer than one where a layer is small.
"""

from __future__ import annotations

import tensorflow as tf
import tf_keras


class MembersDense(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """A fully connected layer of each member.

    Args:
        units: Width of each.
        members: How many.
        activation: By its Keras name.
        kernel_regularizer: Of all kernels together.
    """

    def __init__(
        self,
        units: int,
        members: int,
        *,
        name: str,
        activation: str | None = None,
        kernel_regularizer: tf_keras.regularizers.Regularizer | None = None,
    ) -> None:
        super().__init__(name=name)
        self._units, self._members = units, members
        self._activation = tf_keras.activations.get(activation)
        self._regularizer = kernel_regularizer

    def build(self, input_shape: tf.TensorShape) -> None:
        """Make a kernel and a bias for each member, each drawn as that of a network alone."""
        width, glorot = int(input_shape[-1]), tf_keras.initializers.GlorotUniform

        def draw(shape: tf.TensorShape, dtype: tf.DType, **_: object) -> tf.Tensor:
            return tf.stack([glorot()(shape[1:], dtype) for _ in range(self._members)])

        shape = [self._members, width, self._units]
        self._kernel = self.add_weight("kernel", shape, initializer=draw, regularizer=self._regularizer)
        self._bias = self.add_weight("bias", [self._members, 1, self._units], initializer="zeros")
        super().build(input_shape)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Return every member's. [B, n], the same for all, or [members, B, n] → [members, B, units]."""
        return self._activation(tf.matmul(inputs, self._kernel) + self._bias)
