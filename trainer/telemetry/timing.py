"""Where a training's wall time goes: sections for the report, and the parts of the time to the first step."""

from __future__ import annotations

import time
from collections.abc import Callable

from trainer.contract.documents import Seconds


class Clock:
    """Seconds by section, from the process's start.

    Args:
        start: `time.monotonic()` then.
        now: Gives seconds.
    """

    def __init__(self, start: float, now: Callable[[], float] = time.monotonic) -> None:
        self._start, self._last, self._now = start, start, now
        self._sections: dict[str, float] = {}
        self._parts: dict[str, float] = {}
        self._part_began = start

    def lap(self, section: str) -> float:
        """End a section of the report, which is a part of the way to the first step too; gives its seconds."""
        self.part(section)
        now = self._now()
        self._sections[section] = round(now - self._last, 3)
        self._last = now
        return self._sections[section]

    def part(self, name: str) -> None:
        """End a part of the way to the first step."""
        now = self._now()
        self._parts[name] = self._parts.get(name, 0.0) + now - self._part_began
        self._part_began = now

    def describe_start(self) -> str:
        """End the last part, the first call, and say all; those of less than 10 ms are left out."""
        self.part("first call")
        parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in self._parts.items() if seconds >= 0.01)
        return f"train: first steps {self._now() - self._start:.2f} s after the start ({parts})"

    def seconds(self) -> Seconds:
        """Give all sections."""
        return Seconds(**self._sections, total=round(self._now() - self._start, 3))
