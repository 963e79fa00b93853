"""Whether a model's pool of machines is there, and has the machines of any of its jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from retraining.core.catalog.machines import all_machines
from retraining.core.documents.plan import JobTask, Machines, Pool
from retraining.core.errors import SpecError
from retraining.core.spec.machine_pool import FOLDER, MachinePool, find_pool
from retraining.core.spec.model import ModelSpec

OWN_MACHINES: frozenset[JobTask] = frozenset({"tune"})
"""Tasks whose jobs never run on a pool: trials of a study."""


def require_machine_pool(
    spec: ModelSpec, include: Path, machines: Mapping[JobTask, Machines] | None = None
) -> str | None:
    """Check that a model's pool is there; return a warning of jobs that can never run on it, None: there are none.

    Args:
        spec: The model.
        include: The folder with `pools`.
        machines: Of the run's jobs; None: those that follow from the spec.

    Raises:
        SpecError: There is no such pool, its file is broken, or it has no job's machines.
    """
    if spec.machine_pool is None:
        return None
    where = f"{spec.name}.yaml, machine_pool"
    pool = find_pool(spec.machine_pool, where, include)
    of_tasks = {task: each for task, each in (machines or all_machines(spec)).items() if task not in OWN_MACHINES}
    kinds = machines_of(pool)
    fitting = tuple(task for task, each in of_tasks.items() if has_room(each.pools, kinds))
    if not fitting:
        wanted = "; ".join(f"{task} needs {_words(each.pools)}" for task, each in of_tasks.items())
        raise SpecError(
            where,
            f"pool {pool.name} has {_words(kinds)}, and {wanted}",
            "a pool with the machines of at least one job, disks and all",
            f"Give include/{FOLDER}/{pool.name}.yaml these machines, or remove machine_pool",
        )
    alone = [task for task in of_tasks if task not in fitting]
    if not alone:
        return None
    needs = "; ".join(f"{task} needs {_words(of_tasks[task].pools)}" for task in alone)
    return f"pool {pool.name} has {_words(kinds)}: {needs}, and has machines of its own"


def machines_of(pool: MachinePool, count: Literal["min", "max"] = "max") -> tuple[Pool, ...]:
    """Return what a pool is made of, with the least or the most machines of each kind."""
    return tuple(
        Pool(
            machine=each.machine,
            count=getattr(each, count),
            accelerator=each.accelerator,
            disk_gb=each.disk_gb,
            disk_type=each.disk_type,
        )
        for each in pool.machines
    )


def has_room(wanted: Sequence[Pool], kinds: Sequence[Pool]) -> bool:
    """Return whether all machines of a job are of these kinds, disks and all, and not more than there may be."""
    needed = Counter[Pool]()
    for each in wanted:
        needed[each.model_copy(update={"count": 1})] += each.count
    most = Counter({each.model_copy(update={"count": 1}): each.count for each in kinds})
    return all(count <= most[kind] for kind, count in needed.items() if count)


def _words(machines: Sequence[Pool]) -> str:
    return " and ".join(f"{each.count} {_kind(each)}" for each in machines if each.count)


def _kind(machines: Pool) -> str:
    with_gpus = machines.accelerator
    gpus = f" with {with_gpus.count} {with_gpus.type}" if with_gpus else ""
    return f"{machines.machine}{gpus} ({machines.disk_type}, {machines.disk_gb} GB)"
