"""`lstm` and `gru`: recurrent layers over sequences; numbers and categories join before the last layers.

Hochreiter, Schmidhuber, Long Short-Term Memory, 1997, https://doi.org/10.1162/neco.1997.9.8.1735
Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014, https://arxiv.org/abs/1406.1078
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.models.dense import DenseHyperparameters, deep, last, model_inputs
from trainer.models.dropout import SeededDropout
from trainer.models.features import InputShape
from trainer.models.hyperparameters import widths
from trainer.models.series import Series, read_series, sequence_inputs


@dataclass(frozen=True, kw_only=True)
class RecurrentHyperparameters(DenseHyperparameters):
    """Of `lstm` and `gru`: those of `dense`, for the layers after the recurrent ones, and those of the recurrent ones.

    Attributes:
        units: Width of each recurrent layer, first to last.
        bidirectional: Read from the end as well, which doubles the width.
    """

    units: tuple[int, ...] = widths((64,), most=4096)
    bidirectional: bool = False


def build_lstm(shape: InputShape, outputs: int, hyperparameters: RecurrentHyperparameters) -> tf_keras.Model:
    """Build layers of LSTMs. sequences [B, T, …], numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    return _build_recurrent(tf_keras.layers.LSTM, "lstm", shape, outputs, hyperparameters)


def build_gru(shape: InputShape, outputs: int, hyperparameters: RecurrentHyperparameters) -> tf_keras.Model:
    """Build layers of GRUs. sequences [B, T, …], numeric [B, n], categorical [B, m] → logits [B, outputs]."""
    return _build_recurrent(tf_keras.layers.GRU, "gru", shape, outputs, hyperparameters)


def _build_recurrent(
    layer: Callable[..., Any], name: str, shape: InputShape, outputs: int, hyperparameters: RecurrentHyperparameters
) -> tf_keras.Model:
    """Build the model. sequences [B, T, …], numeric [B, n], categorical [B, m] → logits [B, outputs].

    Args:
        outputs: Logits.
    """
    inputs = {**model_inputs(shape), **sequence_inputs(shape)}
    read = [_layers_over(layer, series, hyperparameters) for series in read_series(inputs, shape)]
    logits = last(deep(inputs, shape, hyperparameters, read), outputs, hyperparameters)
    return tf_keras.Model(inputs, logits, name=name)


def _layers_over(layer: Callable[..., Any], series: Series, hyperparameters: RecurrentHyperparameters) -> tf.Tensor:
    """Build the layers over one series. [B, T, width] → [B, units[-1]]; steps that are not there change nothing."""
    x, last = series.steps, len(hyperparameters.units) - 1
    for index, units in enumerate(hyperparameters.units):
        name = f"recurrent_{series.name}_{index}"
        recurrent = layer(units, return_sequences=index < last, name=name)
        if hyperparameters.bidirectional:
            recurrent = tf_keras.layers.Bidirectional(recurrent, name=f"both_{series.name}_{index}")
        x = recurrent(x, mask=series.mask)
        if hyperparameters.dropout and index < last:
            x = SeededDropout(hyperparameters.dropout, name=f"dropout_{series.name}_{index}")(x)
    return x
