"""The one error of the local cloud that a person is meant to read."""

from __future__ import annotations


class LocalCloudError(Exception):
    """A refusal in four parts: where, what was found, what was expected, the way out."""

    def __init__(self, where: str, *, found: str, expected: str, way_out: str) -> None:
        self.where = where
        self.found = found
        self.expected = expected
        self.way_out = way_out
        super().__init__(f"{where}: {found}. Expected {expected}. {way_out}")
