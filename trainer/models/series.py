"""Sequences as recurrent layers and attention take them: a vector per step, and which steps there are.

Comes in: the model's input shape. Goes out: Keras inputs, and one `Series` for all sequences of the same length, which
are read side by side: step i of each belongs to the same moment.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.models.features import InputShape
from trainer.models.features import Sequence as Steps


@dataclass(frozen=True, kw_only=True)
class Series:
    """Steps of one or more sequences.

    Attributes:
        name: For the layers that read it: those of the sequences.
        steps: What they hold. [B, length, width]
        mask: Which steps at least one of them has. [B, length]
    """

    name: str
    steps: tf.Tensor
    mask: tf.Tensor


class MaskedMean(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Gives the mean over the steps that are there; zeros where there is none."""

    def call(self, inputs: tf.Tensor, there: tf.Tensor) -> tf.Tensor:
        """Average. [B, T, width], [B, T] → [B, width]."""
        weights = tf.cast(there, inputs.dtype)[:, :, tf.newaxis]
        return tf.reduce_sum(inputs * weights, axis=1) / tf.maximum(tf.reduce_sum(weights, axis=1), 1)


def sequence_inputs(shape: InputShape) -> dict[str, Any]:
    """Return the inputs that hold sequences."""
    return {steps.key: tf_keras.Input(steps.shape, dtype=steps.dtype, name=steps.key) for steps in shape.sequences}


def read_series(inputs: dict[str, Any], shape: InputShape) -> list[Series]:
    """Join sequences of equal lengths, longest first."""
    by_length = sorted(shape.sequences, key=lambda steps: -steps.length)  # stable: in the order of the features
    groups = itertools.groupby(by_length, key=lambda steps: steps.length)
    return [_join_steps([*group], inputs) for _, group in groups]


def _join_steps(group: Sequence[Steps], inputs: dict[str, Any]) -> Series:
    columns, there = [], []
    for steps in group:
        values = inputs[steps.key]
        if steps.ids is None:
            columns.append(values)  # [B, length, 2]
            there.append(values[:, :, 1] > 0)
        else:
            embed = tf_keras.layers.Embedding(steps.ids, steps.embedding_dim, name=f"embed_{steps.name}")
            columns.append(embed(values))  # [B, length, embedding_dim]
            there.append(tf.not_equal(values, 0))
    name = "_".join(steps.name for steps in group)
    mask = there[0]
    for other in there[1:]:
        mask = tf.logical_or(mask, other)
    joined = tf_keras.layers.Concatenate(name=f"steps_{name}")(columns) if len(columns) > 1 else columns[0]
    return Series(name=name, steps=joined, mask=mask)
