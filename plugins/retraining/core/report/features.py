"""What the features look like in the training split: one line per feature for the page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from retraining.core.documents.checks import (
    BagStatistics,
    CategoricalStatistics,
    FeatureStatistics,
    ImageStatistics,
    NumericStatistics,
    SequenceStatistics,
    Statistics,
    TextStatistics,
    TimeStatistics,
)
from retraining.core.report.run import Run

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class FeatureRow:
    """One feature. `missing` is a share in [0, 1], None without a row; `typical` says in words what values it has."""

    name: str
    kind: str
    missing: float | None
    typical: str


def feature_rows(run: Run, statistics: Statistics) -> list[FeatureRow]:
    """Return the rows of the features table, in the order of the spec."""
    train = statistics.splits["train"]
    rows = []
    for feature in run.plan.spec.features:
        of_feature = train.features.get(feature.name)
        if of_feature is not None:
            rows.append(
                FeatureRow(
                    name=feature.name,
                    kind=of_feature.kind,
                    missing=of_feature.nulls / train.rows if train.rows else None,
                    typical=_typical(of_feature, train.rows),
                )
            )
    return rows


def _typical(statistics: FeatureStatistics, rows: int) -> str:
    if isinstance(statistics, ImageStatistics):
        return _image(statistics)
    if isinstance(statistics, SequenceStatistics):
        return _sequence(statistics)
    if isinstance(statistics, TextStatistics | BagStatistics):
        return _text(statistics)
    if isinstance(statistics, TimeStatistics):
        return _time(statistics)
    return _numeric(statistics) if isinstance(statistics, NumericStatistics) else _categorical(statistics, rows)


def _image(statistics: ImageStatistics) -> str:
    if statistics.mean_bytes is None:
        return "no value"
    return f"files of {statistics.mean_bytes:,.0f} bytes, from {statistics.min_bytes:,} to {statistics.max_bytes:,}"


def _sequence(statistics: SequenceStatistics) -> str:
    if statistics.mean_length is None:
        return "no value"
    lengths = f"{statistics.mean_length:,.1f} elements, from {statistics.min_length:,} to {statistics.max_length:,}"
    if statistics.top:
        top = ", ".join(item.value for item in statistics.top[:3])
        return f"{lengths}; {statistics.distinct:,} values: {top}{', …' if statistics.distinct > 3 else ''}"
    if statistics.mean is None or statistics.stddev is None:
        return lengths
    return f"{lengths}; {statistics.mean:.4g} ± {statistics.stddev:.4g}"


def _text(lengths: TextStatistics | BagStatistics) -> str:
    if lengths.mean_length is None:
        return "no value"
    return f"texts of {lengths.mean_length:,.0f} characters, from {lengths.min_length:,} to {lengths.max_length:,}"


def _time(times: TimeStatistics) -> str:
    if times.min is None or times.max is None:
        return "no value"
    first, last = (_EPOCH + timedelta(days=days) for days in (times.min, times.max))
    return f"from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"


def _numeric(statistics: NumericStatistics) -> str:
    if statistics.mean is None or statistics.min is None or statistics.max is None:
        return "no value"
    spread = f" ± {statistics.stddev:.4g}" if statistics.stddev is not None else ""
    return f"{statistics.mean:.4g}{spread}, from {statistics.min:.4g} to {statistics.max:.4g}"


def _categorical(statistics: CategoricalStatistics, rows: int) -> str:
    if not statistics.top or not rows:
        return "no value"
    values = "value" if statistics.distinct == 1 else "values"
    top = ", ".join(f"{item.value} {item.count / rows:.0%}" for item in statistics.top[:3])
    return f"{statistics.distinct:,} {values}: {top}{', …' if statistics.distinct > 3 else ''}"
