"""Findings on the weights of examples: one that is none would spoil the loss and every metric."""

from __future__ import annotations

from collections.abc import Iterator

from retraining.core.checks.findings import finding
from retraining.core.documents.checks import Finding, Statistics
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
