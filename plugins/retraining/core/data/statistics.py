"""One pass over the run table: per split and feature what checks, normalisation, vocabularies and drift need.

Columns: `section`, `split`, `day`, `feature`, `row_count`, `nulls`, `low`, `high`, `mean`, `deviation`, `quantiles`
(21 in 5 % steps), `by_label` (201 quantiles of the rows of 0, then of those of 1), `distinct_count`, `value`,
`outside` (of numbers: not whole), `also_tested`. Sections: `day` (a row per split and day; `nulls` of the label,
`low` and `high` are the first and last event in seconds since 1970), `keys` (`outside`: in train and validation),
`label` (a row per class; of a regression `right` and, after the label's transform, `log1p`), `day_label` (`mean` is
the share as in `DayLabels.rate`, of a regression the mean), `watched` (a row per day and feature that has a limit,
and the key), `auxiliary_rows` and `auxiliary` (`nulls` of an auxiliary label, and rows as of the label), `weight`
(`outside`: below 0 or infinite), `numeric` (times too, in days), `association` (what a number tells: of a regression
`low` and `high` are the variance of the label's rank within the number's bins and in all, of several classes a row
per class with the number's quantiles), `bin` (`value` of a histogram with edges in `quantiles`), `tail` (`value`: the
hash), `usual` (101 `quantiles` of how far a training day is from the others; `row_count` days), `category` (`deviation`
is of the label, or the sum of n ln n over its classes), `fill` (`quantiles` are shares of rows with a value, a day
each, the newest first), `size` (of images in bytes, of texts and bags in characters), `object` (a row per image and
what is wrong with objects; `value` says what), `sequence` (lengths), `element` (a sequence's numbers),
`element_category` (its categories). Split is by span first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from retraining.core.data.column_roles import reading, role_of
from retraining.core.data.image_objects import image_objects
from retraining.core.data.label_association import (
    BINS,
    LABEL_STEPS,
    association_of,
    auc_of_categories,
    auc_of_number,
    categories_tell_label,
    class_steps,
    leaking_correlation,
    number_tells_label,
    one_label_each,
)
from retraining.core.data.label_statistics import build_day_label, build_label, finite, label_parameters, label_values
from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.checks import (
    BagStatistics,
    CategoricalStatistics,
    DayFeature,
    DayStatistics,
    FeatureStatistics,
    ImageStatistics,
    KeyStatistics,
    NumberHistogram,
    NumericStatistics,
    SequenceStatistics,
    SplitStatistics,
    Statistics,
    TextStatistics,
    TimeStatistics,
    UnreadableObjects,
    UsualDistance,
    ValueCount,
    WeightStatistics,
)
from retraining.core.documents.plan import Plan
from retraining.core.documents.snapshot import Snapshot
from retraining.core.errors import DataError
from retraining.core.spec.features import Feature, Label
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import TemplateValues

MAX_CATEGORIES = 1000
MAX_TAIL = 16_384
"""Counts by hash of the values beyond them."""
_ROOM = 4
"""Counts by hash for each such value, up to that many: so three quarters of them stay empty, and show new values."""
_FREQUENT = 0.01
"""Share of the rows from which on a number has a bin of its own."""
KEY_SHARE = 0.9
"""Different values a row, from which on a feature is like a key."""
KEY_ROWS = 30
"""Rows below which different values are no wonder."""
ROW_NUMBER_RANGE = 2
"""Of whole numbers: their range for a row of training, at most; the gaps are the rows of validation and test."""
QUANTILE_STEPS = 20
_TAIL = math.log(50) / math.log(5)
"""Of the exponential distribution: how much farther from the median the 99th percentile is than the 90th."""
FILL_DAYS = 60
"""Newest days whose share of rows with a value is kept, feature by feature."""
SPLITS = ("train", "validation", "test")
_AUXILIARY = ("auxiliary_rows", "auxiliary")

Row = Mapping[str, Any]
_Sections = Mapping[str, Mapping[tuple[str, str], list[Row]]]


def render_statistics_sql(plan: Plan, snapshot: Snapshot, quarantined: Sequence[date] = ()) -> Query:
    """Return one query over the run table, one row per fact.

    Its columns and sections stand above.

    Args:
        plan: The run.
        snapshot: Its run table.
        quarantined: Days to leave out.
    """
    spec, columns = plan.spec, _Columns(plan.spec, snapshot)
    sql = render(
        "statistics.sql.j2",
        table=snapshot.table,
        key=spec.data.key,
        event_time=spec.data.event_time,
        label=columns.read_column(spec.label.name, spec.label.kind),
        **label_values(spec.label),
        weight=columns.read_column(spec.data.weight, "weight") if spec.data.weight else None,
        auxiliary=columns.auxiliary(),
        watched=columns.watched(),
        numeric=[*columns.of_kind("numeric"), *columns.of_kind("time")],
        categorical=columns.of_kind("categorical"),
        sized=[column for kind in ("image", "text", "bag") for column in columns.of_kind(kind)],
        objects=[image.name for image in image_objects(spec)],
        sequences=columns.sequences(),
        association=association_of(spec.label),
        filled=columns.filled() if spec.data.split == "time" else [],
        by_days=spec.data.split == "time",
        steps=_steps(spec.label),
        quarantined=bool(quarantined),
    )
    days = tuple(day.isoformat() for day in quarantined)
    return Query(
        sql=sql,
        parameters=(
            Parameter(name="test_start", type="DATE", value=plan.window.test_start.isoformat()),
            Parameter(name="max_categories", type="INT64", value=MAX_CATEGORIES),
            Parameter(name="least_rows", type="INT64", value=spec.monitoring.min_requests),
            Parameter(name="tail_mask", type="INT64", value=MAX_TAIL - 1),
            *label_parameters(spec.label),
            *columns.auxiliary_parameters(),
            *columns.limits(),
            *([Parameter(name="quarantined", type="DATE", value=days)] if days else []),
        ),
    )


def _steps(label: Label) -> TemplateValues:
    """Return how many quantiles, bins and days the template takes."""
    return {
        "feature": QUANTILE_STEPS,
        "by_label": LABEL_STEPS,
        "bins": BINS,
        "by_class": class_steps(label),
        "fill": FILL_DAYS,
    }


class _Columns:
    """The columns as the template wants them: name, and how the type is read (`kind`)."""

    def __init__(self, spec: ModelSpec, snapshot: Snapshot) -> None:
        self._spec = spec
        self._types = {column.name: column.type for column in snapshot.columns if column.mode != "REPEATED"}
        self._lists = {column.name: column.type for column in snapshot.columns if column.mode == "REPEATED"}

    def read_column(self, name: str, role: str) -> TemplateValues:
        """Return how a column's values are read; what has a wrong type is a finding, and read as missing."""
        return {"name": name, "kind": reading(role, self._types.get(name, ""))}

    def auxiliary(self) -> list[TemplateValues]:
        """Return the auxiliary labels; `stem` begins the names of what the statement makes of one."""
        return [
            {**self.read_column(label.name, label.kind), **label_values(label), "stem": _stem(index)}
            for index, label in enumerate(self._spec.auxiliary_labels)
        ]

    def auxiliary_parameters(self) -> list[Parameter]:
        """Return what the statement compares them with."""
        labels = enumerate(self._spec.auxiliary_labels)
        return [parameter for index, label in labels for parameter in label_parameters(label, _stem(index))]

    def of_kind(self, kind: str) -> list[TemplateValues]:
        """Return the features of a kind."""
        features = (feature for feature in self._spec.features if feature.kind == kind)
        return [self.read_column(feature.name, role_of(feature)) for feature in features]

    def sequences(self) -> list[TemplateValues]:
        """Return the features of arrays; `of` says what their elements are."""
        columns = []
        for feature in self._spec.features:
            if feature.kind == "sequence":
                kind = reading(role_of(feature), self._lists.get(feature.name, ""))
                columns.append({"name": feature.name, "of": feature.of, "kind": kind})
        return columns

    def filled(self) -> list[TemplateValues]:
        """Return all features; `is_list` where no element is no value."""
        return [{"name": feature.name, "is_list": feature.name in self._lists} for feature in self._spec.features]

    def watched(self) -> list[TemplateValues]:
        """Return the key, and the features with a limit; `range` is the stem of the parameters with its bounds."""
        checks = self._spec.data.checks
        places = {name: index for index, name in enumerate(checks.ranges)}
        plain: TemplateValues = {"kind": "none", "limited": False, "range": None, "is_list": False}
        columns = [{**plain, "name": self._spec.data.key}]
        for feature in self._spec.features:
            name = feature.name
            if name in checks.max_null_fraction or name in places:
                column = {} if feature.kind == "sequence" else self.read_column(name, role_of(feature))
                limit = f"range_{places[name]}" if name in places else None
                is_list = feature.kind == "sequence" and name in self._lists
                columns.append(
                    {
                        **plain,
                        **column,
                        "name": name,
                        "limited": feature.kind == "numeric",
                        "range": limit,
                        "is_list": is_list,
                    }
                )
        return columns

    def limits(self) -> list[Parameter]:
        """Return the bounds of `data.checks.ranges`."""
        return [
            Parameter(name=f"range_{index}_{end}", type="FLOAT64", value=bound)
            for index, bounds in enumerate(self._spec.data.checks.ranges.values())
            for end, bound in zip(("low", "high"), bounds, strict=True)
        ]


def build_days(plan: Plan, rows: Iterable[Row]) -> tuple[DayStatistics, ...]:
    """Return what is known of each day that has examples, from the query's rows, in order; without a time no day."""
    if plan.spec.data.split == "hash":
        return ()
    sections: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        sections[str(row["section"])][str(row["day"] or "")].append(row)
    days = []
    for day in sorted(sections["day"]):
        totals, labels = sections["day"][day], sections["day_label"].get(day, [])
        watched = {str(row["feature"]): row for row in sections["watched"].get(day, [])}
        key = watched.pop(plan.spec.data.key, None)
        days.append(
            DayStatistics(
                span=date.fromisoformat(day),
                rows=sum(int(row["row_count"]) for row in totals),
                last_event=_event(max(row["high"] for row in totals)),
                key_nulls=int(key["nulls"]) if key else 0,
                label=build_day_label(plan.spec.label, totals, labels),
                features={name: _day_feature(row) for name, row in sorted(watched.items())},
            )
        )
    return tuple(days)


def build_statistics(
    plan: Plan,
    snapshot: Snapshot,
    rows: Iterable[Row],
    days: tuple[DayStatistics, ...] | None = None,
    quarantined: Sequence[date] = (),
) -> Statistics:
    """Return the statistics document from the query's rows. A split without rows is there with zeros.

    Args:
        plan: The run.
        snapshot: Its run table.
        rows: Result of `render_statistics_sql`.
        days: All days, when `rows` are without the quarantined ones.
        quarantined: The days that `rows` are without.

    Raises:
        DataError: The query gave no row about the keys, so it was not the query of `render_statistics_sql`.
    """
    listed = list(rows)
    sections: dict[str, dict[tuple[str, str], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in listed:
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
        keys=KeyStatistics(
            distinct=int(keys["distinct_count"] or 0),
            nulls=int(keys["nulls"] or 0),
            in_two_parts=int(keys["outside"] or 0),
            also_tested=int(keys["also_tested"] or 0),
        ),
        splits={split: _split(plan, split, sections) for split in SPLITS},  # type: ignore[misc]  # SPLITS are the literals
        days=build_days(plan, listed) if days is None else days,
        quarantined=tuple(quarantined),
        fills={feature: shares for (_, feature), rows in sections["fill"].items() if (shares := _fills(rows))},
    )


def _fills(rows: list[Row]) -> tuple[float, ...]:
    """Return a feature's share of rows with a value, day by day; nothing where no day is without one."""
    shares = tuple(float(value) for value in rows[0]["quantiles"] or ())
    return shares if any(share < 1 for share in shares) else ()


def _split(plan: Plan, split: str, sections: _Sections) -> SplitStatistics:
    totals = sections["day"].get((split, ""), [])
    row_count = sum(int(row["row_count"]) for row in totals)
    timed = bool(totals) and plan.spec.data.split == "time"
    features = {
        feature.name: _feature(plan.spec, feature, sections, (split, row_count)) for feature in plan.spec.features
    }
    return SplitStatistics(
        rows=row_count,
        first_event=_event(min(row["low"] for row in totals)) if timed else None,
        last_event=_event(max(row["high"] for row in totals)) if timed else None,
        features=features,
        label=build_label(plan.spec.label, totals, sections["label"].get((split, ""), [])),
        auxiliary_labels={
            label.name: build_label(label, *(sections[name].get((split, label.name), []) for name in _AUXILIARY))
            for label in plan.spec.auxiliary_labels
        },
        weight=_weight(sections["weight"].get((split, ""), [])) if plan.spec.data.weight else None,
    )


def _feature(spec: ModelSpec, feature: Feature, sections: _Sections, split: tuple[str, int]) -> FeatureStatistics:
    """Return one feature's, of a split with its rows."""
    name, row_count = split
    place = name, feature.name
    if feature.kind == "numeric":
        return _numeric(spec.label, sections, place, row_count)
    if feature.kind == "time":
        return _time(sections["numeric"].get(place, []), row_count)
    if feature.kind == "image":
        return _image(sections["size"].get(place, []), sections["object"].get(place, []), row_count)
    if feature.kind == "text":
        return TextStatistics(kind="text", **_lengths(sections["size"].get(place, []), row_count))
    if feature.kind == "bag":
        return BagStatistics(kind="bag", **_lengths(sections["size"].get(place, []), row_count))
    if feature.kind == "sequence":
        return _sequence(sections, place, row_count)
    return _category(spec.label, sections, place)


def _weight(rows: list[Row]) -> WeightStatistics:
    row: Row = rows[0] if rows else {"nulls": 0, "outside": 0, "mean": None}
    return WeightStatistics(nulls=int(row["nulls"]), outside=int(row["outside"]), mean=finite(row["mean"]))


def _stem(index: int) -> str:
    return f"auxiliary_{index}"


def _numeric(label: Label, sections: _Sections, place: tuple[str, str], row_count: int) -> NumericStatistics:
    row = next(iter(sections["numeric"].get(place, [])), None)
    quantiles = list(row["quantiles"] or []) if row else []
    return NumericStatistics(
        kind="numeric",
        nulls=int(row["nulls"]) if row else row_count,
        min=_number(row["low"], str(row["feature"])) if row else None,
        max=_number(row["high"], str(row["feature"])) if row else None,
        mean=_number(row["mean"], str(row["feature"])) if row else None,
        stddev=_number(row["deviation"], str(row["feature"])) if row else None,
        quantiles=tuple(float(value) for value in quantiles if value is not None),
        histogram=_histogram(sections["bin"].get(place, [])),
        usual=_usual(sections, place),
        label_correlation=leaking_correlation(row) if row else None,
        label_auc=auc_of_number(row) if row else None,
        label_association=number_tells_label(label, sections["association"].get(place, [])),
        row_number=row is not None and _numbers_rows(row, row_count),
    )


def _time(rows: list[Row], row_count: int) -> TimeStatistics:
    row = rows[0] if rows else None
    ends = {"min": "low", "max": "high", "mean": "mean", "stddev": "deviation"}
    found = {name: _number(row[column], str(row["feature"])) if row else None for name, column in ends.items()}
    return TimeStatistics(kind="time", nulls=int(row["nulls"]) if row else row_count, **found)


def _usual(sections: _Sections, place: tuple[str, str]) -> UsualDistance | None:
    """Return how far a day of the training split is from the others; of no days: there are none to compare."""
    if place[0] != "train":
        return None
    row = next(iter(sections["usual"].get(place, [])), None)
    if row is None:
        return UsualDistance(days=0, distance=0.0)
    percentiles = [finite(value) or 0.0 for value in row["quantiles"]]
    return UsualDistance(days=int(row["row_count"]), distance=usual_distance(percentiles))


def usual_distance(percentiles: Sequence[float]) -> float:
    """Return the 99th percentile of how far days are from each other, in [0, 1].

    At most what follows from the median and the 90th percentile if distances have the tail of an exponential
    distribution: so up to a tenth of the days may be out of the ordinary (two days of a blizzard, of 60), and the limit
    is still that of the others.

    Args:
        percentiles: 101 of them.
    """
    median, ninetieth = percentiles[50], percentiles[90]
    return min(1.0, max(0.0, min(percentiles[99], median + _TAIL * (ninetieth - median))))


def _histogram(bins: list[Row]) -> NumberHistogram | None:
    if not bins:
        return None
    edges = [float(edge) for edge in bins[0]["quantiles"]]
    counts = {int(row["value"]): int(row["row_count"]) for row in bins}
    return histogram_of(edges, [counts.get(place, 0) for place in range(len(edges) + 1)])


def edges_around(quantiles: Iterable[float]) -> list[float]:
    """Return edges closely below and above each quantile, rising, as `statistics.sql.j2` makes them."""
    return sorted({point + side * _width(point) for point in quantiles for side in (-1, 1)})


def histogram_of(edges: Sequence[float], counts: Sequence[int]) -> NumberHistogram:
    """Return the histogram in which a quantile that is not frequent shares the bin above it, the greatest that below.

    So there are as many bins of a continuous number as quantiles, and few rows of training make no noise.

    Args:
        edges: Of `edges_around`.
        counts: One more than edges.
    """
    kept, merged, least = [edges[0]], [counts[0]], _FREQUENT * sum(counts)
    carried = 0
    for low, high, count in zip(edges, edges[1:], counts[1:], strict=False):
        if high - low <= 3 * _width(low) and carried + count < least:
            carried += count
            continue
        merged.append(carried + count)
        kept.append(high)
        carried = 0
    if carried and len(merged) > 1:
        merged[-1] += carried
        kept[-1] = edges[-1]
    return NumberHistogram(edges=tuple(kept), counts=(*merged, counts[-1]))


def _width(point: float) -> float:
    """Return how far from a quantile its edges lie: float32 rounds what a client sends by less."""
    return abs(point) * 2.0**-22 + 1e-38 if abs(point) < 1e300 else 0.0


def _numbers_rows(row: Row, row_count: int) -> bool:
    """Return whether whole numbers are nearly all different and nearly without gaps, as the rows' own numbers are."""
    distinct, low, high = (finite(row.get(name)) for name in ("distinct_count", "low", "high"))
    if distinct is None or low is None or high is None or row.get("outside") or row_count < KEY_ROWS:
        return False
    return distinct >= KEY_SHARE * row_count and high - low < ROW_NUMBER_RANGE * row_count


def _image(rows: list[Row], objects: list[Row], row_count: int) -> ImageStatistics:
    row = rows[0] if rows else None
    sizes = None if row is None or row["low"] is None else row
    return ImageStatistics(
        kind="image",
        nulls=int(row["nulls"]) if row else row_count,
        min_bytes=int(sizes["low"]) if sizes else None,
        max_bytes=int(sizes["high"]) if sizes else None,
        mean_bytes=_number(sizes["mean"], str(sizes["feature"])) if sizes else None,
        unreadable=tuple(sorted((_unreadable(row) for row in objects), key=lambda item: item.found)),
    )


def _unreadable(row: Row) -> UnreadableObjects:
    found, _, examples = str(row["value"]).partition(": ")
    return UnreadableObjects(found=found, rows=int(row["row_count"]), examples=examples)


def _lengths(rows: list[Row], row_count: int) -> TemplateValues:
    """Return missing texts, and the others' lengths."""
    row = rows[0] if rows else None
    sizes = None if row is None or row["low"] is None else row
    return {
        "nulls": int(row["nulls"]) if row else row_count,
        "min_length": int(sizes["low"]) if sizes else None,
        "max_length": int(sizes["high"]) if sizes else None,
        "mean_length": _number(sizes["mean"], str(sizes["feature"])) if sizes else None,
    }


def _sequence(sections: _Sections, place: tuple[str, str], row_count: int) -> SequenceStatistics:
    lengths = next(iter(sections["sequence"].get(place, [])), None)
    numbers = next(iter(sections["element"].get(place, [])), None)
    values = _categorical(sections["element_category"].get(place, []), [])
    sizes = None if lengths is None or lengths["low"] is None else lengths
    return SequenceStatistics(
        kind="sequence",
        nulls=int(lengths["nulls"]) if lengths else row_count,
        min_length=int(sizes["low"]) if sizes else None,
        max_length=int(sizes["high"]) if sizes else None,
        mean_length=_number(sizes["mean"], place[1]) if sizes else None,
        mean=_number(numbers["mean"], place[1]) if numbers else None,
        stddev=_number(numbers["deviation"], place[1]) if numbers else None,
        distinct=values.distinct,
        top=values.top,
    )


def _category(label: Label, sections: _Sections, place: tuple[str, str]) -> CategoricalStatistics:
    rows, classes = sections["category"].get(place, []), sections["label"].get((place[0], ""), [])
    counts = [int(row["row_count"]) for row in classes if row["value"] is not None]
    known = [row for row in rows if row["value"] is not None]
    return _categorical(rows, sections["tail"].get(place, [])).model_copy(
        update={
            "label_by_category": one_label_each(known),
            "label_auc": auc_of_categories(rows) if label.kind == "binary" else None,
            "label_association": categories_tell_label(label, rows, counts),
            "usual": _usual(sections, place),
        }
    )


def _categorical(rows: list[Row], tail: list[Row]) -> CategoricalStatistics:
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
        tail=tail_of(tail),
    )


def tail_of(rows: Sequence[Row]) -> tuple[int, ...]:
    """Return the rows by hash, in as many counts as leave room between the values.

    Args:
        rows: Of the section `tail`.
    """
    if not rows:
        return ()
    size, distinct = 1, sum(int(row["distinct_count"]) for row in rows)
    while size < min(MAX_TAIL, _ROOM * distinct):
        size *= 2
    counts = [0] * size
    for row in rows:
        counts[int(row["value"]) & (size - 1)] += int(row["row_count"])
    return tuple(counts)


def _day_feature(row: Row) -> DayFeature:
    return DayFeature(
        nulls=int(row["nulls"]), outside=int(row["outside"]), min=finite(row["low"]), max=finite(row["high"])
    )


def _event(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds), tz=UTC)


def _number(value: object, feature: str) -> float | None:
    if value is None:
        return None
    number = float(str(value))
    if not math.isfinite(number):
        raise DataError(f"feature {feature}", f"the value {number}", "finite numbers", "Use NULL for it in the query")
    return number
