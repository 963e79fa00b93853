"""The exporter's lines in the job's log: rows, megabytes, rows per second, seconds left; few of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from trainer.cluster.replica import Replica

LOGGER = logging.getLogger(__name__)
_FIRST_PAUSE_S = 10.0
_PAUSE_GROWTH = 1.5
_LONGEST_PAUSE_S = 120.0


class Progress:
    """Counts what all threads wrote and logs it: after ten seconds, then ever more rarely.

    Args:
        replica: Whose lines they are.
        clock: Seconds since some moment.
    """

    def __init__(self, replica: Replica, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._where = f"export: replica {replica.index + 1} of {replica.count}:"
        self.rows, self.bytes, self.shards = 0, 0, 0
        self._expected = 0
        self._start = self._logged = clock()
        self._pause = _FIRST_PAUSE_S
        self._lock = threading.Lock()

    def log(self, message: str, severity: int = logging.INFO) -> None:
        """Log something, with the replica before it."""
        LOGGER.log(severity, "%s %s", self._where, message)

    def begin(self, rows: int, shards: int, finished: int) -> None:
        """Log what is to be done."""
        with self._lock:
            self._expected += rows
        self.log(f"{shards} shards to write, {finished} there already, about {rows} rows")

    def add(self, rows: int, size: int) -> None:
        """Count a shard of so many bytes."""
        with self._lock:
            self.rows, self.bytes, self.shards = self.rows + rows, self.bytes + size, self.shards + 1
            now = self._clock()
            if now - self._logged < self._pause:
                return
            self._logged, self._pause = now, min(self._pause * _PAUSE_GROWTH, _LONGEST_PAUSE_S)
            left = max(self._expected - self.rows, 0) / max(self._rate(), 1e-9)
            self.log(f"{self.rows}/{self._expected} rows, {self._pace()}, {left:.0f} s left")

    def end(self, memory_bytes: int | None) -> None:
        """Log what was done.

        Args:
            memory_bytes: How much larger the process became at most; None where that is unknown.
        """
        memory = "" if memory_bytes is None else f", memory +{memory_bytes / 1e6:.0f} MB"
        self.log(f"wrote {self.rows} rows in {self.shards} shards, {self._pace()}, {self.seconds():.1f} s{memory}")

    def seconds(self) -> float:
        """Return the wall time since the start."""
        return self._clock() - self._start

    def _pace(self) -> str:
        return f"{self.bytes / 1e6:.1f} MB, {self._rate():.0f} rows/s"

    def _rate(self) -> float:
        return self.rows / max(self.seconds(), 1e-9)
