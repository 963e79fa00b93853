"""The exporter's lines in the job's log: rows, megabytes, rows per second, seconds left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from trainer.replica import Replica


class Progress:
    """Counts what all threads wrote and says so, at most every two seconds.

    Args:
        say: Takes one line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.rows, self.bytes = 0, 0
        self._expected, self._start, self._said = 0, time.monotonic(), time.monotonic()
        self._lock = threading.Lock()

    def begin(self, rows: int, shards: int, finished: int, replica: Replica) -> None:
        """Say what is to be done."""
        self._expected = rows
        place = f"replica {replica.index + 1} of {replica.count}"
        self.say(f"export: {place}: {shards} shards to write, {finished} there already, about {self._expected} rows")

    def add(self, rows: int, size: int) -> None:
        """Count a shard."""
        with self._lock:
            self.rows, self.bytes = self.rows + rows, self.bytes + size
            now = time.monotonic()
            if now - self._said < 2 and self.rows < self._expected:
                return
            self._said = now
            rate = self.rows / max(self.seconds(), 1e-9)
            left = max(self._expected - self.rows, 0) / max(rate, 1e-9)
            done = f"{self.rows}/{self._expected} rows, {self.bytes / 1e6:.1f} MB"
            self.say(f"export: {done}, {rate:.0f} rows/s, {left:.0f} s left")

    def seconds(self) -> float:
        """Give the wall time since the start."""
        return time.monotonic() - self._start
