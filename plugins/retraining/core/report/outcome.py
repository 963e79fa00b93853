"""What the states of a run's tasks say of the run: whether it did its work, and if not, what stopped it."""

from __future__ import annotations

from collections.abc import Mapping

from retraining.core.errors import RunError

SUCCESS, FAILED, SKIPPED = "success", "failed", "skipped"


def require_success(run_id: str, states: Mapping[str, str | None], *, may_skip: bool = False) -> None:
    """Accept a run in which every task succeeded.

    Args:
        run_id: Of the DAG run.
        states: Airflow's state of each other task of the run, by task id; None: not begun.
        may_skip: Whether the run's own plan ended it: what was skipped is no failure.

    Raises:
        RunError: A task failed, or was passed over because the run was ended by hand.
    """
    failed, left = unsuccessful(states, may_skip=may_skip)
    if failed:
        found = f"{_listed(failed)} failed" + (f"; {_listed(left)} did not run" if left else "")
        way_out = (
            f"The log of {failed[0]} says why and what to do; when that is mended, clear {failed[0]} and what follows "
            "it. Ended by hand: clear it to go on"
        )
    elif left:
        found = f"{_listed(left)} did not run: the run was ended by hand"
        way_out = f"Clear {left[0]} and what follows it to go on. If it is good as it is, mark the run as success again"
    else:
        return
    raise RunError(f"run {run_id}", found, "every task to succeed", way_out)


def unsuccessful(states: Mapping[str, str | None], *, may_skip: bool = False) -> tuple[list[str], list[str]]:
    """Return the tasks that failed, and those that did not run, by the same arguments."""
    failed = [task for task, state in states.items() if state == FAILED]
    fine = (SUCCESS, SKIPPED) if may_skip else (SUCCESS,)
    return failed, [task for task, state in states.items() if state not in (*fine, FAILED)]


def _listed(tasks: list[str]) -> str:
    return ", ".join(tasks)
