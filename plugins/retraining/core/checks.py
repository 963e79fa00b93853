"""Judging the examples before anything is paid for: findings with a severity, and a sentence for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from retraining.core.documents.data import (
    CategoricalStatistics,
    Checks,
    Column,
    Finding,
    ImageStatistics,
    LabelStatistics,
    NumericStatistics,
    Snapshot,
    SplitStatistics,
    Statistics,
)
from retraining.core.documents.planning import Plan
from retraining.core.model_spec import ModelSpec
from retraining.core.spec_file import suggest

NUMBER_TYPES = frozenset({"INTEGER", "FLOAT", "BOOLEAN", "NUMERIC", "BIGNUMERIC"})
CATEGORY_TYPES = frozenset({"STRING", "INTEGER", "BOOLEAN", "DATE"})
IMAGE_TYPES = frozenset({"BYTES"})
FEATURE_TYPES = {"numeric": NUMBER_TYPES, "categorical": CATEGORY_TYPES, "image": IMAGE_TYPES}
CLASS_TYPES = frozenset({"INTEGER"})
LABEL_TYPES = frozenset({"INTEGER", "FLOAT", "BOOLEAN", "NUMERIC", "BIGNUMERIC"})
EVENT_TIME_TYPES = frozenset({"TIMESTAMP", "DATETIME", "DATE"})
SHOWN_CATEGORIES = 5


def check_data(plan: Plan, snapshot: Snapshot, statistics: Statistics) -> Checks:
    """All findings on a snapshot. It passed when none of them blocks."""
    findings = (
        *missing_columns(plan.spec, snapshot.columns),
        *_types(plan.spec, snapshot.columns),
        *_volume(plan.spec, statistics),
        *_keys(statistics),
        *_label(plan.spec, statistics),
        *_features(plan.spec, statistics),
    )
    return Checks(
        model=plan.model,
        run_key=plan.run_key,
        passed=all(finding.severity != "block" for finding in findings),
        findings=findings,
    )


def missing_columns(spec: ModelSpec, columns: Sequence[Column]) -> list[Finding]:
    """Columns the spec names and the query does not give."""
    known = [column.name for column in columns]
    wanted = [
        *((name, f"feature {name!r}") for name in spec.feature_names),
        (spec.label.name, "the label"),
        (spec.data.key, "the key"),
        (spec.data.event_time, "the event time"),
    ]
    findings = []
    for name, role in wanted:
        if name not in known:
            words = f"{role} is not among the query's columns. {suggest(name, known)}".strip()
            findings.append(_block("columns", name, f"no column {name!r}", f"one of: {', '.join(known)}", words))
    return findings


def _types(spec: ModelSpec, columns: Sequence[Column]) -> Iterator[Finding]:
    wanted = {feature.name: FEATURE_TYPES[feature.kind] for feature in spec.features}
    wanted[spec.label.name] = LABEL_TYPES if spec.label.kind == "binary" else CLASS_TYPES
    wanted[spec.data.event_time] = EVENT_TIME_TYPES
    for column in columns:
        types = wanted.get(column.name)
        if types is None:
            continue
        expected = f"one of {', '.join(sorted(types))}"
        if column.mode == "REPEATED":
            words = f"{column.name} is an array: unnest it or take one element in the query"
            yield _block("types", column.name, f"{column.type} REPEATED", expected, words)
        elif column.type not in types:
            words = f"{column.name} is {column.type}: cast it in the query, or change its kind in the spec"
            yield _block("types", column.name, column.type, expected, words)


def _volume(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    rows = {name: split.rows for name, split in statistics.splits.items()}
    total = sum(rows.values())
    if total == 0:
        words = f"no example between {statistics.window.start} and {statistics.window.end}: look at the source tables"
        yield _block("empty_window", None, "0 rows", "examples in the window", words)
        return
    least = spec.data.checks.min_rows
    if total < least:
        words = f"{total} examples are too few: is a source table late? Else lower data.checks.min_rows"
        yield _block("min_rows", None, f"{total} rows", f"at least {least}", words)
    for name, count in rows.items():
        if count == 0:
            words = f"the {name} split is empty: look at data.test_days, data.validation_percent and the newest days"
            yield _block("empty_split", None, f"0 rows in {name}", "rows in every split", words)


def _keys(statistics: Statistics) -> Iterator[Finding]:
    total = sum(split.rows for split in statistics.splits.values())
    nulls = statistics.keys.nulls
    if nulls:
        words = f"{nulls} examples have no key, so no split for life: leave them out in the query"
        yield _block("null_keys", None, f"{nulls} rows without a key", "a key in every row", words)
    doubled = total - nulls - statistics.keys.distinct
    if doubled > 0:
        words = (
            f"{doubled} rows repeat a key: an example could be trained on and tested on. Make the query's rows unique"
        )
        yield _block("duplicate_keys", None, f"{doubled} repeated keys", "each key once", words)


def _label(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    low, high = spec.data.checks.label_rate
    for name, split in statistics.splits.items():
        if split.label.nulls:
            words = f"{split.label.nulls} examples of {name} have no label: leave them out in the query"
            yield _block("label_nulls", spec.label.name, f"{split.label.nulls} nulls in {name}", "none", words)
        if spec.label.kind == "multiclass":
            yield from _classes(spec, name, split.label, high)
            continue
        rate = split.label.mean
        if rate is not None and not low <= rate <= high:
            words = (
                f"{rate:.3f} of the labels of {name} are positive, outside {low} to {high}: has its meaning changed?"
            )
            yield _block("label_rate", spec.label.name, f"{rate:.4f} in {name}", f"{low} to {high}", words)


def _classes(spec: ModelSpec, split: str, label: LabelStatistics, most: float) -> Iterator[Finding]:
    """Labels that are no class, classes nobody can learn, and one class that is nearly all."""
    name, counts = spec.label.name, label.counts or ()
    if label.outside:
        found = f"{label.outside.rows} labels"
        if label.outside.low is not None and label.outside.high is not None:
            found += f" between {label.outside.low:g} and {label.outside.high:g}"
        words = f"{label.outside.rows} labels of {split} are no class: mend them in the query, or set label.classes"
        yield _block("label_range", name, f"{found} in {split}", f"whole numbers from 0 to {len(counts) - 1}", words)
    total = sum(counts)
    if not total:
        return
    share = max(counts) / total
    if share > most:
        words = f"{share:.3f} of the labels of {split} are {counts.index(max(counts))}: has their meaning changed?"
        yield _block("label_rate", name, f"{share:.4f} in {split}", f"at most {most} of one class", words)
    absent = [str(index) for index, count in enumerate(counts) if not count]
    if split == "train" and absent:
        shown = ", ".join(absent[:SHOWN_CATEGORIES]) + (", …" if len(absent) > SHOWN_CATEGORIES else "")
        words = (
            f"no training example is of class {shown}: the model cannot learn {'it' if len(absent) == 1 else 'them'}"
        )
        yield _warn("absent_class", name, f"{len(absent)} classes without an example", "examples of each class", words)


def _features(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    limits = spec.data.checks.max_null_fraction
    train = statistics.splits["train"]
    for name in spec.feature_names:
        for split_name, split in statistics.splits.items():
            limit = limits.get(name)
            nulls = split.features[name].nulls
            if limit is not None and split.rows and nulls / split.rows > limit:
                words = f"{nulls / split.rows:.1%} of {name} is missing in {split_name}: is its source table late?"
                found = f"{nulls / split.rows:.4f} nulls in {split_name}"
                yield _block("max_null_fraction", name, found, f"at most {limit}", words)
        if train.rows:
            yield from _constant(name, train)
    yield from _new_categories(spec, statistics)


def _constant(name: str, train: SplitStatistics) -> Iterator[Finding]:
    found = train.features[name]
    if found.nulls == train.rows:
        words = f"{name} is missing in every training example: the model cannot learn from it"
        yield _block("all_null", name, "only nulls", "values", words)
    elif isinstance(found, NumericStatistics):
        if found.min == found.max:
            words = f"{name} is {found.min:g} in every training example that has it: it tells the model nothing"
            yield _warn("constant", name, f"only {found.min:g}", "at least two values", words)
    elif isinstance(found, ImageStatistics):
        if found.min_bytes == 0:
            words = f"{name} has files without a byte: use NULL for a missing image in the query"
            yield _block("empty_image", name, "0 bytes", "PNG or JPEG files", words)
    elif found.distinct == 1:
        words = f"{name} is {found.top[0].value!r} in every training example that has it: it tells the model nothing"
        yield _warn("constant", name, f"only {found.top[0].value!r}", "at least two values", words)


def _new_categories(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    severity = spec.data.checks.on_new_category
    if severity == "ignore":
        return
    for name in spec.feature_names:
        train, test = (statistics.splits[split].features[name] for split in ("train", "test"))
        if not isinstance(train, CategoricalStatistics) or not isinstance(test, CategoricalStatistics):
            continue
        if train.distinct > len(train.top):
            continue  # the list of training values is cut: what is missing in it need not be new
        known = {item.value for item in train.top}
        new = [item for item in test.top if item.value not in known]
        if new:
            shown = ", ".join(repr(item.value) for item in new[:SHOWN_CATEGORIES])
            words = f"{name} has {len(new)} values in the test days that no training example has: {shown}"
            yield _finding(severity, "new_category", name, shown, "values seen in training", words)


def _block(check: str, feature: str | None, found: str, expected: str, words: str) -> Finding:
    return _finding("block", check, feature, found, expected, words)


def _warn(check: str, feature: str | None, found: str, expected: str, words: str) -> Finding:
    return _finding("warn", check, feature, found, expected, words)


def _finding(
    severity: Literal["block", "warn"], check: str, feature: str | None, found: str, expected: str, words: str
) -> Finding:
    return Finding(check=check, severity=severity, feature=feature, found=found, expected=expected, words=words)
