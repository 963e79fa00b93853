"""What this process has used: time by sections, and of its machine processor, memory, accelerator.

Goes out: numbers for the report and a line for the job's log. They are of this replica alone; each one says its own.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from trainer.contract.documents import Seconds

_MB = 1 << 20


def measure_usage() -> dict[str, float]:
    """Return this process's use since it was started.

    Returns:
        `cpu_seconds`; `cores` that it may use; `cpu_share` of what these could have done since then, 0 to 1;
        `memory_mb` at most; and `accelerator_memory_mb` at most, of all GPUs together, if TensorFlow sees one.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu, cores = used.ru_utime + used.ru_stime, len(os.sched_getaffinity(0))
    usage = {
        "cpu_seconds": round(cpu, 2),
        "cores": cores,
        "cpu_share": round(cpu / cores / max(process_age_s(), 1e-9), 3),
        "memory_mb": round(used.ru_maxrss * 1024 / _MB, 1),  # Linux counts kilobytes
    }
    accelerator = _accelerator_bytes()
    return usage if accelerator is None else {**usage, "accelerator_memory_mb": round(accelerator / _MB, 1)}


def describe_usage(command: str) -> str:
    """Say it in one line."""
    usage = measure_usage()
    accelerator = usage.get("accelerator_memory_mb")
    return (
        f"{command}: used {usage['cpu_seconds']:.1f} s of CPU, {usage['cpu_share']:.0%} of {usage['cores']} cores, and "
        f"{usage['memory_mb']:.0f} MB" + ("" if accelerator is None else f", and {accelerator:.0f} MB of accelerators")
    )


def process_age_s() -> float:
    """Return the seconds since this process was started, the imports before its first line among them."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()  # from the third on
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _accelerator_bytes() -> int | None:
    if "tensorflow" not in sys.modules:  # an export has none, and does not import it for this
        return None
    import tensorflow as tf

    devices = [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices("GPU")]
    return sum(tf.config.experimental.get_memory_info(device)["peak"] for device in devices) if devices else None


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
        """Return all sections."""
        return Seconds(**self._sections, total=round(self._now() - self._start, 3))
