"""Which of Google's quotas a job takes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from retraining.core.catalog.amounts import MachineGroup
from retraining.core.catalog.google_quotas import needs_of, shortage
from retraining.core.catalog.hardware import load_hardware

HARDWARE = load_hardware(Path(__file__).resolve().parents[3] / "include")
T4 = MachineGroup(machine="n1-standard-8", count=3, accelerator="NVIDIA_TESLA_T4", accelerators=2)


@pytest.mark.parametrize(
    ("groups", "is_spot", "needs"),
    [
        ((T4,), False, {"cpus": 24, "nvidia_t4_gpus": 6}),
        ((T4,), True, {"preemptible_cpus": 24, "preemptible_nvidia_t4_gpus": 6}),
        ((T4, MachineGroup(machine="e2-standard-4", count=1)), False, {"cpus": 28, "nvidia_t4_gpus": 6}),
        ((MachineGroup(machine="c2-standard-8", count=2),), False, {}),
        ((MachineGroup(machine="cloud-tpu", count=1, accelerator="TPU_V2", accelerators=8),), False, {"tpu_v2": 8}),
    ],
    ids=["graphics", "spot", "two families together", "a family of its own", "TPU"],
)
def test_what_a_job_takes(groups, is_spot, needs):
    """By Google's metrics; what has none that is known is left out."""
    beginning = "aiplatform.googleapis.com/custom_model_training_"
    assert needs_of(groups, HARDWARE, is_spot=is_spot) == {beginning + name: count for name, count in needs.items()}


def test_what_does_not_fit():
    """A limit that is not known lets everything pass; 0 lets nothing."""
    cpus, gpus, tpus = (f"aiplatform.googleapis.com/custom_model_training_{name}" for name in ("cpus", "gpus", "tpus"))
    needs = {cpus: 8, gpus: 1, tpus: 1}
    assert shortage(needs, {cpus: 8, gpus: 0, tpus: None}) == "1 of 0 gpus"
    assert shortage(needs, {cpus: 7}) == "8 of 7 cpus"
    assert shortage({}, {}) == ""
