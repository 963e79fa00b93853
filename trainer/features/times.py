"""Times inside the model: their parts as numbers, computed in whole microseconds.

Comes in: int64 microseconds since 1970-01-01 00:00, as BigQuery's UNIX_MICROS gives and as a TIMESTAMP stands in
examples (in UTC; a DATETIME has no time zone, a DATE is its midnight). float32 would hold them to 134 seconds. Goes
out: float32, of a part that comes round sine and cosine, so that 23:59 lies beside 00:00 and December beside January.

    hour      2π * microseconds of the day / those of a day
    weekday   2π * whole days since Monday / 7
    month     2π * whole months since January / 12, of the proleptic Gregorian calendar
    days      (time - mean of the training split) / its standard deviation, held near that split's first and last time
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import tensorflow as tf

from trainer.contract.documents import Statistics, TimeFeature
from trainer.contract.statistics import statistics_of
from trainer.features.numbers import NO_ENDS, hold
from trainer.features.values import is_missing

DAY = 86_400_000_000
"""Microseconds."""
_MONDAY = 3
"""1970-01-01 was a Thursday: so many days after a Monday."""
_CYCLE, _LINE = 2, 1
"""Numbers that a part becomes."""


@dataclass(frozen=True, kw_only=True)
class Time:
    """A time feature: what its parts are, and the constants of its days.

    Attributes:
        name: Of the feature.
        parts: In the order of the numbers.
        mean: Microseconds since 1970, subtracted.
        scale: Per microsecond, multiplied.
        indicated: Whether one more number says that the time is missing.
        ends: The first and the last time of the training split, as its days are encoded (`trainer.features.numbers`).
    """

    name: str
    parts: tuple[str, ...]
    mean: int
    scale: float
    indicated: bool
    ends: tuple[float, float] = NO_ENDS

    @classmethod
    def of(cls, feature: TimeFeature, statistics: Statistics) -> Time:
        """Take the constants from a training's statistics, which are in days since 1970."""
        known = statistics_of(feature, statistics)
        mean, unit = known.mean or 0.0, known.stddev or 1.0
        first, last = known.min, known.max
        return cls(
            name=feature.name,
            parts=feature.parts,
            mean=round(mean * DAY),
            scale=1.0 / (unit * DAY),
            indicated=known.nulls > 0,
            ends=NO_ENDS if first is None or last is None else ((first - mean) / unit, (last - mean) / unit),
        )

    @property
    def width(self) -> int:
        """How many numbers it becomes, without the one that says that it is missing."""
        return sum(_LINE if part == "days" else _CYCLE for part in self.parts)

    def numbers(self, values: tf.Tensor) -> tf.Tensor:
        """Return its parts; of a missing time all are 0: no direction, and the mean day. int64 [B] → [B, width]."""
        columns = [column for part in self.parts for column in self._part(part, values)]
        missing = is_missing(values)[:, tf.newaxis]
        found = tf.stack(columns, axis=1)  # [B, width]
        return tf.where(missing, tf.zeros_like(found), found)

    def _part(self, part: str, values: tf.Tensor) -> list[tf.Tensor]:
        if part == "days":
            line = tf.cast(tf.cast(values - self.mean, tf.float64) * self.scale, tf.float32)
            return [hold(line, *self.ends)]
        days = tf.math.floordiv(values, DAY)
        if part == "hour":
            return _cycle(tf.cast(values - days * DAY, tf.float64) / DAY)
        if part == "weekday":
            return _cycle(tf.cast(tf.math.floormod(days + _MONDAY, 7), tf.float64) / 7)
        return _cycle(tf.cast(month_of(days), tf.float64) / 12)


def month_of(days: tf.Tensor) -> tf.Tensor:
    """Return months since January, 0 to 11, of whole days since 1970-01-01. int64 [B] → int64 [B].

    `civil_from_days` of https://howardhinnant.github.io/date_algorithms.html: years begin in March, so that the leap
    day is the last one, and eras of 400 years are all alike.
    """
    day = tf.math.floormod(days + 719_468, 146_097)  # of the era, from 0
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365  # of the era, from 0
    of_year = day - (365 * year + year // 4 - year // 100)  # from the 1st of March, from 0
    return tf.math.floormod((5 * of_year + 2) // 153 + 2, 12)


def _cycle(turns: tf.Tensor) -> list[tf.Tensor]:
    angle = 2 * math.pi * turns
    return [tf.cast(tf.sin(angle), tf.float32), tf.cast(tf.cos(angle), tf.float32)]
