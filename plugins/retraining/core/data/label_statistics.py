"""What the statistics query asks of the label, and what its rows say of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from retraining.core.data.sql import Parameter
from retraining.core.documents.checks import DayLabels, LabelNumbers, LabelStatistics, OutsideLabels
from retraining.core.spec.features import AuxiliaryLabel, Label, class_count
from retraining.core.untyped import TemplateValues

Row = Mapping[str, Any]


def label_values(label: Label | AuxiliaryLabel) -> TemplateValues:
    """Return what the template needs to know of the label's kind."""
    if label.kind != "regression":
        return {"binary": label.kind == "binary", "numbers": None}
    limits = [name for name, limit in (("low", label.lowest), ("high", label.max)) if limit is not None]
    return {"binary": False, "numbers": {"limits": limits, "log1p": label.transform == "log1p"}}


def label_parameters(label: Label | AuxiliaryLabel, stem: str = "") -> list[Parameter]:
    """Return how many classes there are, or the bounds of a number; `stem` begins the names of an auxiliary label's."""
    if label.kind != "regression":
        return [Parameter(name=f"{stem}_classes" if stem else "classes", type="INT64", value=class_count(label))]
    limits = {f"{stem or 'label'}_low": label.lowest, f"{stem or 'label'}_high": label.max}
    return [Parameter(name=name, type="FLOAT64", value=value) for name, value in limits.items() if value is not None]


def build_label(label: Label | AuxiliaryLabel, totals: Sequence[Row], rows: Sequence[Row]) -> LabelStatistics:
    """Return the statistics of the label from its split's rows per day and its rows per class.

    Of a regression the classes are `right` and, after the label's transform, `log1p`.
    """
    none = next((row for row in rows if row["value"] is None), None)
    nulls = sum(int(row["nulls"] or 0) for row in totals)
    outside = (
        OutsideLabels(rows=int(none["row_count"]), low=finite(none["low"]), high=finite(none["high"])) if none else None
    )
    if label.kind == "regression":
        return LabelStatistics(mean=None, nulls=nulls, outside=outside, numbers=_numbers(rows))
    counts = {int(row["value"]): int(row["row_count"]) for row in rows if row["value"] is not None}
    total, binary = sum(counts.values()), label.kind == "binary"
    return LabelStatistics(
        mean=counts.get(1, 0) / total if binary and total else None,
        nulls=nulls,
        counts=None if binary else tuple(counts.get(index, 0) for index in range(class_count(label))),
        outside=outside,
    )


def build_day_label(label: Label, totals: Sequence[Row], rows: Sequence[Row]) -> DayLabels:
    """Return the label of one day from its rows per split and the row about its labels."""
    mean, deviation = (finite(rows[0][name]) if rows else None for name in ("mean", "deviation"))
    is_number = label.kind == "regression"
    return DayLabels(
        nulls=sum(int(row["nulls"]) for row in totals),
        outside=sum(int(row["outside"]) for row in rows),
        rate=None if is_number else mean,
        mean=mean if is_number else None,
        stddev=deviation if is_number else None,
    )


def _numbers(rows: Sequence[Row]) -> LabelNumbers:
    named: dict[str, Row] = {str(row["value"]): row for row in rows}
    known = named.get("right", {})
    trained = named.get("log1p", known)
    return LabelNumbers(
        min=finite(known.get("low")),
        max=finite(known.get("high")),
        mean=finite(known.get("mean")),
        stddev=finite(known.get("deviation")),
        quantiles=tuple(float(value) for value in known.get("quantiles") or [] if value is not None),
        trained_mean=finite(trained.get("mean")),
        trained_stddev=finite(trained.get("deviation")),
    )


def finite(value: object) -> float | None:
    """Return a number; None: it is missing, or none."""
    number = None if value is None else float(str(value))
    return number if number is not None and math.isfinite(number) else None
