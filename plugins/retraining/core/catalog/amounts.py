"""How much of a region a job takes: machines, vCPUs, accelerators; and whether that fits into its quota at all.

In: machines, the table of hardware, the limits of `include/quotas.yaml`. Out: amounts by what they are of; a refusal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from retraining.core.catalog.hardware import Hardware
from retraining.core.documents.plan import JobTask, Machines
from retraining.core.errors import QuotaError
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.quotas import CPUS, FILE, JOBS, MACHINES, Quotas

Amounts = Mapping[str, int]
"""How much by what it is of: `jobs`, `machines`, `cpus`, and accelerators by Vertex AI's names."""

_TPU_HOST = "cloud-tpu"


@dataclass(frozen=True, kw_only=True)
class MachineGroup:
    """Equal machines of a job.

    Attributes:
        machine: Their type.
        count: How many.
        accelerator: Vertex AI's name of what each has; empty: nothing, or what is in its type's name.
        accelerators: How many of it each has; of a TPU its cores.
        tpu_topology: Of a slice of TPU chips, as `2x2`; empty: none.
    """

    machine: str
    count: int
    accelerator: str = ""
    accelerators: int = 0
    tpu_topology: str = ""


def amounts_of(groups: Iterable[MachineGroup], hardware: Hardware) -> dict[str, int]:
    """Return what one job takes.

    Args:
        groups: All its machines; of a search for hyperparameters those of all trials that run at once.
        hardware: For vCPUs and chips.
    """
    found = {JOBS: 1, MACHINES: 0, CPUS: 0}
    for group in groups:
        found[MACHINES] += group.count
        found[CPUS] += group.count * (vcpus(group.machine, hardware) or 0)
        if group.accelerator:
            found[group.accelerator] = found.get(group.accelerator, 0) + group.count * group.accelerators
        for pattern, chip in hardware.tpu_chips.items():
            if size := re.fullmatch(pattern, group.machine):
                chips = math.prod(map(int, group.tpu_topology.split("x"))) if group.tpu_topology else int(size[1])
                found[chip] = found.get(chip, 0) + group.count * chips
    return found


def vcpus(machine: str, hardware: Hardware) -> int | None:
    """Return the vCPUs of a machine type: those of the table, else the number that its name ends with; None: unknown.

    The host of a `cloud-tpu` has none: Google's quota counts it with its TPU.
    """
    if machine == _TPU_HOST:
        return 0
    number = re.search(r"-(\d+)$", machine)
    return hardware.vcpus.get(machine, int(number[1]) if number else None)


def groups_of(machines: Machines, times: int = 1) -> tuple[MachineGroup, ...]:
    """Return the machines of a planned job, so many times."""
    return tuple(
        MachineGroup(
            machine=pool.machine,
            count=pool.count * times,
            accelerator=pool.accelerator.type if pool.accelerator else "",
            accelerators=pool.accelerator.count if pool.accelerator else 0,
            tpu_topology=pool.tpu_topology or "",
        )
        for pool in machines.pools
        if pool.count
    )


def accelerator_names(hardware: Hardware) -> set[str]:
    """Return the names that a quota may limit."""
    return {*hardware.accelerators, *hardware.tpu_chips.values()}


def excess(needs: Amounts, limits: Amounts) -> str:
    """Return of what a job needs more than there may ever be, in words; empty: it fits."""
    return ", ".join(
        f"{need} {name} of {limits[name]}" for name, need in needs.items() if name in limits and need > limits[name]
    )


def fitting_amounts(
    groups: Collection[MachineGroup], limits: Amounts, hardware: Hardware, region: str, job: str
) -> dict[str, int]:
    """Return what a job takes; refuse one for which there would never be room.

    Args:
        groups: Its machines.
        limits: Of the region.
        hardware: For vCPUs and chips.
        region: Where.
        job: What messages call it.

    Raises:
        QuotaError: It needs more than the quota, or nobody knows how many vCPUs.
    """
    where, needs = f"{FILE}, regions.{region}", amounts_of(groups, hardware)
    unknown = [group.machine for group in groups if CPUS in limits and vcpus(group.machine, hardware) is None]
    if unknown:
        raise QuotaError(
            f"{where}.{CPUS}",
            f"{job} needs a machine {unknown[0]}, whose vCPUs are not known",
            "machines whose vCPUs can be held against the quota",
            "Add it to vcpus in include/regions/hardware.json",
        )
    if found := excess(needs, limits):
        raise QuotaError(
            where,
            f"{job} needs {found}",
            "a job that fits into the region's quota: it would wait for ever",
            "Raise the quota, or take fewer or smaller machines",
        )
    return needs


def require_quota(
    quotas: Quotas | None,
    hardware: Hardware,
    region: str | None,
    model: str,
    jobs: Mapping[str, Collection[MachineGroup]],
) -> None:
    """Refuse a model one of whose jobs would never find room.

    Args:
        quotas: Of the file; None: there is none.
        hardware: The table.
        region: Where the jobs run; None: it is enough that they fit in one of the regions that the file names.
        model: Whose.
        jobs: Machines of each job by its task.

    Raises:
        SpecError: The file names a region or an accelerator that there is not.
        QuotaError: A job needs more than the quota; names it.
    """
    if quotas is None:
        return
    quotas.require_known(hardware.regions, accelerator_names(hardware))
    errors: list[QuotaError] = []
    for each in quotas.regions if region is None else (region,):
        try:
            for task, groups in jobs.items():
                fitting_amounts(groups, quotas.limits(each), hardware, each, f"the job {task} of {model}")
            return
        except QuotaError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def jobs_of(spec: ModelSpec, machines: Mapping[JobTask, Machines]) -> dict[str, tuple[MachineGroup, ...]]:
    """Return the machines of each job of a run: of a search those of all trials that run at once.

    Args:
        spec: The model.
        machines: Of the run's jobs; of a search those of one trial.
    """
    trials = min(spec.tuning.parallel_trials, spec.tuning.max_trials) if spec.tuning else 1
    searches = spec.tuning is not None and spec.tuning.search != "never"
    return {
        task: groups_of(each, trials if task == "tune" else 1)
        for task, each in machines.items()
        if task != "tune" or searches
    }


def scoring_job(machine: str, replicas: int) -> dict[str, tuple[MachineGroup, ...]]:
    """Return the machines of the job of a scoring in bulk."""
    return {"predict": (MachineGroup(machine=machine, count=replicas),)}
