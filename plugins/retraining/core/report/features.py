"""What the features look like in the training split: one line per feature for the page."""

from __future__ import annotations

from dataclasses import dataclass

from retraining.core.documents.checks import (
    CategoricalStatistics,
    FeatureStatistics,
    ImageStatistics,
    NumericStatistics,
    SequenceStatistics,
    Statistics,
    TextStatistics,
)
from retraining.core.report.run import Run


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
        found = train.features.get(feature.name)
        if found is not None:
            rows.append(
                FeatureRow(
                    name=feature.name,
                    kind=found.kind,
                    missing=found.nulls / train.rows if train.rows else None,
                    typical=_typical(found, train.rows),
                )
            )
    return rows


def _typical(found: FeatureStatistics, rows: int) -> str:
    if isinstance(found, ImageStatistics):
        return _image(found)
    if isinstance(found, SequenceStatistics):
        return _sequence(found)
    if isinstance(found, TextStatistics):
        return _text(found)
    return _numeric(found) if isinstance(found, NumericStatistics) else _categorical(found, rows)


def _image(found: ImageStatistics) -> str:
    if found.mean_bytes is None:
        return "no value"
    return f"files of {found.mean_bytes:,.0f} bytes, from {found.min_bytes:,} to {found.max_bytes:,}"


def _sequence(found: SequenceStatistics) -> str:
    if found.mean_length is None:
        return "no value"
    lengths = f"{found.mean_length:,.1f} elements, from {found.min_length:,} to {found.max_length:,}"
    if found.top:
        top = ", ".join(item.value for item in found.top[:3])
        return f"{lengths}; {found.distinct:,} values: {top}{', …' if found.distinct > 3 else ''}"
    if found.mean is None or found.stddev is None:
        return lengths
    return f"{lengths}; {found.mean:.4g} ± {found.stddev:.4g}"


def _text(found: TextStatistics) -> str:
    if found.mean_length is None:
        return "no value"
    return f"texts of {found.mean_length:,.0f} characters, from {found.min_length:,} to {found.max_length:,}"


def _numeric(found: NumericStatistics) -> str:
    if found.mean is None or found.min is None or found.max is None:
        return "no value"
    spread = f" ± {found.stddev:.4g}" if found.stddev is not None else ""
    return f"{found.mean:.4g}{spread}, from {found.min:.4g} to {found.max:.4g}"


def _categorical(found: CategoricalStatistics, rows: int) -> str:
    if not found.top or not rows:
        return "no value"
    values = "value" if found.distinct == 1 else "values"
    top = ", ".join(f"{item.value} {item.count / rows:.0%}" for item in found.top[:3])
    return f"{found.distinct:,} {values}: {top}{', …' if found.distinct > 3 else ''}"
