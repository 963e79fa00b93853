"""What the table of rooms says of each."""

from __future__ import annotations

from typing import NamedTuple


class Room(NamedTuple):
    """A folder: what belongs there, and the rooms that it may import."""

    rule: str
    may_import: tuple[str, ...] = ()
