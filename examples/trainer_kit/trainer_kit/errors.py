"""What ends a job, by its exit code."""

from __future__ import annotations


class RequestError(Exception):
    """The request or the data is wrong and trying again cannot help: exit code 2."""

    def __init__(self, where: str, found: str, expected: str, way_out: str = "") -> None:
        super().__init__(f"{where}: {found}. Expected {expected}." + (f" {way_out}." if way_out else ""))
