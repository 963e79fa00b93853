"""From the spec's cluster to machines: one list of replica pools, for job orders and for prices alike."""

from __future__ import annotations

from retraining.core.documents.plan import JobTask, Machines, Plan, Pool
from retraining.core.spec.cluster import Cluster, Replica, Replicas, resolve_tier
from retraining.core.spec.model import ModelSpec

EVALUATE_MACHINE = "n1-standard-4"
SIDE_JOB_TIMEOUT_HOURS = 2.0


def planned_machines(plan: Plan, task: JobTask) -> Machines:
    """Return the machines of one of a run's jobs, as its plan records them.

    A plan of a release that did not record them has a spec from which they follow.
    """
    recorded = plan.machines or {}
    return recorded[task] if task in recorded else machines(plan.spec, task)


def all_machines(spec: ModelSpec) -> dict[JobTask, Machines]:
    """Return the machines of each of a run's jobs, in their order."""
    return {task: machines(spec, task) for task in job_tasks(spec)}


def job_tasks(spec: ModelSpec) -> tuple[JobTask, ...]:
    """Return the tasks of a run that run jobs, in order."""
    return ("export", *(("tune",) if spec.tuning else ()), "train", "evaluate")


def chained_tasks(spec: ModelSpec) -> tuple[JobTask, ...]:
    """Return the tasks whose jobs run one after the other on one machine; a search comes between export and training.

    Empty: each has machines of its own.
    """
    if spec.jobs == "separate":
        return ()
    return ("train", "evaluate") if spec.tuning else ("export", "train", "evaluate")


def machines(spec: ModelSpec, task: JobTask) -> Machines:
    """Return the machines of one of the run's jobs. The export has as many as the spec says, the evaluation one.

    Those of `tune` are one trial's: the training's, on spot if the search says so and they are not got otherwise. Those
    of chained jobs are the training's.
    """
    if task != "train" and task in chained_tasks(spec):
        shared = training_machines(spec.training.cluster)
        return shared.model_copy(update={"timeout_s": int(SIDE_JOB_TIMEOUT_HOURS * 3600)})
    if task == "train":
        return training_machines(spec.training.cluster)
    if task == "tune":
        trial = training_machines(spec.training.cluster)
        spot = spec.tuning.spot if spec.tuning and trial.waits_for_none else trial.spot
        return trial.model_copy(update={"spot": spot})
    export = spec.data.export
    pools = [Pool(machine=EVALUATE_MACHINE if task == "evaluate" else export.machine, count=1)]
    if task == "export" and export.replicas > 1:
        pools.append(Pool(machine=export.machine, count=export.replicas - 1))
    timeout_s = int(SIDE_JOB_TIMEOUT_HOURS * 3600)
    return Machines(pools=tuple(pools), spot=task == "export" and export.spot, timeout_s=timeout_s)


def training_machines(cluster: Cluster) -> Machines:
    """Return the machines of a cluster, by role; empty pools at the end are left out."""
    resolved = resolve_tier(cluster)
    roles = (resolved.chief, resolved.workers, resolved.parameter_servers, resolved.evaluator)
    pools = [_pool(role, cluster) for role in roles]
    while not pools[-1].count:
        pools.pop()
    waits = cluster.flex_start_hours
    return Machines(
        pools=tuple(pools),
        spot=cluster.spot,
        timeout_s=int(cluster.timeout_hours * 3600),
        flex_start_s=None if waits is None else int(waits * 3600),
        reservation=cluster.reservation,
    )


def _pool(role: Replica | None, cluster: Cluster) -> Pool:
    if role is None:
        return Pool(machine="", count=0)
    return Pool(
        machine=role.machine,
        count=role.count if isinstance(role, Replicas) else 1,
        accelerator=role.accelerator,
        tpu_topology=role.tpu_topology,
        disk_gb=cluster.disk_gb,
        disk_type=cluster.disk_type,
    )
