"""A run that its first task ends: all but the teardowns is skipped, and the run is green all the same."""

from __future__ import annotations

from typing import Any, NoReturn

from airflow.sdk import BaseOperator, Context

from retraining.hooks.airflow_exceptions import DownstreamTasksSkipped

PLAN, KEY = "plan", "ended_early"


def end_run(task: BaseOperator, context: Context, message: str) -> NoReturn:
    """End the task, as a success, and skip what follows it; the teardowns run and find nothing to do.

    Args:
        task: The run's `plan`.
        context: Airflow's.
        message: Why; `conclude` finds it in XCom.

    Raises:
        DownstreamTasksSkipped: Airflow's way to say so.
    """
    context["ti"].xcom_push(key=KEY, value=message)
    following = task.get_flat_relatives(upstream=False)
    skipped: Any = DownstreamTasksSkipped  # it has no types
    raise skipped(tasks=sorted(each.task_id for each in following if not each.is_teardown))


def reason_of_end(ti: Any) -> str | None:
    """Return why the run's plan ended it; None: it did not. A cleared plan begins without."""
    found = ti.xcom_pull(task_ids=PLAN, key=KEY)
    return str(found) if found else None
