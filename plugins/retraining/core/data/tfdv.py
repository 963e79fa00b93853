"""What TensorFlow Data Validation reads of a run: the schema of its examples, and statistics of its features.

In: plan, snapshot and statistics, from which it is known. Out: two messages of tensorflow_metadata in protobuf's text
form, `Schema` and `DatasetFeatureStatisticsList`; there is no protobuf here for them, and they need none.
https://github.com/tensorflow/metadata/tree/master/tensorflow_metadata/proto/v0
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retraining.core.column_types import COLUMN_TYPES
from retraining.core.data.shard_format import format_of
from retraining.core.documents.checks import (
    BagStatistics,
    CategoricalStatistics,
    FeatureStatistics,
    ImageStatistics,
    LabelStatistics,
    NumericStatistics,
    SequenceStatistics,
    SplitStatistics,
    Statistics,
    TextStatistics,
    TimeStatistics,
    ValueCount,
)
from retraining.core.documents.plan import Plan
from retraining.core.documents.snapshot import Column, Snapshot
from retraining.core.spec.features import class_count

SHOWN_VALUES = 20
_TYPES = {"int64_list": "INT", "float_list": "FLOAT", "bytes_list": "BYTES"}
"""By the list of `tf.train.Feature`."""

Message = Mapping[str, Any]
"""Fields by name: numbers, truths, texts, `Enum`, messages, or lists of them; None is left out."""


class Enum(str):
    """A name of an enumeration: written without quotes."""

    __slots__ = ()


def are_plain_examples(plan: Plan) -> bool:
    """Return whether a shard holds one `tf.train.Example` per row with a feature per column, which the schema is of."""
    layout = plan.spec.data.layout
    return format_of(plan.spec) == "tfrecord" and layout.numeric == "columns" and layout.rows_per_record == 1


def render_schema(plan: Plan, snapshot: Snapshot, statistics: Statistics) -> str:
    """Return the schema: a feature per column; columns that are neither feature nor label are ALPHA, not validated."""
    roles = {feature.name for feature in plan.spec.features} | {plan.spec.label.name}
    features = [_feature(plan, column, statistics, is_used=column.name in roles) for column in snapshot.columns]
    return _text({"feature": features})


def render_statistics(plan: Plan, snapshot: Snapshot, statistics: Statistics) -> str:
    """Return the statistics of the features and the label, a data set per split."""
    types = {column.name: _type(column) for column in snapshot.columns}
    return _text(
        {
            "datasets": [
                {"name": name, "num_examples": split.rows, "features": list(_split_features(plan, split, types))}
                for name, split in statistics.splits.items()
                if split.rows
            ]
        }
    )


def render_data_set(name: str, rows: int, features: Mapping[str, FeatureStatistics]) -> str:
    """Return the statistics of some numbers and categories alone, as one data set.

    Args:
        name: Of the data set.
        rows: That it has.
        features: By name.
    """
    found = [
        {"path": {"step": [feature]}, "type": Enum("FLOAT" if each.kind == "numeric" else "STRING")}
        | dict(_statistics(rows, each))
        for feature, each in features.items()
    ]
    return _text({"datasets": [{"name": name, "num_examples": rows, "features": found}]})


def _feature(plan: Plan, column: Column, statistics: Statistics, *, is_used: bool) -> Message:
    splits = [split for split in statistics.splits.values() if split.rows]
    found = [split.features[column.name] for split in splits if column.name in split.features]
    nulls = [each.nulls for each in found]
    if column.name == plan.spec.label.name:
        nulls = [split.label.nulls for split in splits]
    whole = bool(nulls) and not any(nulls) and column.mode != "REPEATED"
    return {
        "name": column.name,
        "type": Enum(_type(column)),
        "presence": {"min_fraction": 1.0, "min_count": 1} if whole else None,
        "value_count": {"min": 1, "max": 1} if column.mode != "REPEATED" else {"min": 0},
        **_domain(plan, column, found),
        **({} if is_used else {"lifecycle_stage": Enum("ALPHA")}),
    }


def _domain(plan: Plan, column: Column, found: Sequence[FeatureStatistics]) -> Message:
    """Return the values that a column may have, as far as that is known: classes, ranges of the checks, categories."""
    label, limits = plan.spec.label, plan.spec.data.checks.ranges.get(column.name)
    if column.name == label.name and label.kind != "regression" and _type(column) == "INT":
        return {"int_domain": {"min": 0, "max": class_count(label) - 1, "is_categorical": True}}
    if limits and _type(column) == "FLOAT":
        return {"float_domain": {"min": limits[0], "max": limits[1]}}
    categories = [each for each in found if isinstance(each, CategoricalStatistics)]
    if categories and _type(column) == "BYTES" and all(each.distinct <= len(each.top) for each in categories):
        return {"string_domain": {"value": sorted({item.value for each in categories for item in each.top})}}
    return {}


def _split_features(plan: Plan, split: SplitStatistics, types: Mapping[str, str]) -> Iterator[Message]:
    for name, each in split.features.items():
        if name in types:
            yield {
                "path": {"step": [name]},
                "type": Enum(_statistics_type(types[name])),
                **_statistics(split.rows, each),
            }
    label = plan.spec.label.name
    if label in types and types[label] != "BYTES" and split.rows > split.label.nulls:
        yield {"path": {"step": [label]}, "type": Enum(types[label]), **_label_statistics(split.rows, split.label)}


def _statistics(rows: int, each: FeatureStatistics) -> Message:
    there = rows - each.nulls
    common = _common(rows, each.nulls)
    match each:
        case NumericStatistics():
            return {"num_stats": {"common_stats": common, **_numbers(each, there)}}
        case CategoricalStatistics():
            return {"string_stats": {"common_stats": common, **_values(each.distinct, each.top)}}
        case ImageStatistics():
            sizes = {"min_num_bytes": each.min_bytes, "max_num_bytes": each.max_bytes}
            return {"bytes_stats": {"common_stats": common, "avg_num_bytes": each.mean_bytes, **sizes}}
        case SequenceStatistics():
            lengths = {
                "min_num_values": each.min_length,
                "max_num_values": each.max_length,
                "avg_num_values": each.mean_length,
                "tot_num_values": round((each.mean_length or 0) * there),
            }
            if each.top:
                return {"string_stats": {"common_stats": {**common, **lengths}, **_values(each.distinct, each.top)}}
            return {"num_stats": {"common_stats": {**common, **lengths}, "mean": each.mean, "std_dev": each.stddev}}
        case TimeStatistics():
            return {"num_stats": {"common_stats": common}}
        case TextStatistics() | BagStatistics():
            return {"string_stats": {"common_stats": common, "avg_length": each.mean_length}}


def _values(distinct: int, top: Sequence[ValueCount]) -> Message:
    """Return values with their counts: `top_values` for people, and ranks, by which TFDV looks for unknown ones."""
    ranks = [
        {"low_rank": rank, "high_rank": rank, "label": item.value, "sample_count": item.count}
        for rank, item in enumerate(top)
    ]
    return {
        "unique": distinct,
        "top_values": [{"value": item.value, "frequency": item.count} for item in top[:SHOWN_VALUES]],
        "rank_histogram": {"buckets": ranks},
    }


def _label_statistics(rows: int, label: LabelStatistics) -> Message:
    numbers = label.numbers
    if numbers:
        found: Message = {"mean": numbers.mean, "std_dev": numbers.stddev, "min": numbers.min, "max": numbers.max}
    else:
        found = {"mean": label.mean}
    return {"num_stats": {"common_stats": _common(rows, label.nulls), **found}}


def _common(rows: int, nulls: int) -> Message:
    there = rows - nulls
    one = {"min_num_values": 1, "max_num_values": 1, "avg_num_values": 1.0} if there else {}
    return {"num_non_missing": there, "num_missing": nulls, "tot_num_values": there, **one}


def _numbers(each: NumericStatistics, there: int) -> Message:
    quantiles, steps = each.quantiles, max(len(each.quantiles) - 1, 1)
    quantile_buckets = _buckets(quantiles, [there / steps] * steps)
    # Nothing lies outside of a split's own edges; comparators read this one.
    bins = _buckets(each.histogram.edges, each.histogram.counts[1:-1]) if each.histogram else []
    histograms = [
        {"num_nan": 0, "buckets": buckets, "type": Enum(kind)}
        for kind, buckets in (("STANDARD", bins), ("QUANTILES", quantile_buckets))
        if buckets
    ]
    return {
        "mean": each.mean,
        "std_dev": each.stddev,
        "min": each.min,
        "median": quantiles[len(quantiles) // 2] if quantiles else None,
        "max": each.max,
        "histograms": histograms,
    }


def _buckets(edges: Sequence[float], counts: Sequence[float]) -> list[Message]:
    return [
        {"low_value": low, "high_value": high, "sample_count": count}
        for (low, high), count in zip(itertools.pairwise(edges), counts, strict=True)
    ]


def _type(column: Column) -> str:
    """Return the list of `tf.train.Feature` that a column goes to (docs/types.md)."""
    return _TYPES[COLUMN_TYPES[column.type].feature]


def _statistics_type(type_: str) -> str:
    return "STRING" if type_ == "BYTES" else type_


def _text(message: Message, depth: int = 0) -> str:
    """Return a message in protobuf's text form."""
    return "".join(_line(name, value, depth) for name, value in message.items())


def _line(name: str, value: object, depth: int) -> str:
    pad = "  " * depth
    match value:
        case None:
            return ""
        case list() | tuple():
            return "".join(_line(name, each, depth) for each in value)
        case Mapping():
            return f"{pad}{name} {{\n{_text(value, depth + 1)}{pad}}}\n"
        case Enum():
            return f"{pad}{name}: {value!s}\n"
        case str():
            return f'{pad}{name}: "{_escaped(value)}"\n'
        case _:
            return f"{pad}{name}: {json.dumps(value)}\n"


def _escaped(text: str) -> str:
    """Return UTF-8 as it is; quotes, backslashes and control characters as octal numbers."""
    return "".join(f"\\{ord(each):03o}" if each in "\"'\\" or ord(each) < 32 else each for each in text)
