"""Findings of checks: one place that knows how severe each is."""

from __future__ import annotations

from datetime import date

from retraining.core.documents.checks import Finding
from retraining.core.spec.check_rules import RULES, Severity
from retraining.core.spec.model import ModelSpec


def severity_of(spec: ModelSpec, check: str) -> Severity | None:
    """Return how severe a check's findings are for a model; None: it is not looked at."""
    rule, checks = RULES[check], spec.data.checks
    if rule.key:
        own = str(getattr(checks, rule.key))
        return None if own == "ignore" else own  # type: ignore[return-value]  # the spec's literals
    return checks.severity.get(check, rule.severity)


def finding(
    spec: ModelSpec,
    check: str,
    *,
    found: str,
    expected: str,
    message: str,
    feature: str | None = None,
    span: date | None = None,
    compared_with: tuple[str, ...] = (),
) -> Finding:
    """Return a finding with the severity that the spec, or else the rule, gives its check.

    What should be quarantined and is not about one day blocks: bad days are out by then, and the rest is bad too.
    """
    severity = severity_of(spec, check)
    if severity is None or (severity == "quarantine" and span is None):
        severity = "block"
    return Finding(
        check=check,
        severity=severity,
        feature=feature,
        span=span,
        found=found,
        expected=expected,
        message=message,
        compared_with=compared_with,
    )


def shown(names: list[str], most: int = 5) -> str:
    """Return a list for a sentence, cut."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
