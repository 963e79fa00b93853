"""`conv1d`: convolutions over the steps of sequences; numbers and categories join before the last layers.

Each layer looks twice as far apart as the one before, so that few layers see a long sequence: Bai et al., An Empirical
Evaluation of Generic Convolutional and Recurrent Networks for Sequence Modeling, 2018, https://arxiv.org/abs/1803.01271
"""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf
import tf_keras

from trainer.models.dense import DenseHyperparameters, deep, last, model_inputs
from trainer.models.dropout import SeededDropout
from trainer.models.features import InputShape
from trainer.models.hyperparameters import whole, widths
from trainer.models.series import MaskedMean, Series, read_series, sequence_inputs


@dataclass(frozen=True, kw_only=True)
class Conv1dHyperparameters(DenseHyperparameters):
    """Of `conv1d`: those of `dense`, for the layers after the convolutions, and those of the convolutions.

    Attributes:
        filters: Width of each convolution, first to last.
        kernel_size: Steps that a filter looks at.
        dilated: Look at steps 1, 2, 4, … apart from layer to layer; otherwise always at neighbours.
        causal: Look back only, and read off what the last step sees; otherwise both ways, and the mean over the steps.
    """

    filters: tuple[int, ...] = widths((64, 64), most=4096)
    kernel_size: int = whole(3, 1, 31)
    dilated: bool = True
    causal: bool = False


def build(shape: InputShape, outputs: int, hyperparameters: Conv1dHyperparameters) -> tf_keras.Model:
    """Build the model. sequences [B, T, …], numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    inputs = {**model_inputs(shape), **sequence_inputs(shape)}
    read = [_layers_over(series, hyperparameters) for series in read_series(inputs, shape)]
    logits = last(deep(inputs, shape, hyperparameters, read), outputs, hyperparameters)
    return tf_keras.Model(inputs, logits, name="conv1d")


class Hidden(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Makes zeros of steps that are not there, as a convolution pads with."""

    def call(self, inputs: tf.Tensor, there: tf.Tensor) -> tf.Tensor:
        """Hide. [B, T, width], [B, T] → [B, T, width]."""
        return inputs * tf.cast(there, inputs.dtype)[:, :, tf.newaxis]


class LastStep(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Gives the last step that is there; zeros where there is none."""

    def call(self, inputs: tf.Tensor, there: tf.Tensor) -> tf.Tensor:
        """Pick. [B, T, width], [B, T] → [B, width]."""
        later = tf.cumsum(tf.cast(there, inputs.dtype), axis=1, reverse=True, exclusive=True)  # steps after this one
        is_last = tf.cast(there, inputs.dtype) * tf.cast(tf.equal(later, 0), inputs.dtype)
        return tf.reduce_sum(inputs * is_last[:, :, tf.newaxis], axis=1)


def _layers_over(series: Series, hyperparameters: Conv1dHyperparameters) -> tf.Tensor:
    """Build the layers over one series. [B, T, width] → [B, filters[-1]]."""
    name, x = series.name, series.steps
    for index, filters in enumerate(hyperparameters.filters):
        x = Hidden(name=f"hide_{name}_{index}")(x, there=series.mask)
        x = tf_keras.layers.Conv1D(
            filters,
            hyperparameters.kernel_size,
            padding="causal" if hyperparameters.causal else "same",
            dilation_rate=_distance(index, int(x.shape[1])) if hyperparameters.dilated else 1,
            activation=hyperparameters.activation,
            name=f"conv_{name}_{index}",
        )(x)
        if hyperparameters.dropout:
            x = SeededDropout(hyperparameters.dropout, name=f"dropout_{name}_{index}")(x)
    read_off = LastStep(name=f"last_{name}") if hyperparameters.causal else MaskedMean(name=f"mean_{name}")
    return read_off(x, there=series.mask)


def _distance(index: int, length: int) -> int:
    """Return how far apart the steps are that a layer looks at: twice as far as before, but inside the sequence."""
    farthest = max(length - 1, 1).bit_length() - 1
    return 1 << min(index, farthest)
