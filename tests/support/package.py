"""What the table of packages says of each."""

from __future__ import annotations

from typing import NamedTuple


class Package(NamedTuple):
    """A folder: what belongs there, and the packages that it may import."""

    rule: str
    may_import: tuple[str, ...] = ()
