"""Samples how much memory this process and all that descend from it use together.

Comes in: nothing but /proc. Goes out: the largest sum of proportional set sizes seen, in bytes.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from localcloud.supervision.processes import descendants


class MemoryWatch:
    """A thread that looks every `interval_s` seconds until it is stopped."""

    def __init__(self, interval_s: float = 5.0) -> None:
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._interval_s = interval_s
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> int:
        """Stop looking and give the peak in bytes."""
        self._stop.set()
        self._thread.join()
        return self.peak_bytes

    def _watch(self) -> None:
        while not self._stop.wait(self._interval_s):
            self.peak_bytes = max(self.peak_bytes, _proportional_set_bytes())


def _proportional_set_bytes() -> int:
    total = 0
    for pid in [os.getpid(), *descendants(os.getpid())]:
        with contextlib.suppress(OSError, StopIteration):  # it ended while we looked
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += int(next(line for line in lines if line.startswith("Pss:")).split()[1]) * 1024
    return total
