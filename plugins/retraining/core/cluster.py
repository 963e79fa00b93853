"""From the spec's cluster to machines: one list of replica pools, for job orders and for prices alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from retraining.core.model_spec import ModelSpec
from retraining.core.spec_sections import Accelerator, Replica, Workers

JobTask = Literal["export", "train", "evaluate"]

EXPORT_MACHINE = "n1-standard-4"
EVALUATE_MACHINE = "n1-standard-4"
SIDE_JOB_TIMEOUT_HOURS = 2.0

# Sizes in the spirit of the scale tiers of the training service's manual; machine names as Vertex AI has them today.
TIERS: dict[str, tuple[Replica, Workers | None]] = {
    "BASIC": (Replica(machine="n1-standard-4"), None),
    "STANDARD_1": (Replica(machine="n1-highcpu-8"), Workers(machine="n1-highcpu-8", count=4)),
    "PREMIUM_1": (Replica(machine="n1-highcpu-16"), Workers(machine="n1-highcpu-16", count=19)),
    "BASIC_GPU": (Replica(machine="n1-standard-8", accelerator=Accelerator(type="NVIDIA_TESLA_T4")), None),
}


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Equal machines of a job. The first pool is the chief, with one replica."""

    machine: str
    count: int
    accelerator: Accelerator | None
    disk_gb: int


@dataclass(frozen=True, kw_only=True)
class Machines:
    """All machines of a job, whether they may be preempted, and the service-side timeout."""

    pools: tuple[Pool, ...]
    spot: bool
    timeout_s: int


def machines(spec: ModelSpec, task: JobTask) -> Machines:
    """Machines of one of the run's jobs. Export and evaluation have one small machine of their own."""
    if task != "train":
        machine = EXPORT_MACHINE if task == "export" else EVALUATE_MACHINE
        pool = Pool(machine=machine, count=1, accelerator=None, disk_gb=100)
        return Machines(pools=(pool,), spot=False, timeout_s=int(SIDE_JOB_TIMEOUT_HOURS * 3600))
    cluster = spec.training.cluster
    if cluster.tier == "CUSTOM":
        assert cluster.chief is not None  # noqa: S101 - Cluster refuses CUSTOM without a chief
        chief, workers = cluster.chief, cluster.workers
    else:
        chief, workers = TIERS[cluster.tier]
    pools = [Pool(machine=chief.machine, count=1, accelerator=chief.accelerator, disk_gb=cluster.disk_gb)]
    if workers and workers.count:
        pools.append(
            Pool(
                machine=workers.machine,
                count=workers.count,
                accelerator=workers.accelerator,
                disk_gb=cluster.disk_gb,
            )
        )
    return Machines(pools=tuple(pools), spot=cluster.spot, timeout_s=int(cluster.timeout_hours * 3600))
