"""The error of this program, for the person who runs it."""

from __future__ import annotations


class ConformanceError(Exception):
    """A refusal in four parts: where, what was found, what was expected, the way out."""

    def __init__(self, where: str, *, found: str, expected: str, way_out: str) -> None:
        super().__init__(f"{where}: {found}. Expected {expected}. {way_out}")
