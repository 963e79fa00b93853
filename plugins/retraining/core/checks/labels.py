"""Findings on the label: missing, wrong, too rare, too frequent; of numbers see `regression.py`."""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.checks.findings import finding, severity_of, shown
from retraining.core.checks.regression import constant_label, label_shift
from retraining.core.data.label_statistics import class_count
from retraining.core.documents.checks import Finding, LabelStatistics, Statistics
from retraining.core.spec.features import AuxiliaryLabel, Label
from retraining.core.spec.model import ModelSpec


def label_findings(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    """Yield what is wrong with the label, split by split."""
    for name, split in statistics.splits.items():
        if split.label.nulls:
            yield finding(
                spec,
                "label_nulls",
                feature=spec.label.name,
                found=f"{split.label.nulls} nulls in {name}",
                expected="none",
                message=f"{split.label.nulls} examples of {name} have no label: leave them out in the query",
            )
        yield from _outside(spec, spec.label, name, split.label)
        if spec.label.kind == "regression":
            yield from constant_label(spec, name, split.label)
        elif spec.label.kind == "multiclass":
            yield from _classes(spec, name, split.label)
        else:
            yield from _rate(spec, name, split.label)
    yield from label_shift(spec, statistics)
    for label in spec.auxiliary_labels:
        yield from _auxiliary(spec, label, statistics)


def _auxiliary(spec: ModelSpec, label: AuxiliaryLabel, statistics: Statistics) -> Iterator[Finding]:
    """Yield what is wrong with an auxiliary label, which may be missing but not everywhere."""
    for name, split in statistics.splits.items():
        counted = split.auxiliary_labels.get(label.name)
        if counted is None:
            continue
        yield from _outside(spec, label, name, counted)
        if counted.nulls and name == "train" and counted.nulls == split.rows:
            yield finding(
                spec,
                "auxiliary_all_null",
                feature=label.name,
                found=f"{counted.nulls} nulls in {name}",
                expected="a value in some rows",
                message=f"no example of {name} has {label.name}: mend the query, or remove it from auxiliary_labels",
            )
        elif counted.nulls and severity_of(spec, "auxiliary_nulls"):
            yield finding(
                spec,
                "auxiliary_nulls",
                feature=label.name,
                found=f"{counted.nulls} nulls in {name}",
                expected="none",
                message=f"{counted.nulls} examples of {name} have no {label.name}: they add nothing to its loss",
            )


def _outside(spec: ModelSpec, label: Label | AuxiliaryLabel, split: str, counted: LabelStatistics) -> Iterator[Finding]:
    outside = counted.outside
    if outside is None:
        return
    found, is_number = f"{outside.rows} labels", label.kind == "regression"
    if outside.low is not None and outside.high is not None:
        found += f" between {outside.low:g} and {outside.high:g}"
    own = "label" if label is spec.label else "auxiliary_labels"
    way_out = {"multiclass": f", or set {own}.classes", "regression": f", or correct the section {own}"}
    yield finding(
        spec,
        "label_range",
        feature=label.name,
        found=f"{found} in {split}",
        expected=expected_labels(label),
        message=f"{outside.rows} labels of {split} are no {'right number' if is_number else 'class'}: "
        f"mend them in the query{way_out.get(label.kind, '')}",
    )


def expected_labels(label: Label | AuxiliaryLabel) -> str:
    """Return which labels are right, for a sentence."""
    return label.bounds if label.kind == "regression" else f"whole numbers from 0 to {class_count(label) - 1}"


def _rate(spec: ModelSpec, split: str, label: LabelStatistics) -> Iterator[Finding]:
    low, high = spec.data.checks.label_rate
    rate = label.mean
    if rate is not None and not low <= rate <= high:
        yield finding(
            spec,
            "label_rate",
            feature=spec.label.name,
            found=f"{rate:.4f} in {split}",
            expected=f"{low} to {high}",
            message=f"{rate:.3f} of the labels of {split} are positive, outside {low} to {high}: "
            "has its meaning changed?",
        )


def _classes(spec: ModelSpec, split: str, label: LabelStatistics) -> Iterator[Finding]:
    """Yield the classes nobody can learn, and one class that is nearly all."""
    most, counts = spec.data.checks.label_rate[1], label.counts or ()
    total = sum(counts)
    if not total:
        return
    share = max(counts) / total
    if share > most:
        frequent = counts.index(max(counts))
        yield finding(
            spec,
            "label_rate",
            feature=spec.label.name,
            found=f"{share:.4f} in {split}",
            expected=f"at most {most} of one class",
            message=f"{share:.3f} of the labels of {split} are {frequent}: has their meaning changed?",
        )
    absent = [str(index) for index, count in enumerate(counts) if not count]
    if split == "train" and absent:
        them = "it" if len(absent) == 1 else "them"
        yield finding(
            spec,
            "absent_class",
            feature=spec.label.name,
            found=f"{len(absent)} classes without an example",
            expected="examples of each class",
            message=f"no training example is of class {shown(absent)}: the model cannot learn {them}",
        )
