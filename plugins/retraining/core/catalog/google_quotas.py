"""Which of Google's quotas a job takes from, by their metrics, and whether it fits.

In: machines of jobs, and the limits that Google gives the project. Out: needs by metric; what does not fit. Metrics are
called as in Vertex AI's error messages, `aiplatform.googleapis.com/custom_model_training_nvidia_t4_gpus`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from retraining.core.catalog.amounts import MachineGroup, amounts_of, vcpus
from retraining.core.catalog.hardware import Hardware

SERVICE = "aiplatform.googleapis.com"
_TRAINING = f"{SERVICE}/custom_model_training_"
_SPOT = "preemptible_"
_COUNTED_TOGETHER = re.compile(r"(n1|e2)-")
"""Families whose vCPUs are in one metric; each other family has one of its own, whose name is not known here."""
_NVIDIA = re.compile(r"NVIDIA_(?:TESLA_)?(?P<name>\w+)")
_TPU = re.compile(r"TPU_V[23]")


def needs_of(groups: Iterable[MachineGroup], hardware: Hardware, *, is_spot: bool = False) -> dict[str, int]:
    """Return what a job takes of each metric; what has none that is known is left out.

    Args:
        groups: All its machines; of a search those of all trials that run at once.
        hardware: For vCPUs.
        is_spot: Whether they are spot machines, which have metrics of their own.
    """
    beginning, found = _TRAINING + (_SPOT if is_spot else ""), dict[str, int]()
    for group in groups:
        if _COUNTED_TOGETHER.match(group.machine):
            metric = f"{beginning}cpus"
            found[metric] = found.get(metric, 0) + group.count * (vcpus(group.machine, hardware) or 0)
        for name, count in amounts_of((group,), hardware).items():
            if metric := _accelerator_metric(name, beginning):
                found[metric] = found.get(metric, 0) + count
    return found


def _accelerator_metric(name: str, beginning: str) -> str:
    if nvidia := _NVIDIA.fullmatch(name):
        return f"{beginning}nvidia_{nvidia['name'].lower()}_gpus"
    return f"{beginning}{name.lower()}" if _TPU.fullmatch(name) else ""


def shortage(needs: Mapping[str, int], limits: Mapping[str, int | None]) -> str:
    """Return what does not fit, in words; empty: all that is known does.

    Args:
        needs: Of one job, by metric.
        limits: Of the region; None: not known, or without a limit.
    """
    short = [(metric, need, limits.get(metric)) for metric, need in needs.items()]
    return ", ".join(
        f"{need} of {limit} {metric.removeprefix(_TRAINING)}"
        for metric, need, limit in short
        if limit is not None and need > limit
    )
