"""What a new model's YAML guesses of each feature: its kind, and what its values go through.

In: a column's profile. Out: the entry of `features` behind the name, such as `numeric, transform: log1p`. A transform
is proposed where the values say that the number itself is a bad measure; what it is worth, only a training shows.
"""

from __future__ import annotations

from retraining.core.data.column_roles import types_of
from retraining.core.data.table_profile import QUANTILE_STEPS, ColumnProfile
from retraining.core.spec.features import DEFAULT_VOCABULARY

_HEAVY_TAIL = 5
"""How many times as far the 95 % quantile is above the median as the median above the 5 % quantile: 1 of a symmetric
distribution, 3.6 of an exponential one, 11.8 of a log-normal one with a deviation of 1.5."""
_LARGE = 3.0
"""From there on a logarithm of 1 + value is no straight line; what a tail has above the median."""
_WILD = 5
"""How many times as far an end is from the 5 % or 95 % quantile as these are from each other: of a million normal
numbers 1, of exponential ones 3.7."""
_LEAST_VALUES = 20
"""Different ones; of fewer none is a tail."""
_FEW_HASHED, _FEW_BUCKETS, _MANY_BUCKETS = 10_000, 1000, 10_000


def guess_feature(found: ColumnProfile) -> str:
    """Return a feature's kind with its options, as they stand in YAML behind the name."""
    type_ = found.column.type
    if type_ in types_of("time"):
        return f"time, parts: [{'weekday' if type_ == 'DATE' else 'hour, weekday'}]"
    if type_ in types_of("numeric"):
        transform = _transform(found)
        return f"numeric, transform: {transform}" if transform else "numeric"
    distinct = found.distinct or 0
    if distinct <= DEFAULT_VOCABULARY:
        return "categorical"
    return f"categorical, hash_buckets: {_FEW_BUCKETS if distinct <= _FEW_HASHED else _MANY_BUCKETS}"


def plain_kind(feature: str) -> str:
    """Return the kind alone."""
    return feature.split(",", 1)[0]


def _transform(found: ColumnProfile) -> str:
    """Return `log1p` for a heavy tail of numbers from 0 on, `clip` for single wild values; empty: neither."""
    if len(found.quantiles) != QUANTILE_STEPS + 1 or (found.distinct or 0) < _LEAST_VALUES:
        return ""
    least, low, middle, high, greatest = (found.quantiles[at] for at in (0, 1, QUANTILE_STEPS // 2, -2, -1))
    if least >= 0 and high >= _LARGE and high - middle > _HEAVY_TAIL * (middle - low):
        return "log1p"
    spread = high - low
    return "clip" if spread > 0 and max(greatest - high, low - least) > _WILD * spread else ""
