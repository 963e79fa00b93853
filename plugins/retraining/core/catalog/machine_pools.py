"""Whether a model's pool of machines is there, and has the machines of any of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from retraining.core.catalog.machines import all_machines
from retraining.core.documents.plan import JobTask, Machines, Pool
from retraining.core.errors import SpecError
from retraining.core.spec.machine_pool import FOLDER, MachinePool, PoolMachines, find_pool
from retraining.core.spec.model import ModelSpec

OWN_MACHINES: frozenset[JobTask] = frozenset({"tune"})
"""Tasks whose jobs never run on a pool: trials of a study."""


def require_machine_pool(
    spec: ModelSpec, include: Path, machines: Mapping[JobTask, Machines] | None = None
) -> tuple[JobTask, ...]:
    """Return the tasks whose jobs can run on the model's pool; none where it names none.

    Args:
        spec: The model.
        include: The folder with `pools`.
        machines: Of the run's jobs; None: those that follow from the spec.

    Raises:
        SpecError: There is no such pool, its file is broken, or it has no job's machines.
    """
    if spec.machine_pool is None:
        return ()
    where = f"{spec.name}.yaml, machine_pool"
    pool = find_pool(spec.machine_pool, where, include)
    of_tasks = {task: each for task, each in (machines or all_machines(spec)).items() if task not in OWN_MACHINES}
    fitting = tuple(task for task, each in of_tasks.items() if fits(each, pool))
    if not fitting:
        wanted = "; ".join(f"{task} needs {_words(each)}" for task, each in of_tasks.items())
        kinds = ", ".join(f"{kind.max} {_kind(kind)}" for kind in pool.machines)
        raise SpecError(
            where,
            f"pool {pool.name} has {kinds}, and {wanted}",
            "a pool with the machines of at least one job, disks and all",
            f"Give include/{FOLDER}/{pool.name}.yaml these machines, or remove machine_pool",
        )
    return fitting


def fits(machines: Machines, pool: MachinePool) -> bool:
    """Return whether all machines of a job are a pool's, and the pool may have as many."""
    wanted = [each for each in machines.pools if each.count]
    enough = (sum(each.count for each in wanted if _is_of(each, kind)) <= kind.max for kind in pool.machines)
    return all(enough) and all(any(_is_of(each, kind) for kind in pool.machines) for each in wanted)


def _is_of(wanted: Pool, kind: PoolMachines) -> bool:
    asked = (wanted.machine, wanted.accelerator, wanted.disk_gb, wanted.disk_type, wanted.tpu_topology)
    return asked == (kind.machine, kind.accelerator, kind.disk_gb, kind.disk_type, None)


def _words(machines: Machines) -> str:
    return " and ".join(f"{each.count} {_kind(each)}" for each in machines.pools if each.count)


def _kind(machines: Pool | PoolMachines) -> str:
    with_gpus = machines.accelerator
    gpus = f" with {with_gpus.count} {with_gpus.type}" if with_gpus else ""
    return f"{machines.machine}{gpus} ({machines.disk_type}, {machines.disk_gb} GB)"
