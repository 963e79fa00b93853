"""What this process has used of its machine: processor, memory, accelerator.

Goes out: numbers for the report and a line for the job's log. They are of this replica alone; each one says its own.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

_MB = 1 << 20


def measure_usage() -> dict[str, float]:
    """Give this process's use since it was started.

    Returns:
        `cpu_seconds`; `cores` that it may use; `cpu_share` of what these could have done since then, 0 to 1;
        `memory_mb` at most; and `accelerator_memory_mb` at most, of all GPUs together, if TensorFlow sees one.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu, cores = used.ru_utime + used.ru_stime, len(os.sched_getaffinity(0))
    usage = {
        "cpu_seconds": round(cpu, 2),
        "cores": cores,
        "cpu_share": round(cpu / cores / max(_age_s(), 1e-9), 3),
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


def _age_s() -> float:
    """Give the seconds since this process was started, the imports before its first line among them."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()  # from the third on
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _accelerator_bytes() -> int | None:
    if "tensorflow" not in sys.modules:  # an export has none, and does not import it for this
        return None
    import tensorflow as tf

    devices = [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices("GPU")]
    return sum(tf.config.experimental.get_memory_info(device)["peak"] for device in devices) if devices else None
