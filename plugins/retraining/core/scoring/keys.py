"""The keys of lines, as little of them as tells whether two sets are the same: 8 bytes each, whatever their length.

In: keys, one by one. Out: a digest that does not depend on their order, those that stand twice, those that another set
does not have. Ten million keys are 80 MB; that two of them look alike has a chance of 3 in a million.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable

Key = str | int
PlacedKey = tuple[Key, str]
"""A key, and where it stands."""
_GROUPS = 256


class KeySet:
    """The keys of some lines."""

    def __init__(self) -> None:
        self.lines = 0
        self._sum = 0
        self._groups = [array("Q") for _ in range(_GROUPS)]

    @classmethod
    def of(cls, keys: Iterable[Key]) -> KeySet:
        """Return the set of some keys, one by one."""
        found = cls()
        for key in keys:
            mark = _mark(key)
            found.lines += 1
            found._sum = (found._sum + mark) % 2**64
            found._groups[mark % _GROUPS].append(mark)
        return found

    @property
    def digest(self) -> str:
        """What tells these keys, and how often each stands, from any others."""
        return f"{self.lines}-{self._sum:016x}"

    def doubled(self) -> set[int]:
        """Return the marks of keys that stand more than once."""
        return self._find(lambda index: [mark for mark, times in Counter(self._groups[index]).items() if times > 1])

    def without(self, other: KeySet) -> set[int]:
        """Return the marks of keys that the other set does not have."""
        return self._find(lambda index: set(self._groups[index]).difference(other._groups[index]))

    def _find(self, marks: Callable[[int], Iterable[int]]) -> set[int]:
        """Go from group to group: only one of them needs more memory than its marks."""
        return {mark for index in range(_GROUPS) for mark in marks(index)}


def find_places(marks: set[int], placed: Iterable[PlacedKey], most: int) -> str:
    """Return where keys that have one of the marks stand, the first few of them."""
    found: list[str] = []
    for key, place in placed:
        if _mark(key) in marks:
            if len(found) == most:
                return "; ".join([*found, "…"])
            found.append(place)
    return "; ".join(found)


def _mark(key: Key) -> int:
    """Return a key's mark; 7 and "7" have the same: BigQuery and Vertex AI write both alike."""
    return int.from_bytes(hashlib.blake2b(str(key).encode(), digest_size=8).digest(), "little")
