"""What a run took and cost, summed up: a sum with unknown parts says so."""

from __future__ import annotations

from retraining.core.documents import TaskTiming, Timings


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
    """Tell whether money was spent on it: on a job's machines, or on the snapshot's query."""
    return task.task == "snapshot" or (task.machine is not None and not task.reused)
