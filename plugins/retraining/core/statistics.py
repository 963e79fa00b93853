"""One pass over the run table: per split and feature what checks, normalisation, vocabularies and drift need."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from retraining.core.documents.data import (
    CategoricalStatistics,
    ImageStatistics,
    KeyStatistics,
    LabelStatistics,
    NumericStatistics,
    OutsideLabels,
    Snapshot,
    SplitStatistics,
    Statistics,
    ValueCount,
)
from retraining.core.documents.planning import Plan
from retraining.core.errors import DataError
from retraining.core.queries import Parameter, Query, render

MAX_CATEGORIES = 1000
QUANTILE_STEPS = 20
SPLITS = ("train", "validation", "test")

Row = Mapping[str, Any]


def render_statistics_sql(plan: Plan, snapshot: Snapshot) -> Query:
    """One query over the run table, one row per fact.

    Columns: `section` (`rows`, `keys`, `numeric`, `category`, `image`: sizes in bytes, `label`: a row per class),
    `split`, `feature`, `row_count`, `nulls`, `low`, `high`, `mean`, `deviation`, `quantiles` (21 in 5 % steps),
    `distinct_count`, `value`. Split is by span first: all parts of the test days are the test split.
    """
    spec = plan.spec
    classes = spec.label.classes if spec.label.kind == "multiclass" else None
    sql = render(
        "statistics.sql.j2",
        table=snapshot.table,
        key=spec.data.key,
        label=spec.label.name,
        numeric=[feature.name for feature in spec.features if feature.kind == "numeric"],
        categorical=[feature.name for feature in spec.features if feature.kind == "categorical"],
        images=[feature.name for feature in spec.features if feature.kind == "image"],
        classes=classes,
        steps=QUANTILE_STEPS,
    )
    return Query(
        sql=sql,
        parameters=(
            Parameter(name="test_start", type="DATE", value=plan.window.test_start.isoformat()),
            Parameter(name="max_categories", type="INT64", value=MAX_CATEGORIES),
            *([Parameter(name="classes", type="INT64", value=classes)] if classes else []),
        ),
    )


def build_statistics(plan: Plan, snapshot: Snapshot, rows: Iterable[Row]) -> Statistics:
    """The statistics document from the query's rows. A split without rows is there with zeros.

    Raises:
        DataError: The query gave no row about the keys, so it was not the query of `render_statistics_sql`.
    """
    sections: dict[str, dict[tuple[str, str], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        sections[str(row["section"])][str(row["split"] or ""), str(row["feature"] or "")].append(row)
    if not sections["keys"]:
        raise DataError(
            snapshot.table, "statistics without a row about keys", "the rows of statistics.sql.j2", "Clear the task"
        )
    keys = next(iter(sections["keys"].values()))[0]
    return Statistics(
        model=plan.model,
        run_key=plan.run_key,
        table=snapshot.table,
        window=plan.window,
        keys=KeyStatistics(distinct=int(keys["distinct_count"] or 0), nulls=int(keys["nulls"] or 0)),
        splits={split: _split(plan, split, sections) for split in SPLITS},  # type: ignore[misc]  # SPLITS are the literals
    )


def _split(plan: Plan, split: str, sections: Mapping[str, Mapping[tuple[str, str], list[Row]]]) -> SplitStatistics:
    totals = sections["rows"].get((split, ""))
    total = totals[0] if totals else None
    row_count = int(total["row_count"]) if total else 0
    features: dict[str, NumericStatistics | CategoricalStatistics | ImageStatistics] = {}
    for feature in plan.spec.features:
        if feature.kind == "numeric":
            features[feature.name] = _numeric(sections["numeric"].get((split, feature.name), []), row_count)
        elif feature.kind == "image":
            features[feature.name] = _image(sections["image"].get((split, feature.name), []), row_count)
        else:
            features[feature.name] = _categorical(sections["category"].get((split, feature.name), []))
    return SplitStatistics(
        rows=row_count, features=features, label=_label(plan, total, sections["label"].get((split, ""), []))
    )


def _label(plan: Plan, total: Row | None, rows: list[Row]) -> LabelStatistics:
    """Statistics of the label from its split's row of totals and its rows per class."""
    nulls = int(total["nulls"] or 0) if total else 0
    label = plan.spec.label
    if label.kind == "binary":
        return LabelStatistics(mean=_number(total["mean"]) if total else None, nulls=nulls)
    counts = {int(row["value"]): int(row["row_count"]) for row in rows if row["value"] is not None}
    outside = next((row for row in rows if row["value"] is None), None)
    return LabelStatistics(
        mean=None,
        nulls=nulls,
        counts=tuple(counts.get(index, 0) for index in range(label.classes)),
        outside=OutsideLabels(
            rows=int(outside["row_count"]), low=_number(outside["low"]), high=_number(outside["high"])
        )
        if outside
        else None,
    )


def _numeric(rows: list[Row], row_count: int) -> NumericStatistics:
    row = rows[0] if rows else None
    quantiles = list(row["quantiles"] or []) if row else []
    return NumericStatistics(
        kind="numeric",
        nulls=int(row["nulls"]) if row else row_count,
        min=_number(row["low"], str(row["feature"])) if row else None,
        max=_number(row["high"], str(row["feature"])) if row else None,
        mean=_number(row["mean"], str(row["feature"])) if row else None,
        stddev=_number(row["deviation"], str(row["feature"])) if row else None,
        quantiles=tuple(float(value) for value in quantiles if value is not None),
    )


def _image(rows: list[Row], row_count: int) -> ImageStatistics:
    row = rows[0] if rows else None
    sizes = None if row is None or row["low"] is None else row
    return ImageStatistics(
        kind="image",
        nulls=int(row["nulls"]) if row else row_count,
        min_bytes=int(sizes["low"]) if sizes else None,
        max_bytes=int(sizes["high"]) if sizes else None,
        mean_bytes=_number(sizes["mean"]) if sizes else None,
    )


def _categorical(rows: list[Row]) -> CategoricalStatistics:
    known = [row for row in rows if row["value"] is not None]
    counted = sorted(
        (ValueCount(value=str(row["value"]), count=int(row["row_count"])) for row in known),
        key=lambda item: (-item.count, item.value),
    )
    return CategoricalStatistics(
        kind="categorical",
        nulls=sum(int(row["row_count"]) for row in rows if row["value"] is None),
        distinct=max((int(row["distinct_count"]) for row in known), default=0),
        top=tuple(counted[:MAX_CATEGORIES]),
    )


def _number(value: object, feature: str = "the label") -> float | None:
    if value is None:
        return None
    number = float(str(value))
    if not math.isfinite(number):
        raise DataError(f"feature {feature}", f"the value {number}", "finite numbers", "Use NULL for it in the query")
    return number
