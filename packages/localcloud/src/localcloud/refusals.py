"""What a statement asks for, and the local cloud does not have: refused by name with 501, whatever stands around it.

In DuckDB `error(…)` is no way for that: beneath another function it can be folded to NULL.
"""

from __future__ import annotations

from typing import NoReturn


class NotOfferedError(Exception):
    """A statement asks for what is not offered; the message names it."""


def refuse(name: str) -> NoReturn:
    """Refuse a statement that asks for something that is not offered.

    Args:
        name: Of it, which follows "The local cloud has no".

    Raises:
        NotOfferedError: Always.
    """
    raise NotOfferedError(f"The local cloud has no {name}")
