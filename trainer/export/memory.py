"""How large the process becomes: its peak, allocators that give back what is not used, and room for what is under way.

Comes in: /proc of this process (Linux). Goes out: bytes. The exporter works on pieces of a few megabytes; an allocator
that keeps them for later would make the process several times larger than what it holds.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from pathlib import Path

import pyarrow as pa

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # mallopt(3)
_KEPT_BYTES = 1 << 20  # with two arenas and 4 MB: 5 MB more at the peak, 2 % less time
_ARENAS = 1


def bound_allocators() -> None:
    """Keep malloc, which NumPy, gRPC and from here on Arrow use, from holding on to freed memory.

    By default an arena per thread keeps twice the largest piece that was ever freed, up to 64 MB each; and Arrow's own
    allocator keeps what other threads freed.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, _ARENAS)
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


class PeakMemory:
    """The process's growth from now on, resident bytes."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # forget the peak before: proc(5)
        self._start = _status("VmRSS")

    def grown(self) -> int | None:
        """Return how much larger the process was at its largest; None where that is unknown."""
        peak = _status("VmHWM")
        return None if peak is None or self._start is None else max(peak - self._start, 0)


def _status(name: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
    except (OSError, StopIteration):
        return None


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
