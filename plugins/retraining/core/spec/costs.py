"""What wrong answers cost: as the file says it, and as the matrix that metrics are counted by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from retraining.core.spec.section import Section

MOST_CLASSES = 100
"""With costs: each answer is weighed against each other one."""
Cost = Annotated[float, Field(gt=0, le=10**12)]


class ErrorCosts(Section):
    """What the two errors cost."""

    false_positive: Cost
    """What a wrong yes costs."""
    false_negative: Cost
    """What a missed yes costs."""


def _with_texts(value: object) -> object:
    """Return a mapping with the texts of its keys: in YAML a class that is a number is none."""
    if not isinstance(value, Mapping):
        return value
    return {key if isinstance(key, bool) else str(key): item for key, item in value.items()}


AnswerCosts = Annotated[dict[str, Annotated[float, Field(ge=0, le=10**12)]], BeforeValidator(_with_texts)]
ClassCosts = Annotated[dict[str, AnswerCosts], Field(min_length=1), BeforeValidator(_with_texts)]


def require_class_costs(costs: ClassCosts, names: Sequence[str]) -> None:
    """Refuse costs of classes that are not there, of right answers, or of too many classes.

    Args:
        costs: By the right class and the answer.
        names: Of the classes.

    Raises:
        ValueError: They are, or every error costs nothing.
    """
    if len(names) > MOST_CLASSES:
        raise ValueError(f"costs are of at most {MOST_CLASSES} classes, and there are {len(names)}: remove costs")
    for right, answers in costs.items():
        for name in (right, *answers):
            if name not in names:
                raise ValueError(f"costs has class {name!r}; expected one of {', '.join(names)}")
        if right in answers:
            raise ValueError(
                f"costs.{right} has a cost of {right!r} itself, and a right answer costs nothing: remove it"
            )
    if not any(cost for row in matrix_of_classes(costs, names) for cost in row):
        raise ValueError("costs makes every error free, so that no model is better than another: raise one")


def matrix_of_errors(costs: ErrorCosts) -> tuple[tuple[float, ...], ...]:
    """Return what each answer costs, by the right class."""
    return (0.0, costs.false_positive), (costs.false_negative, 0.0)


def matrix_of_classes(costs: ClassCosts, names: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    """Return what each answer costs, by the right class; what is not said costs 1. [classes, classes]."""
    return tuple(
        tuple(0.0 if right == answer else costs.get(right, {}).get(answer, 1.0) for answer in names) for right in names
    )
