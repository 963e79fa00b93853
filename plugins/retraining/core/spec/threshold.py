"""When a binary answer counts as a yes: a number, a rule by which it is chosen, or what the two errors cost."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from retraining.core.spec.section import Section

_RULE = r"^(max_f1|(recall|precision) ?>= ?(0?\.[0-9]{0,9}[1-9]|1|1\.0))$"
_EXPECTED = (
    "expected a number between 0 and 1, max_f1, recall>=0.9, precision>=0.8 or {false_positive: …, false_negative: …}"
)

Cost = Annotated[float, Field(gt=0, le=10**12)]
RuleText = Annotated[str, StringConstraints(pattern=_RULE)]
RuleName = Literal["recall", "precision", "max_f1"]


class ErrorCosts(Section):
    """What the two errors cost: the threshold has the least cost over the validation split."""

    false_positive: Cost
    """What a wrong yes costs."""
    false_negative: Cost
    """What a missed yes costs."""


Threshold = Annotated[float, Field(gt=0, lt=1)] | RuleText | ErrorCosts
"""A text is `max_f1`, or the least recall or precision that is wanted."""


def require_rule(value: object) -> object:
    """Return what the file gives.

    Raises:
        ValueError: A text that is no rule.
    """
    if isinstance(value, str) and not re.fullmatch(_RULE, value):
        raise ValueError(f"{value!r} is no rule; {_EXPECTED}")
    return value


def read_rule(text: RuleText) -> tuple[RuleName, float | None]:
    """Return a rule's name and the least recall or precision that it asks for."""
    name, _, least = text.replace(" ", "").partition(">=")
    names: dict[str, RuleName] = {"recall": "recall", "precision": "precision", "max_f1": "max_f1"}
    return names[name], float(least) if least else None
