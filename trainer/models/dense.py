"""`dense`: embeddings and numbers side by side, through fully connected layers.

Also the deep half of `wide_deep`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.models.bags import embedded_bag
from trainer.models.dropout import SeededDropout
from trainer.models.features import Category, InputShape
from trainer.models.hyperparameters import Hyperparameters, activation, limited, whole, widths
from trainer.models.numbers import piecewise_linear


class MembersDense(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """A fully connected layer of each member, side by side: what comes before it they share.

    One operation computes it for all, so that eight members take little longer than one where a layer is small.

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


@dataclass(frozen=True, kw_only=True)
class DenseHyperparameters(Hyperparameters):
    """Of `dense`.

    Attributes:
        hidden_units: Width of each layer, first to last.
        activation: By its Keras name.
        dropout: Share of units dropped after each layer, in [0, 1).
        l2: Weight decay on the layers' kernels, added to the loss.
        numeric_bins: Intervals between quantiles in which each number is read, beside itself; 0: itself alone.
        members: How often there are these layers and the last one, side by side, with other first weights each; the
            answer is the mean of theirs (`trainer.objective.members`).
    """

    hidden_units: tuple[int, ...] = widths((64, 32))
    activation: str = activation()
    dropout: float = limited(0.0, "a number in [0, 1)", minimum=0, below=1)
    l2: float = limited(0.0, "a number from 0 to 1000", minimum=0, maximum=1000)
    numeric_bins: int = whole(0, 0, 20)
    members: int = whole(1, 1, 64)


def build(shape: InputShape, outputs: int, hyperparameters: DenseHyperparameters) -> tf_keras.Model:
    """Build the model. numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    inputs = model_inputs(shape)
    logit = last(deep(inputs, shape, hyperparameters), outputs, hyperparameters)
    return tf_keras.Model(inputs, logit, name="dense")


def model_inputs(shape: InputShape) -> dict[str, Any]:
    """Return the inputs that every architecture has: `deep` reads them."""
    bags = {bag.key: tf_keras.Input([bag.length], dtype=tf.int32, name=bag.key) for bag in shape.bags}
    return {
        **bags,
        "numeric": tf_keras.Input([shape.numbers], dtype=tf.float32, name="numeric"),
        "categorical": tf_keras.Input([len(shape.categories)], dtype=tf.int32, name="categorical"),
    }


def embed(category: Category) -> tf_keras.layers.Embedding:
    """Return a category's embedding."""
    return tf_keras.layers.Embedding(category.ids, category.embedding_dim, name=f"embed_{category.name}")


def deep(
    inputs: dict[str, Any], shape: InputShape, hyperparameters: DenseHyperparameters, more: Sequence[tf.Tensor] = ()
) -> tf.Tensor:
    """Build all but the last layer.

    Args:
        more: What else goes in beside numbers and embeddings. [B, n] each

    Returns:
        [B, hidden_units[-1]], or of several members [members, B, hidden_units[-1]]; `last` takes both.
    """
    columns = [*more, *([inputs["numeric"]] if shape.numbers else [])]
    if intervals := piecewise_linear(shape, hyperparameters.numeric_bins):
        columns.append(intervals(inputs["numeric"]))
    for index, category in enumerate(shape.categories):
        embedding = embed(category)
        columns.append(embedding(inputs["categorical"][:, index]))  # [B, embedding_dim]
    columns += [embedded_bag(bag)(inputs[bag.key]) for bag in shape.bags]
    x = tf_keras.layers.Concatenate(name="features")(columns) if len(columns) > 1 else columns[0]
    for layer in hidden_layers(hyperparameters):
        x = layer(x)
    return x


def hidden_layers(hyperparameters: DenseHyperparameters) -> list[Any]:
    """Return the fully connected layers, each with its dropout behind it."""
    layers: list[Any] = []
    for index, units in enumerate(hyperparameters.hidden_units):
        decay = tf_keras.regularizers.L2(hyperparameters.l2) if hyperparameters.l2 else None
        layers.append(
            dense_of(hyperparameters)(
                units, activation=hyperparameters.activation, kernel_regularizer=decay, name=f"hidden_{index}"
            )
        )
        if hyperparameters.dropout:
            layers.append(SeededDropout(hyperparameters.dropout, name=f"dropout_{index}"))
    return layers


def last(x: tf.Tensor, outputs: int, hyperparameters: DenseHyperparameters, name: str = "logit") -> tf.Tensor:
    """Build the last layer. [B, n] or [members, B, n] → [B, outputs] or [B, members, outputs]."""
    logits = dense_of(hyperparameters)(outputs, name=name)(x)
    return logits if hyperparameters.members == 1 else tf_keras.layers.Lambda(examples_first, name="members")(logits)


def dense_of(hyperparameters: DenseHyperparameters) -> Callable[..., Any]:
    """Return what makes a fully connected layer: Keras's own, or one of several members."""
    alone: Callable[..., Any] = tf_keras.layers.Dense
    return alone if hyperparameters.members == 1 else partial(MembersDense, members=hyperparameters.members)


def examples_first(logits: tf.Tensor) -> tf.Tensor:
    """Give members' answers by example. [members, B, n] → [B, members, n]."""
    return tf.transpose(logits, [1, 0, 2])


@dataclass(frozen=True, kw_only=True)
class SeeingHyperparameters(DenseHyperparameters):
    """Of architectures that read images: those of `dense`, and one of the training itself.

    Attributes:
        augmentation_strength: What `training.augmentation.strength` is multiplied by.
    """

    augmentation_strength: float = limited(1.0, "a number from 0 to 10", minimum=0, maximum=10)
