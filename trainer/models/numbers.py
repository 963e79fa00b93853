"""Numbers as a deep network reads them well: each beside where it lies between the quantiles of the training split.

A network of few layers learns a steep or bent answer to one number slowly. Piecewise linear encoding gives it, for each
interval between two quantiles, how far the number has come through it, from 0 to 1: so the first layer can answer to
each interval apart, and what lies outside all of them ends at 0 or 1, however far. Gorishniy et al., On Embeddings for
Numerical Features in Tabular Deep Learning, 2022, https://arxiv.org/abs/2203.05556
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from trainer.models.features import InputShape

_LEAST_EDGES = 3  # two intervals: with one, the encoding is the number itself


class PiecewiseLinear(tf_keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """How far each number has come through each of its intervals.

    Args:
        edges: Of each number, rising; of those with fewer than three nothing is given.
    """

    def __init__(self, edges: Sequence[Sequence[float]], name: str) -> None:
        super().__init__(name=name)
        bounds = [
            (column, low, high)
            for column, some in enumerate(edges)
            if len(some) >= _LEAST_EDGES
            for low, high in itertools.pairwise(some)
        ]
        self.intervals = len(bounds)
        self._columns = [column for column, _, _ in bounds]
        self._low = np.array([low for _, low, _ in bounds], np.float32)
        self._scale = np.array([1.0 / (high - low) for _, low, high in bounds], np.float32)

    @property
    def columns(self) -> list[int]:
        """Column of the numbers that each interval is of."""
        return self._columns

    def edges(self, column: int) -> np.ndarray[Any, Any]:
        """Return where a column's intervals begin, and where the last one ends. → [intervals + 1], or none."""
        places = [place for place, each in enumerate(self._columns) if each == column]
        lows = self._low[places]
        return np.append(lows, lows[-1:] + 1.0 / self._scale[places][-1:]) if places else lows

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Encode. [B, n] → [B, intervals]."""
        numbers = tf.gather(inputs, self._columns, axis=1)
        low, scale = tf.constant(self._low, inputs.dtype), tf.constant(self._scale, inputs.dtype)
        return tf.clip_by_value((numbers - low) * scale, 0.0, 1.0)


def piecewise_linear(shape: InputShape, intervals: int) -> PiecewiseLinear | None:
    """Return the encoding of a model's numbers in at most so many intervals each; None: there is nothing to encode."""
    if not intervals:
        return None
    layer = PiecewiseLinear([_thinned(edges, intervals) for edges in shape.quantiles], name="intervals")
    return layer if layer.intervals else None


def _thinned(edges: Sequence[float], intervals: int) -> list[float]:
    """Leave out edges, evenly, until there are so many intervals."""
    if len(edges) <= intervals + 1:
        return list(edges)
    places = np.unique(np.round(np.linspace(0, len(edges) - 1, intervals + 1)).astype(int))
    return [edges[place] for place in places]
