"""What a field's type cannot say: its limits, and another name in JSON. Stands in the annotations of the documents."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a value may be, beyond its type.

    Attributes:
        minimum: The least number.
        above: All numbers are greater.
        maximum: The greatest number.
        below: All numbers are less.
        pattern: Of a whole text.
        min_length: The fewest characters of a text, or entries of a list.
        max_length: The most of them.
        one_of: All texts that will do; empty: any.
        distinct: Whether no entry of a list stands twice.
        required: Keys that a mapping has.
    """

    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    below: float | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    one_of: tuple[str, ...] = ()
    distinct: bool = False
    required: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named:
    """The field's name in JSON."""

    name: str
