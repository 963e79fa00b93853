"""Follows one DAG run and prints what changes: a line per task state, and the task's log when asked for.

Comes in: an `AirflowApi` and a run. Goes out: lines on a stream, and the final states with seconds per task.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from retraining_laptop.airflow_api import AirflowApi, AirflowApiError

CONCLUSION = "conclude"  # fails because others did
FINISHED_RUN = frozenset({"success", "failed"})
HEADING = f"  {'since then':>10}  {'task':<12} {'state':<7} {'took':>8}"
SHOWN = {"running", "success", "failed", "upstream_failed", "up_for_retry", "up_for_reschedule", "skipped"}


@dataclass(frozen=True, kw_only=True)
class TaskTime:
    """How one task of a finished run went.

    Attributes:
        task_id: The task.
        state: Its last state.
        seconds: From its first start to its last end, wall clock; None if it never started.
        tries: How often it was tried.
    """

    task_id: str
    state: str
    seconds: float | None
    tries: int


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A failed task and its message: the lines of the error that ended it."""

    task_id: str
    message: tuple[str, ...]


def follow_run(
    api: AirflowApi,
    dag_id: str,
    run_id: str,
    *,
    say: Callable[[str], None],
    timeout_s: float,
    verbose: bool = False,
) -> tuple[str, list[TaskTime]]:
    """Return the run's final state and its tasks' times; prints each change as it is seen.

    Raises:
        TimeoutError: The run is not over after `timeout_s` seconds.
    """
    started = time.monotonic()
    say(HEADING)
    seen: dict[str, str] = {}
    printed: dict[tuple[str, int], int] = {}
    while True:
        run = api.read_run(dag_id, run_id)
        tasks = api.task_instances(dag_id, run_id)
        for task in tasks:
            _show_change(task, seen, time.monotonic() - started, say)
            if verbose:
                _show_log(api, dag_id, run_id, task, printed, say)
        if run["state"] in FINISHED_RUN:
            return run["state"], [task_time(task) for task in tasks]
        if time.monotonic() - started > timeout_s:
            states = ", ".join(f"{task['task_id']}={task['state']}" for task in tasks)
            raise TimeoutError(f"{dag_id} {run_id}: not over after {timeout_s:.0f} s ({states})")
        time.sleep(1)  # the API has no push; this is how often a person sees news


def read_failures(api: AirflowApi, dag_id: str, run_id: str) -> list[Failure]:
    """Return the message of each failed task of the run, in the order in which they failed.

    The run's conclusion is left out where there is another: it says only that.
    """
    failed = [task for task in api.task_instances(dag_id, run_id) if task["state"] == "failed"]
    failed = [task for task in failed if task["task_id"] != CONCLUSION] or failed
    return [
        Failure(task_id=task["task_id"], message=_error_lines(api, dag_id, run_id, task))
        for task in sorted(failed, key=lambda task: task["end_date"] or "9999")
    ]


def _error_lines(api: AirflowApi, dag_id: str, run_id: str, task: dict[str, Any], last: int = 25) -> tuple[str, ...]:
    """Return the error that ended the task's last try; of a task that died without one the end of its log."""
    where = (dag_id, run_id, task["task_id"], task["try_number"])
    try:
        return tuple(api.error_lines(*where) or api.log_lines(*where)[-last:])
    except AirflowApiError as error:
        return (str(error),)


def _show_change(task: dict[str, Any], seen: dict[str, str], elapsed_s: float, say: Callable[[str], None]) -> None:
    number = task.get("map_index", -1)
    task_id, state = task["task_id"] + ("" if number < 0 else f"[{number}]"), task["state"]
    # A waiting sensor goes to and fro between running and up_for_reschedule: that is one piece of news, not many.
    news = "running" if state == "up_for_reschedule" else state
    if state not in SHOWN or seen.get(task_id) == news:
        return
    seen[task_id] = news
    took = task_time(task).seconds
    tail = f" {took:6.1f} s" if news in {"success", "failed"} and took is not None else ""
    say(f"  {elapsed_s:8.1f} s  {task_id:<12} {f'{news:<7}{tail}'.rstrip()}")


def _show_log(
    api: AirflowApi,
    dag_id: str,
    run_id: str,
    task: dict[str, Any],
    printed: dict[tuple[str, int], int],
    say: Callable[[str], None],
) -> None:
    key = (task["task_id"], task["try_number"])
    if not task["start_date"] or printed.get(key) == -1:
        return
    try:
        lines = api.log_lines(dag_id, run_id, *key)
    except AirflowApiError:
        return  # the log file is not there yet; the next look finds it
    for line in lines[printed.get(key, 0) :]:
        say(f"      {task['task_id']}| {line}")
    printed[key] = -1 if task["end_date"] and task["state"] in {"success", "failed"} else len(lines)


def task_time(task: dict[str, Any]) -> TaskTime:
    """Return how a task went, from the API's answer."""
    seconds = None
    if task["start_date"] and task["end_date"]:
        begin, end = (datetime.fromisoformat(task[name]) for name in ("start_date", "end_date"))
        seconds = (end - begin).total_seconds()
    return TaskTime(
        task_id=task["task_id"], state=str(task["state"]), seconds=seconds, tries=max(1, int(task["try_number"]))
    )
