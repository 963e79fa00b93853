"""Sequences inside the model: lists of any length become steps, as many for every example.

Comes in: per sequence a matrix, as a prediction request has it: lists of float32 or text, filled up at the end with NaN
or "". Goes out: numbers as float32 [B, length, 2], the normalised value (0 where there is none) and whether there is
one; categories as int32 ids [B, length], 0 where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import tensorflow as tf

from trainer.features.values import is_missing, missing_of


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """A sequence feature's place in the model.

    Attributes:
        name: Of the feature.
        length: Steps; shorter lists are filled up at the end.
        keep: Which end of a longer list is kept.
        ids: How many different ids its categories have, the missing one and the other one included; None: numbers.
        embedding_dim: Width of their embedding.
    """

    name: str
    length: int
    keep: Literal["first", "last"]
    ids: int | None = None
    embedding_dim: int = 0

    @property
    def key(self) -> str:
        """Name of its steps among the model's inputs."""
        return f"sequence_{self.name}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an example's steps."""
        return (self.length, 2) if self.ids is None else (self.length,)

    @property
    def dtype(self) -> tf.DType:
        """Of its steps."""
        return tf.float32 if self.ids is None else tf.int32

    def steps(self, raw: tf.Tensor, encode: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
        """Return the steps.

        Args:
            raw: As a request has it. [B, T]
            encode: From numbers to normalised ones, or from text to ids.
        """
        values = raw if raw.shape[1] == self.length else window(raw, self.length, self.keep)
        if self.ids is not None:
            return encode(values)
        missing = is_missing(values)
        numbers = tf.where(missing, 0.0, encode(values))
        return tf.stack([numbers, tf.cast(~missing, tf.float32)], axis=2)


def window(values: tf.Tensor, length: int, keep: Literal["first", "last"]) -> tf.Tensor:
    """Cut lists to one end of what they hold, or fill them up at the end. [B, T] → [B, length]."""
    batch = tf.shape(values)[0]
    filled = tf.concat([values, tf.fill([batch, length], missing_of(values.dtype))], axis=1)  # [B, T + length]
    places = tf.range(tf.shape(filled)[1])
    if keep == "last":
        ends = tf.reduce_max(tf.where(is_missing(filled), 0, places + 1), axis=1)  # [B]
        starts = tf.maximum(ends - length, 0)
        cut = tf.gather(filled, starts[:, tf.newaxis] + tf.range(length), axis=1, batch_dims=1)
    else:
        cut = filled[:, :length]
    return tf.ensure_shape(cut, [None, length])
