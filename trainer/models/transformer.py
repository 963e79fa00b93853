"""`transformer`: attention between all steps of a sequence; their mean joins numbers and categories.

Encoder blocks with the normalisation before each half (Xiong et al., 2020, https://arxiv.org/abs/2002.04745) of
Vaswani et al., Attention Is All You Need, 2017, https://arxiv.org/abs/1706.03762; positions are learned.
"""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf
import tf_keras

from trainer.models.dense import DenseHyperparameters, deep, last, model_inputs
from trainer.models.dropout import SeededDropout
from trainer.models.features import InputShape
from trainer.models.hyperparameters import whole
from trainer.models.series import MaskedMean, Series, read_series, sequence_inputs


@dataclass(frozen=True, kw_only=True)
class TransformerHyperparameters(DenseHyperparameters):
    """Of `transformer`: those of `dense`, for the layers after the blocks, and those of the blocks.

    Attributes:
        blocks: How many, one after the other.
        heads: Of each block's attention.
        width: Of a step inside the blocks.
        feed_forward_units: Of each block's second half.
    """

    blocks: int = whole(2, 1, 64)
    heads: int = whole(4, 1, 64)
    width: int = whole(64, 1, 4096)
    feed_forward_units: int = whole(128, 1, 65536)


def build(shape: InputShape, outputs: int, hyperparameters: TransformerHyperparameters) -> tf_keras.Model:
    """Build the model. sequences [B, T, …], numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    inputs = {**model_inputs(shape), **sequence_inputs(shape)}
    read = [_blocks_over(series, hyperparameters) for series in read_series(inputs, shape)]
    logits = last(deep(inputs, shape, hyperparameters, read), outputs, hyperparameters)
    return tf_keras.Model(inputs, logits, name="transformer")


class Positions(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Adds a learned vector to each place."""

    def build(self, input_shape: tf.TensorShape) -> None:
        """Make the vectors. [1, T, width]."""
        self._places = self.add_weight(name="places", shape=[1, *input_shape[1:]], initializer="random_normal")
        super().build(input_shape)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Add. [B, T, width] → the same."""
        return inputs + self._places


def _blocks_over(series: Series, hyperparameters: TransformerHyperparameters) -> tf.Tensor:
    """Build the blocks over one series. [B, T, n] → [B, width]."""
    name = series.name
    x = tf_keras.layers.Dense(hyperparameters.width, name=f"widen_{name}")(series.steps)  # [B, T, width]
    x = Positions(name=f"positions_{name}")(x)
    for index in range(hyperparameters.blocks):
        x = _block(x, series.mask[:, tf.newaxis, :], hyperparameters, f"{name}_{index}")
    x = tf_keras.layers.LayerNormalization(name=f"norm_{name}")(x)
    return MaskedMean(name=f"mean_{name}")(x, there=series.mask)


def _block(x: tf.Tensor, mask: tf.Tensor, hyperparameters: TransformerHyperparameters, name: str) -> tf.Tensor:
    """Build one block: attention and a small network on each step, each added to what came in.

    Args:
        x: Steps. [B, T, width]
        mask: Which steps may be looked at. [B, 1, T]
        hyperparameters: Of the blocks.
    """
    layers, width = tf_keras.layers, hyperparameters.width
    before = layers.LayerNormalization(name=f"norm_attention_{name}")(x)
    attention = layers.MultiHeadAttention(
        hyperparameters.heads, key_dim=max(1, width // hyperparameters.heads), name=f"attention_{name}"
    )
    x = x + _dropped(attention(before, before, attention_mask=mask), hyperparameters, f"attention_{name}")
    before = layers.LayerNormalization(name=f"norm_forward_{name}")(x)
    wide = layers.Dense(
        hyperparameters.feed_forward_units, activation=hyperparameters.activation, name=f"forward_{name}"
    )(before)
    return x + _dropped(layers.Dense(width, name=f"narrow_{name}")(wide), hyperparameters, f"forward_{name}")


def _dropped(x: tf.Tensor, hyperparameters: TransformerHyperparameters, name: str) -> tf.Tensor:
    if not hyperparameters.dropout:
        return x
    return SeededDropout(hyperparameters.dropout, name=f"dropout_{name}")(x)
