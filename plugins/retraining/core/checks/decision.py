"""Findings on the decision to come: it cannot be positive whatever is trained, or its floor would stop nothing.

Asked before anything is paid for, of the label's statistics alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.checks.findings import finding
from retraining.core.documents.checks import Finding, LabelStatistics, Statistics
from retraining.core.metrics import HIGHER_IS_BETTER, METRICS, LabelShape, Metric
from retraining.core.spec.model import ModelSpec


def decision_findings(spec: ModelSpec, statistics: Statistics) -> Iterator[Finding]:
    """Yield what makes the decision vain: too few test rows, a floor out of reach, a floor below every model."""
    test = statistics.splits["test"]
    least = spec.evaluation.promote.min_examples
    if 0 < test.rows < least:
        yield finding(
            spec,
            "min_examples",
            found=f"{test.rows} rows in test",
            expected=f"at least {least}",
            message=f"{test.rows} test examples are too few to judge, so nothing of this run will be promoted: "
            "lengthen data.test_days, or lower evaluation.promote.min_examples",
        )
    yield from _floor(spec, test.label)


def constant_score(metric: Metric, label: LabelStatistics) -> float | None:
    """Return what a model scores that always answers with the shares of the test labels; None: it is not known."""
    shares, numbers = _shares(label), label.numbers
    if not shares and numbers is None:
        return None
    shape = LabelShape(shares=shares, is_binary=label.counts is None, stddev=numbers.stddev if numbers else None)
    return METRICS[metric].constant(shape)


def _shares(label: LabelStatistics) -> list[float]:
    if label.counts is not None:
        total = sum(label.counts)
        return [count / total for count in label.counts] if total else []
    return [] if label.mean is None or not 0 <= label.mean <= 1 else [1 - label.mean, label.mean]


def _floor(spec: ModelSpec, label: LabelStatistics) -> Iterator[Finding]:
    metric, floor = spec.evaluation.metric, spec.evaluation.floor
    higher = metric in HIGHER_IS_BETTER
    key = "evaluation.min_value" if higher else "evaluation.max_value"
    constant = constant_score(metric, label)
    if floor > 1 if higher else floor < 0:
        best = 1 if higher else 0
        yield finding(
            spec,
            "floor",
            found=f"{key} {floor:g}",
            expected=f"a bound that a {metric} can reach: its best is {best}",
            message=f"no model reaches {key} {floor:g}, so nothing of this run will be promoted: "
            f"{'lower' if higher else 'raise'} it",
        )
    elif constant is not None and (floor <= constant if higher else floor >= constant):
        yield finding(
            spec,
            "floor",
            found=f"{key} {floor:g}",
            expected=f"{'above' if higher else 'below'} {constant:.4f}",
            message=f"a model that always answers the same has {metric} {constant:.3f} on these "
            f"{spec.data.tested_name} and reaches {key} {floor:g}: the floor stops nothing; "
            f"{'raise it over' if higher else 'lower it under'} that",
        )
