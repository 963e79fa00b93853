"""Findings on labels and weights.

A label may be missing, wrong, too rare or too frequent; one of a regression may never change, or have a day whose mean
is far from the other days'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from retraining.core.checks.findings import finding, severity_of, shown
from retraining.core.data.class_names import shown_texts
from retraining.core.documents.checks import DayStatistics, Finding, LabelStatistics, Statistics
from retraining.core.spec.features import AuxiliaryLabel, Label, class_count, class_names, class_text
from retraining.core.spec.model import ModelSpec


def weight_findings(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    """Yield what is wrong with the weights, split by split."""
    for name, split in statistics.splits.items():
        if split.weight is None or not split.rows:
            continue
        nulls, outside, mean = split.weight.nulls, split.weight.outside, split.weight.mean
        if nulls or outside:
            found = f"{nulls} missing and {outside} negative or infinite in {name}"
            message = f"{nulls + outside} examples of {name} have no right weight: mend them in the query"
        elif not mean:
            found = f"only 0 in {name}"
            message = f"no example of {name} has a weight above 0: nothing would count"
        else:
            continue
        yield finding(
            spec,
            "weights",
            feature=spec.data.weight,
            found=found,
            expected="finite numbers from 0 on, and one above 0",
            message=message,
        )


_WEEKS = 3
"""Days of one weekday whose median is not that of the bad one among them."""


def constant_label(spec: ModelSpec, split: str, label: LabelStatistics) -> Iterator[Finding]:
    """Yield a training label that is always the same, and one of the test days where that leaves R² undefined."""
    numbers = label.numbers
    if numbers is None or numbers.min is None or numbers.min != numbers.max:
        return
    if split != "train" and not (split == "test" and spec.evaluation.metric == "r2"):
        return
    why = "there is nothing to learn" if split == "train" else "R² is not defined, and evaluation.metric is r2"
    yield finding(
        spec,
        "constant_label",
        feature=spec.label.name,
        found=f"{numbers.min:g} in every row of {split}",
        expected="labels that differ",
        message=f"all labels of {split} are {numbers.min:g}: {why}",
    )


def label_shift(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    """Yield one finding for all days whose mean label is far from the other days'."""
    if severity_of(spec, "max_label_shift") == "quarantine":
        return  # a finding per day, in `quarantine.py`
    kept = [day for day in statistics.days if day.span not in statistics.quarantined]
    if far := shifted_days(spec, kept):
        where = shown([f"{day.span} ({day.label.mean:g})" for day in far])
        yield finding(
            spec,
            "max_label_shift",
            feature=spec.label.name,
            found=f"a mean label far from the other days' on {where}",
            expected=f"on {far[0].span} {_expected_mean(spec, far[0], kept)}",
            message=f"the mean of {spec.label.name} is far from the other days' on {where}: has its meaning changed?",
        )


def shifted_days(spec: ModelSpec, days: Sequence[DayStatistics]) -> list[DayStatistics]:
    """Return the days whose mean label is further from the days' median than the spec's limit.

    Where there are weeks of days the median is of the days of the same weekday: weekends are not like other days.
    """
    limit, unit = spec.data.checks.max_label_shift, _unit(days)
    if limit is None or not unit:
        return []
    return [
        day
        for day in days
        if day.label.mean is not None and abs(day.label.mean - _usual_mean(day, days)[0]) > limit * unit
    ]


def day_finding(spec: ModelSpec, day: DayStatistics, days: Sequence[DayStatistics]) -> Finding:
    """Return the finding about one of `shifted_days`, which is then left out."""
    return finding(
        spec,
        "max_label_shift",
        feature=spec.label.name,
        span=day.span,
        found=f"a mean label of {day.label.mean:g} on {day.span}",
        expected=_expected_mean(spec, day, days),
        message=f"the mean of {spec.label.name} is {day.label.mean:g} on {day.span}: has its meaning changed?",
    )


def _expected_mean(spec: ModelSpec, day: DayStatistics, days: Sequence[DayStatistics]) -> str:
    """Return where a day's mean should be."""
    usual, of_days = _usual_mean(day, days)
    return f"{usual:g}, the {of_days}' median, give or take {_allowed_deviation(spec, days)}"


def _allowed_deviation(spec: ModelSpec, days: Sequence[DayStatistics]) -> str:
    limit = spec.data.checks.max_label_shift or 0
    return f"{limit * _unit(days):g} ({limit:g} deviations within a day)"


def _usual_mean(day: DayStatistics, days: Sequence[DayStatistics]) -> tuple[float, str]:
    """Return the median of the means of the days that a day is like, and what these are called."""
    known = [other for other in days if other.label.mean is not None]
    alike = [other for other in known if other.span.weekday() == day.span.weekday()]
    of_weekday = len(alike) >= _WEEKS
    means = [other.label.mean for other in (alike if of_weekday else known) if other.label.mean is not None]
    return (median(means) if means else 0.0), f"{day.span:%A}s" if of_weekday else "days"


def _unit(days: Sequence[DayStatistics]) -> float:
    """Return the median of the labels' deviations within a day; 0 without days."""
    deviations = [day.label.stddev for day in days if day.label.mean is not None and day.label.stddev is not None]
    return median(deviations) if deviations else 0.0


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
        yield from _values_outside(spec, spec.label, name, split.label)
        if spec.label.kind == "regression":
            yield from constant_label(spec, name, split.label)
        elif spec.label.kind == "multiclass":
            yield from _class_findings(spec, name, split.label)
        else:
            yield from _rate_findings(spec, name, split.label)
    yield from label_shift(spec, statistics)
    for label in spec.auxiliary_labels:
        yield from _auxiliary_findings(spec, label, statistics)


def _auxiliary_findings(spec: ModelSpec, label: AuxiliaryLabel, statistics: Statistics) -> Iterator[Finding]:
    """Yield what is wrong with an auxiliary label, which may be missing but not everywhere."""
    for name, split in statistics.splits.items():
        counted = split.auxiliary_labels.get(label.name)
        if counted is None:
            continue
        yield from _values_outside(spec, label, name, counted)
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


def _values_outside(
    spec: ModelSpec, label: Label | AuxiliaryLabel, split: str, counted: LabelStatistics
) -> Iterator[Finding]:
    outside = counted.outside
    if outside is None:
        return
    found, is_number = f"{outside.rows} labels", label.kind == "regression"
    texts, names = "", class_names(label)
    if names:
        texts = f" ({shown_texts(outside.texts)} in all splits)" if outside.texts else ""
    elif outside.low is not None and outside.high is not None:
        found += f" between {outside.low:g} and {outside.high:g}"
    own = "label" if label is spec.label else "auxiliary_labels"
    way_out = {"multiclass": f", or set {own}.classes", "regression": f", or correct the section {own}"}
    if names and label.kind == "multiclass":
        way_out["multiclass"] = f", or add them to {own}.classes"
    yield finding(
        spec,
        "label_range",
        feature=label.name,
        found=f"{found} in {split}",
        expected=expected_labels(label),
        message=f"{outside.rows} labels of {split} are no {'right number' if is_number else 'class'}{texts}: "
        f"mend them in the query{way_out.get(label.kind, '')}",
    )


def expected_labels(label: Label | AuxiliaryLabel) -> str:
    """Return which labels are right, for a sentence."""
    if label.kind == "regression":
        return label.bounds
    if names := class_names(label):
        return f"one of {shown([repr(name) for name in names])}"
    return f"whole numbers from 0 to {class_count(label) - 1}"


def _rate_findings(spec: ModelSpec, split: str, label: LabelStatistics) -> Iterator[Finding]:
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


def _class_findings(spec: ModelSpec, split: str, label: LabelStatistics) -> Iterator[Finding]:
    """Yield the classes nobody can learn, and one class that is nearly all."""
    most, counts = spec.data.checks.label_rate[1], label.counts or ()
    total = sum(counts)
    if not total:
        return
    share = max(counts) / total
    if share > most:
        frequent = class_text(spec.label, counts.index(max(counts)))
        yield finding(
            spec,
            "label_rate",
            feature=spec.label.name,
            found=f"{share:.4f} in {split}",
            expected=f"at most {most} of one class",
            message=f"{share:.3f} of the labels of {split} are {frequent}: has their meaning changed?",
        )
    absent = [class_text(spec.label, index) for index, count in enumerate(counts) if not count]
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
