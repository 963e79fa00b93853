"""Findings of a model's own checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from retraining.core.documents.checks import AssertionResult, Finding
from retraining.core.spec.model import ModelSpec

PREFIX = "assertions."
"""How findings of a model's own checks are called, before their name: no later check of ours has it."""


def assertion_findings(spec: ModelSpec, results: Iterable[AssertionResult]) -> Iterator[Finding]:
    """Yield what a model's own checks found: counts and keys, no other value of a row."""
    for result in results:
        if result.rows is None:
            found, message = "not asked", f"{result.name} could not be asked: {result.not_asked}"
        elif result.rows:
            found = f"{result.rows:,} rows"
            keys = f", {spec.data.key} {', '.join(result.keys)}" if result.keys else ""
            more = ", …" if result.keys and len(result.keys) < result.rows else ""
            message = f"{result.name} finds {found}{keys}{more}: correct the source, or the query {result.query}"
        else:
            continue
        yield Finding(
            check=f"{PREFIX}{result.name}",
            severity=result.severity,
            feature=None,
            found=found,
            expected=f"no row of {result.query}",
            message=message,
        )
