"""What a run's tasks took, with list prices, from what each left behind; a sum with unknown parts says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retraining.core.catalog.cost import Prices, job_cost, query_cost
from retraining.core.catalog.machines import job_tasks, planned_machines
from retraining.core.documents import Plan, Snapshot, TaskTiming, Timings, Tuning
from retraining.core.documents.plan import JobTask

TASKS = ("plan", "snapshot", "check_data", "export", "tune", "train", "evaluate", "decide", "register", "deploy")


@dataclass(frozen=True, kw_only=True)
class EndedTask:
    """What a task left: its own duration, its result (None: it has none), and whether it had a job."""

    seconds: float | None = None
    result: Mapping[str, Any] | None = None  # as it is in XCom
    had_job: bool = False


def run_timings(
    plan: Plan,
    snapshot: Snapshot | None,
    tuning: Tuning | None,
    ended: Mapping[str, EndedTask],
    prices: Prices | None,
) -> Timings:
    """Return what the tasks took.

    Args:
        plan: The run.
        snapshot: Its run table, where it came to one.
        tuning: What came of its study.
        ended: What each task left.
        prices: List prices, if there are any.
    """
    jobs = job_tasks(plan.spec)
    tasks = []
    for task in TASKS:
        left = ended.get(task, EndedTask())
        job_task: JobTask | None = next((job for job in jobs if job == task), None)
        if task == "tune" and job_task is None:
            continue
        if job_task == "tune":
            tasks.append(_study_timing(plan, tuning, left, prices))
        elif job_task is not None:
            tasks.append(_job_timing(plan, job_task, left, prices))
        else:
            usd = query_cost(snapshot.bytes_processed, prices, plan.region) if snapshot and prices else None
            tasks.append(
                TaskTiming(
                    task=task,
                    seconds=left.seconds,
                    reused=False,
                    machine=None,
                    estimated_usd=usd if task == "snapshot" else None,
                )
            )
    return Timings(
        model=plan.model,
        run_key=plan.run_key,
        prices_date=prices.effective if prices else None,
        tasks=tuple(tasks),
    )


def _study_timing(plan: Plan, tuning: Tuning | None, left: EndedTask, prices: Prices | None) -> TaskTiming:
    """Return of a study the sum over its trials, which may have run side by side.

    Of a run without one, the task's own time.

    What a study without a conclusion took, nobody summed up.
    """
    machines = planned_machines(plan, "tune")
    machine = machines.pools[0].machine
    if tuning is None and left.had_job:
        return TaskTiming(task="tune", seconds=None, reused=False, machine=machine, estimated_usd=None)
    if tuning is None or not tuning.trials:
        return TaskTiming(task="tune", seconds=left.seconds, reused=False, machine=None, estimated_usd=None)
    spot_seconds = tuning.seconds if machines.spot else 0.0
    usd = job_cost(machines, tuning.seconds, spot_seconds, prices, plan.region) if prices else None
    return TaskTiming(task="tune", seconds=tuning.seconds, reused=False, machine=machine, estimated_usd=usd)


def _job_timing(plan: Plan, task: JobTask, left: EndedTask, prices: Prices | None) -> TaskTiming:
    """Return what a job took: of a task that failed no time is known, of one that never began no machine either."""
    machines, result = planned_machines(plan, task), left.result
    seconds = result["seconds"] if result else None
    usd = None
    if result and seconds is not None and prices:
        usd = job_cost(machines, seconds, result["spot_seconds"], prices, plan.region)
    return TaskTiming(
        task=task,
        seconds=seconds,
        reused=result is not None and result["job"] is None,
        machine=machines.pools[0].machine if result or left.had_job else None,
        estimated_usd=usd,
    )


def total_seconds(timings: Timings) -> tuple[float, bool]:
    """Return the seconds of all tasks whose time is known, and whether a job's is not."""
    known = [task.seconds for task in timings.tasks if task.seconds is not None]
    return sum(known), any(task.seconds is None for task in timings.tasks if task.machine and not task.reused)


def run_seconds(timings: Timings) -> float:
    """Return what a run took from its start, with all waiting; of an earlier release's the sum of its tasks' work."""
    return total_seconds(timings)[0] if timings.elapsed_seconds is None else timings.elapsed_seconds


def total_usd(timings: Timings) -> str | None:
    """List price of the run in US dollars, `at least` so much where a part is not known; None where nothing is."""
    known = [task.estimated_usd for task in timings.tasks if task.estimated_usd is not None]
    unknown = any(task.estimated_usd is None for task in timings.tasks if costs(task))
    if unknown and not known:
        return None
    return f"{'at least ' if unknown else ''}{sum(known):.4f}"


def costs(task: TaskTiming) -> bool:
    """Return whether money was spent on it: on a job's machines, or on the snapshot's query."""
    return task.task == "snapshot" or (task.machine is not None and not task.reused)


def usd_of_training(timings: Timings) -> float | None:
    """Return what a run cost that trained; None: it took a training that was there, or a part has no price."""
    paid = [task.estimated_usd for task in timings.tasks if costs(task)]
    trained = any(task.task == "train" and task.machine and not task.reused for task in timings.tasks)
    known = [usd for usd in paid if usd is not None]
    return round(sum(known), 4) if trained and len(known) == len(paid) else None
