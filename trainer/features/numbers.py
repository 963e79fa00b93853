"""Numbers inside the model: what a value goes through before it is normalised, and the constants of that.

Comes in: float32 as a request has it, and the training split's statistics. Goes out: float32 that the same functions
made in training. Mean and deviation of what a transform makes are those of the line through the transformed quantiles,
which stand in the statistics in 5 % steps, so that no further pass over the data is needed.

What is normalised is held near what the training split had: beyond its least and its greatest number only the logarithm
of the distance counts. A network answers to a number far from all others with a line that no row has drawn, and one
mistyped number is then enough for an answer, or a loss, that is out of all proportion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import tensorflow as tf

from trainer.contract.documents import (
    NumericFeature,
    NumericStatistics,
    SequenceFeature,
    Statistics,
)
from trainer.contract.statistics import statistics_of
from trainer.errors import DataError
from trainer.features.values import is_missing
from trainer.features.vocabulary import FIRST_ID, MISSING_ID

_Transform = Callable[[tf.Tensor], tf.Tensor]
_LARGEST = float(np.finfo(np.float32).max)
NO_ENDS = (-_LARGEST, _LARGEST)
"""Of numbers that are not held: they are in a unit of their own, or nothing is known of them."""
_BUCKETS = 10
_TINY = 1e-30
"""A difference whose inverse float32 still holds, with room for values of its own."""
_CLIPPED = 0.05
"""Share of the training rows that `clip` takes as extreme at each end where nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """A numeric feature: encoded = `hold`((transform(value) or fill - mean) * scale).

    Attributes:
        name: Of the feature.
        fill: What stands for a missing value, after the transform.
        mean: Subtracted.
        scale: Multiplied.
        indicated: Whether a second column says that the value is missing.
        quantiles: Of the training split, as encoded, distinct and rising.
        ends: The least and the greatest of the training split and `fill`, as encoded; what is beyond is held near them.
        transform: None: a value stays as it is.
    """

    name: str
    fill: float
    mean: float
    scale: float
    indicated: bool
    quantiles: tuple[float, ...] = ()
    ends: tuple[float, float] = NO_ENDS
    transform: _Transform | None = None

    @classmethod
    def of(cls, feature: NumericFeature | SequenceFeature, statistics: Statistics) -> Number:
        """Take the constants from a training's statistics.

        Raises:
            DataError: They do not allow the transform.
        """
        known = statistics_of(feature, statistics)
        quantiles, ends = (known.quantiles, [known.min, known.max]) if known.kind == "numeric" else ((), [])
        transform = _transform(feature, known) if feature.kind == "numeric" and known.kind == "numeric" else None
        found, deviation = known.mean or 0.0, known.stddev
        reached = [value for value in ends if value is not None]
        if transform is not None:
            quantiles, reached = _eagerly(transform, quantiles), list(_eagerly(transform, reached))
            found, deviation = moments(quantiles)
        mean = found if feature.normalize else 0.0
        scale = 1.0 / deviation if feature.normalize and deviation and deviation > _TINY else 1.0
        fill = found
        if feature.kind == "numeric" and feature.missing == "zero":
            fill = _eagerly(transform, [0.0])[0] if transform else 0.0
        encoded = [(value - mean) * scale for value in (*reached, fill)]
        return cls(
            name=feature.name,
            fill=fill,
            mean=mean,
            scale=scale,
            indicated=known.nulls > 0,
            quantiles=tuple(sorted({(value - mean) * scale for value in quantiles})),
            ends=(min(encoded), max(encoded)) if reached and feature.normalize else NO_ENDS,
            transform=transform,
        )

    def transformed(self, values: tf.Tensor) -> tf.Tensor:
        """Transform; of what is missing anything comes out. [B] → [B]."""
        return values if self.transform is None else self.transform(values)

    def encode(self, values: tf.Tensor) -> tf.Tensor:
        """Normalise; what is missing stays so."""
        return hold((values - self.mean) * self.scale, *self.ends)


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """A number as a category: 0 is a missing one, and from 2 on the buckets follow each other.

    Attributes:
        boundaries: Where each bucket but the first begins, rising.
    """

    boundaries: tuple[float, ...]

    @classmethod
    def of(cls, feature: NumericFeature, statistics: Statistics) -> Buckets:
        """Take the file's boundaries, or those between equally many training rows; equal ones are one."""
        if feature.boundaries:
            return cls(boundaries=feature.boundaries)
        quantiles, count = statistics_of(feature, statistics).quantiles, feature.buckets or _BUCKETS
        inner = _at(quantiles, [place / count for place in range(1, count)])
        return cls(boundaries=tuple(sorted({value for value in inner if value > quantiles[0]})))

    @property
    def ids(self) -> int:
        """How many different ids there are."""
        return FIRST_ID + len(self.boundaries) + 1

    def codes(self, values: tf.Tensor) -> tf.Tensor:
        """Return ids. [B] → int32 [B]."""
        above = values[..., tf.newaxis] >= tf.constant(self.boundaries, tf.float32)  # [B, boundaries]
        place = tf.reduce_sum(tf.cast(above, tf.int32), axis=-1)
        return tf.where(is_missing(values), MISSING_ID, FIRST_ID + place)


def hold(values: tf.Tensor, low: tf.Tensor | float, high: tf.Tensor | float) -> tf.Tensor:
    """Return values as they are from `low` to `high`, and beyond them at ln(1 + distance) from there.

    It rises everywhere and has no corner: close to an end the distance counts almost whole. Without a value (NaN) none
    comes out.
    """
    above, below = tf.math.log1p(tf.nn.relu(values - high)), tf.math.log1p(tf.nn.relu(low - values))
    return tf.clip_by_value(values, low, high) + above - below


def moments(quantiles: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation of the distribution whose quantile function is the line through these.

    Each end counts as the quantile next to it: the least and the greatest value of many rows say little of the others.
    """
    inner = quantiles[1:-1]
    pairs = list(pairwise([inner[0], *inner, inner[-1]] if inner else quantiles))
    if not pairs:
        return (quantiles[0], 0.0) if quantiles else (0.0, 0.0)
    mean = sum(low + high for low, high in pairs) / 2 / len(pairs)
    moved = [(low - mean, high - mean) for low, high in pairs]
    return mean, math.sqrt(sum(low * low + low * high + high * high for low, high in moved) / 3 / len(pairs))


def _transform(feature: NumericFeature, known: NumericStatistics) -> _Transform | None:
    if feature.transform == "log1p":
        return _log1p(feature.name, known)
    if feature.transform == "clip":
        return _clip(feature, known.quantiles)
    return _ranks(known.quantiles) if feature.transform == "quantile" else None


def _log1p(name: str, known: NumericStatistics) -> _Transform:
    """Return ln(1 + value); what is below the least training value counts as that."""
    least = 0.0 if known.min is None else known.min
    if least <= -1:
        raise DataError(
            f"statistics of feature {name!r}",
            f"{least:g} in train",
            "numbers above -1, for transform: log1p",
            "Remove the transform, or move the numbers up in the query",
        )
    return lambda values: tf.math.log1p(tf.maximum(values, least))


def _clip(feature: NumericFeature, quantiles: Sequence[float]) -> _Transform:
    ends = _at(quantiles, [_CLIPPED, 1 - _CLIPPED]) if quantiles else [-math.inf, math.inf]
    low = ends[0] if feature.low is None else feature.low
    high = ends[1] if feature.high is None else feature.high
    return lambda values: tf.clip_by_value(values, low, max(low, high))


def _ranks(quantiles: Sequence[float]) -> _Transform:
    """Return the share of training rows below a value, by lines between quantiles; of equal ones the middle."""
    knots, places = np.unique(quantiles, return_inverse=True)
    shares = np.linspace(0, 1, len(quantiles))
    heights = [float(shares[places == at].mean()) for at in range(len(knots))]
    steps = [(*pair, *heights[at : at + 2]) for at, pair in enumerate(pairwise(knots.tolist()))]

    def rank(values: tf.Tensor) -> tf.Tensor:
        ramps = [
            tf.clip_by_value((values - low) / max(high - low, _TINY), 0.0, 1.0) * (above - below)
            for low, high, below, above in steps
        ]
        return tf.add_n(ramps) + heights[0] if ramps else tf.zeros_like(values)

    return rank


def _at(quantiles: Sequence[float], shares: Sequence[float]) -> list[float]:
    places = np.linspace(0, 1, len(quantiles))
    found: list[float] = np.interp(shares, places, quantiles).tolist() if len(quantiles) else []
    return found


def _eagerly(transform: _Transform, values: Sequence[float]) -> tuple[float, ...]:
    with tf.init_scope():
        return tuple(transform(tf.constant(values, tf.float32)).numpy().tolist())
