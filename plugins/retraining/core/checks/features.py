"""Findings on features: missing, out of range, constant, categories that are new."""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.checks.findings import finding, severity_of, shown
from retraining.core.checks.leaks import fill_findings, key_findings, leak_findings
from retraining.core.checks.quarantine import extremes
from retraining.core.data.image_objects import MAX_BYTES
from retraining.core.documents.checks import (
    CategoricalStatistics,
    Finding,
    ImageStatistics,
    NumericStatistics,
    SplitStatistics,
    Statistics,
    TimeStatistics,
)
from retraining.core.spec.features import Feature
from retraining.core.spec.model import ModelSpec

_MOST_BEYOND = 0.5
"""Share of the training rows that may have a value without an embedding of its own."""

_WRONG = {
    "missing": "are not there",
    "elsewhere": "are outside the folder that objects names",
    "too large": f"are larger than {MAX_BYTES // 1_000_000} MB",
}
"""What a listing finds of an address; anything else is the type that the object's writer gave it."""


def feature_findings(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    """Yield what is wrong with the features."""
    train = statistics.splits["train"]
    for feature in spec.features:
        yield from _transform(spec, feature, statistics)
        yield from _cut_vocabulary(spec, feature, train)
    for name in spec.feature_names:
        yield from _nulls(spec, name, statistics)
        yield from _range(spec, name, statistics)
        yield from _objects(spec, name, statistics)
        if train.rows:
            yield from _constant(spec, name, train)
            yield from leak_findings(spec, name, train)
            yield from key_findings(spec, name, train)
    yield from fill_findings(spec, statistics)
    yield from _new_categories(spec, statistics)


def _transform(spec: ModelSpec, feature: Feature, statistics: Statistics) -> Iterator[Finding]:
    """Yield the logarithm of what has none."""
    if feature.kind != "numeric" or feature.transform != "log1p":
        return
    for split_name, split in statistics.splits.items():
        column = split.features[feature.name]
        if isinstance(column, NumericStatistics) and column.min is not None and column.min <= -1:
            yield finding(
                spec,
                "transform",
                feature=feature.name,
                found=f"{column.min:g} in {split_name}",
                expected="numbers above -1, for transform: log1p",
                message=f"{feature.name} is {column.min:g} in {split_name}, and ln(1 + value) is of numbers above -1: "
                "remove transform: log1p, take clip or quantile, or move the numbers up in the query",
            )


def _cut_vocabulary(spec: ModelSpec, feature: Feature, train: SplitStatistics) -> Iterator[Finding]:
    """Yield a category most of whose training rows share the one embedding of the values beyond the vocabulary."""
    column = train.features[feature.name]
    if feature.kind != "categorical" or feature.hash_buckets or not isinstance(column, CategoricalStatistics):
        return
    own = len(column.top) if feature.max_vocabulary is None else feature.max_vocabulary
    rest = train.rows - column.nulls - sum(item.count for item in column.top[:own])
    if column.distinct > own and rest > train.rows * _MOST_BEYOND:
        yield finding(
            spec,
            "cut_vocabulary",
            feature=feature.name,
            found=f"{column.distinct} values, {rest / train.rows:.1%} of train beyond the first {own}",
            expected=f"at most {_MOST_BEYOND:.0%} of the training rows beyond the vocabulary",
            message=f"{rest / train.rows:.1%} of the training rows have one of the {column.distinct - own} values of "
            f"{feature.name} beyond the first {own}, and these share one embedding: set hash_buckets, or make fewer "
            "values in the query",
        )


def _nulls(spec: ModelSpec, name: str, statistics: Statistics) -> Iterator[Finding]:
    limit = spec.data.checks.max_null_fraction.get(name)
    for split_name, split in statistics.splits.items():
        nulls = split.features[name].nulls
        if limit is not None and split.rows and nulls / split.rows > limit:
            yield finding(
                spec,
                "max_null_fraction",
                feature=name,
                found=f"{nulls / split.rows:.4f} nulls in {split_name}",
                expected=f"at most {limit}",
                message=f"{nulls / split.rows:.1%} of {name} is missing in {split_name}: is its source table late?",
            )


def _range(spec: ModelSpec, name: str, statistics: Statistics) -> Iterator[Finding]:
    bounds = spec.data.checks.ranges.get(name)
    kept = [day for day in statistics.days if day.span not in statistics.quarantined]
    bad = [(day.span, day.features[name]) for day in kept if name in day.features and day.features[name].outside]
    if bounds is None or not bad:
        return
    low, high = bounds
    rows = sum(day.outside for _, day in bad)
    # An infinite extreme is recorded as none.
    least = None if any(day.min is None for _, day in bad) else min(day.min for _, day in bad if day.min is not None)
    most = None if any(day.max is None for _, day in bad) else max(day.max for _, day in bad if day.max is not None)
    where = shown([f"{span} ({day.outside})" for span, day in bad])
    yield finding(
        spec,
        "ranges",
        feature=name,
        found=f"{rows} values outside, of {extremes(least, most)}",
        expected=f"{low:g} to {high:g}",
        message=f"{rows} values of {name} are outside {low:g} to {high:g}, on {where}: has its unit changed?",
    )


def _objects(spec: ModelSpec, name: str, statistics: Statistics) -> Iterator[Finding]:
    """Yield what is wrong with objects that images should be."""
    for split_name, split in statistics.splits.items():
        column = split.features[name]
        for item in column.unreadable if isinstance(column, ImageStatistics) else ():
            yield finding(
                spec,
                "objects",
                feature=name,
                found=f"{item.rows} objects in {split_name}: {item.found}",
                expected="PNG or JPEG files in the folder that objects names",
                message=f"{item.rows} images of {name} in {split_name} {_WRONG.get(item.found, f'are {item.found}')}, "
                f"such as {item.examples}: mend the source, give NULL or leave the rows out in the query",
            )


def _constant(spec: ModelSpec, name: str, train: SplitStatistics) -> Iterator[Finding]:
    column = train.features[name]
    if column.nulls == train.rows:
        yield finding(
            spec,
            "all_null",
            feature=name,
            found="only nulls",
            expected="values",
            message=f"{name} is missing in every training example: the model cannot learn from it",
        )
    elif isinstance(column, ImageStatistics):
        if column.min_bytes == 0:
            yield finding(
                spec,
                "empty_image",
                feature=name,
                found="0 bytes",
                expected="PNG or JPEG files",
                message=f"{name} has files without a byte: use NULL for a missing image in the query",
            )
    elif isinstance(
        column, NumericStatistics | CategoricalStatistics | TimeStatistics
    ):  # lengths say nothing of what is in the others
        only = _only_value(column)
        if only is not None:
            yield finding(
                spec,
                "constant",
                feature=name,
                found=f"only {only}",
                expected="at least two values",
                message=f"{name} is {only} in every training example that has it: it tells the model nothing",
            )


def _only_value(statistics: NumericStatistics | CategoricalStatistics | TimeStatistics) -> str | None:
    if isinstance(statistics, TimeStatistics):
        return "one time" if statistics.min == statistics.max else None
    if isinstance(statistics, NumericStatistics):
        return f"{statistics.min:g}" if statistics.min == statistics.max else None
    return repr(statistics.top[0].value) if statistics.distinct == 1 else None


def _new_categories(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    if severity_of(spec, "new_category") is None:
        return
    for name in spec.feature_names:
        train, test = (statistics.splits[split].features[name] for split in ("train", "test"))
        if not isinstance(train, CategoricalStatistics) or not isinstance(test, CategoricalStatistics):
            continue
        if train.distinct > len(train.top):
            continue  # the list of training values is cut: what is missing in it need not be new
        known = {item.value for item in train.top}
        new = [repr(item.value) for item in test.top if item.value not in known]
        if new:
            yield finding(
                spec,
                "new_category",
                feature=name,
                found=shown(new),
                expected="values seen in training",
                message=f"{name} has {len(new)} values in the {spec.data.tested_name} that no training example has: "
                f"{shown(new)}",
            )
