"""`dense`: embeddings and numbers side by side, through fully connected layers.

Also the deep half of `wide_deep`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.models.dropout import SeededDropout
from trainer.models.features import InputShape
from trainer.models.hyperparameters import Hyperparameters, activation, limited, widths


@dataclass(frozen=True, kw_only=True)
class DenseHyperparameters(Hyperparameters):
    """Of `dense`.

    Attributes:
        hidden_units: Width of each layer, first to last.
        activation: By its Keras name.
        dropout: Share of units dropped after each layer, in [0, 1).
        l2: Weight decay on the layers' kernels, added to the loss.
    """

    hidden_units: tuple[int, ...] = widths((64, 32))
    activation: str = activation()
    dropout: float = limited(0.0, "a number in [0, 1)", minimum=0, below=1)
    l2: float = limited(0.0, "a number from 0 to 1000", minimum=0, maximum=1000)


def build(shape: InputShape, outputs: int, hyperparameters: DenseHyperparameters) -> tf_keras.Model:
    """Build the model. numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    inputs = model_inputs(shape)
    logit = tf_keras.layers.Dense(outputs, name="logit")(deep(inputs, shape, hyperparameters))
    return tf_keras.Model(inputs, logit, name="dense")


def model_inputs(shape: InputShape) -> dict[str, Any]:
    """Return the inputs that every architecture has."""
    return {
        "numeric": tf_keras.Input([shape.numbers], dtype=tf.float32, name="numeric"),
        "categorical": tf_keras.Input([len(shape.categories)], dtype=tf.int32, name="categorical"),
    }


def deep(
    inputs: dict[str, Any], shape: InputShape, hyperparameters: DenseHyperparameters, more: Sequence[tf.Tensor] = ()
) -> tf.Tensor:
    """Build all but the last layer.

    Args:
        more: What else goes in beside numbers and embeddings. [B, n] each

    Returns:
        [B, hidden_units[-1]]
    """
    columns = [*more, *([inputs["numeric"]] if shape.numbers else [])]
    for index, category in enumerate(shape.categories):
        embedding = tf_keras.layers.Embedding(category.ids, category.embedding_dim, name=f"embed_{category.name}")
        columns.append(embedding(inputs["categorical"][:, index]))  # [B, embedding_dim]
    x = tf_keras.layers.Concatenate(name="features")(columns) if len(columns) > 1 else columns[0]
    for index, units in enumerate(hyperparameters.hidden_units):
        decay = tf_keras.regularizers.L2(hyperparameters.l2) if hyperparameters.l2 else None
        x = tf_keras.layers.Dense(
            units, activation=hyperparameters.activation, kernel_regularizer=decay, name=f"hidden_{index}"
        )(x)
        if hyperparameters.dropout:
            x = SeededDropout(hyperparameters.dropout, name=f"dropout_{index}")(x)
    return x


@dataclass(frozen=True, kw_only=True)
class SeeingHyperparameters(DenseHyperparameters):
    """Of architectures that read images: those of `dense`, and one of the training itself.

    Attributes:
        augmentation_strength: What `training.augmentation.strength` is multiplied by.
    """

    augmentation_strength: float = limited(1.0, "a number from 0 to 10", minimum=0, maximum=10)
