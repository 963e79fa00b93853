"""Backpressure by bytes: who makes something waits until there is room for it. Imports nothing of the trainer."""

from __future__ import annotations

import threading


class Room:
    """Bytes that may be under way at once; a piece that is too large goes alone.

    Args:
        size: So many.
    """

    def __init__(self, size: int) -> None:
        self._size, self._taken, self._is_open = size, 0, False
        self._changed = threading.Condition()

    def take(self, size: int) -> None:
        """Wait until there is room for so many."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_open or not self._taken or self._taken + size <= self._size)
            self._taken += size

    def give(self, size: int) -> None:
        """Give them back."""
        with self._changed:
            self._taken -= size
            self._changed.notify_all()

    def open(self) -> None:
        """Let everybody in: nothing is done any more."""
        with self._changed:
            self._is_open = True
            self._changed.notify_all()
