"""The errors of the local cloud: one that a person is meant to read, and the refusal of a call."""

from __future__ import annotations


class LocalCloudError(Exception):
    """A refusal in four parts: where, what was found, what was expected, the way out."""

    def __init__(self, where: str, *, found: str, expected: str, way_out: str) -> None:
        self.where = where
        self.found = found
        self.expected = expected
        self.way_out = way_out
        super().__init__(f"{where}: {found}. Expected {expected}. {way_out}")


class CallError(Exception):
    """A call that is not answered with what it asked for; whoever answers it puts this into its service's form.

    Args:
        code: A name of google.rpc.Code.
    """

    def __init__(self, message: str, code: str = "INVALID_ARGUMENT") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
