"""The checks by name: how severe a finding is unless the spec says otherwise, and what the spec may say.

The names are those of `data.checks.severity` and of the findings in `checks.json`; `docs/checks.md` describes each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from retraining.core.errors import suggest

Severity = Literal["warn", "block", "quarantine"]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One check.

    Attributes:
        severity: Unless the spec says otherwise; None: it is looked at only when the spec gives it one.
        may_be: What the spec may say. `quarantine` is for findings that name a day, which is then left out.
        key: Key of `data.checks` that sets the severity instead of `data.checks.severity`.
    """

    severity: Severity | None
    may_be: tuple[Severity, ...] = ("warn", "block")
    key: str | None = None


_FIXED = Rule(severity="block", may_be=())
_OF_DAYS = Rule(severity="block", may_be=("warn", "block", "quarantine"))
# Training cannot go on with what these find.
_NEVER_A_WARNING = Rule(severity="block", may_be=("block", "quarantine"))

RULES: dict[str, Rule] = {
    "columns": _FIXED,
    "types": _FIXED,
    "schema": Rule(severity="block"),
    "empty_window": _FIXED,
    "empty_split": _FIXED,
    "min_rows": Rule(severity="block"),
    "max_volume_change": Rule(severity="block"),
    "day_volume": Rule(severity=None, may_be=("warn", "block", "quarantine")),
    "max_age_hours": Rule(severity="block"),
    "future_events": Rule(severity="warn"),
    "undated_events": Rule(severity="warn"),
    "null_keys": _OF_DAYS,
    "duplicate_keys": Rule(severity="block"),
    "key_in_two_parts": _FIXED,
    "day_overlap": _FIXED,
    "weights": _FIXED,
    "label_nulls": _NEVER_A_WARNING,
    "label_range": _NEVER_A_WARNING,
    "label_rate": _OF_DAYS,
    "auxiliary_all_null": _FIXED,
    "auxiliary_nulls": Rule(severity=None),
    "absent_class": Rule(severity="warn"),
    "constant_label": Rule(severity="block"),
    "max_label_shift": Rule(severity="warn", may_be=("warn", "block", "quarantine")),
    "max_null_fraction": _OF_DAYS,
    "ranges": _OF_DAYS,
    "all_null": _FIXED,
    "constant": Rule(severity="warn"),
    "transform": _FIXED,
    "cut_vocabulary": Rule(severity="warn"),
    "label_leak": Rule(severity="warn"),
    "key_like": Rule(severity="warn"),
    "filled_later": Rule(severity="warn"),
    "empty_image": _FIXED,
    "objects": Rule(severity="block"),
    "new_category": Rule(severity="warn", may_be=(), key="on_new_category"),
    "vanished_category": Rule(severity="warn", may_be=(), key="on_vanished_category"),
    "min_examples": Rule(severity="warn"),
    "min_evidence": Rule(severity="warn"),
    "floor": Rule(severity="warn"),
    "quarantine": _FIXED,
}


def severity_problem(severities: Mapping[str, Severity]) -> str | None:
    """Return what is wrong with a spec's `data.checks.severity`; None: nothing."""
    choosable = [name for name, rule in RULES.items() if rule.may_be]
    for name, severity in severities.items():
        rule = RULES.get(name)
        if rule is None:
            known = f"severity names the check {name!r}; expected one of: {', '.join(choosable)}."
            return f"{known} {suggest(name, list(RULES))}".strip()
        if rule.key:
            return f"severity names {name!r}, which has a key of its own: use data.checks.{rule.key}"
        if not rule.may_be:
            return f"severity names {name!r}, which always blocks: nothing could be trained. Remove it"
        if severity not in rule.may_be:
            why = "it does not speak of single days" if severity == "quarantine" else "nothing could be trained"
            return f"severity of {name} is {severity!r}: {why}; expected one of: {', '.join(rule.may_be)}"
    return None
