"""Why a run's tasks failed: from an error to the document, and from the documents to what a person reads.

In: an error, the states of the run's tasks, the documents. Out: a `Failure`, its sentences, the run's success.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from retraining.core.documents import Failure
from retraining.core.documents.ending import MOST_TEXT
from retraining.core.errors import DataError, JobError, RetrainingError, RunError, is_final, plain_text

LINE = 200
"""Letters of a failure in a row of a table."""
LOST = "NoErrorLeft"
"""In the place of an error's class: the task ended without one."""
ENDED_BY_HAND = "EndedByHand"
"""The same: no task failed, and yet some did not run."""
ENDED_BY_PLAN = "EndedByPlan"
"""The same: no task failed, and `plan` skipped all others."""
NOT_FAILED = frozenset({ENDED_BY_HAND, ENDED_BY_PLAN})
NEXT_STEPS = {
    "plan": (
        "Nothing was paid for. Correct the Param, setting or file that the message names, and trigger the run again."
    ),
    "snapshot": (
        "Nothing was paid for but the query. Of wrong SQL correct the file; then clear plan and what follows it, for "
        "the run holds on to the SQL that it was planned with."
    ),
    "check_data": (
        "No job was paid for. Mend the source and trigger with Force; where the query or the spec was wrong, correct "
        "it and clear plan with what follows it. docs/checks.md has each check and its way out."
    ),
    "export": (
        "The job's own lines are in the task's log. Clear export when the cause is mended: shards that are finished "
        "are kept and never written again."
    ),
    "tune": (
        "The task's log names the trials that failed. Mend what they name and clear it, or trigger with Tune never: "
        "finished trials are kept."
    ),
    "train": (
        "The job's own lines are in the task's log. Clear train when the cause is mended: it goes on from the last "
        "checkpoint."
    ),
    "evaluate": (
        "The job's own lines are in the task's log. Clear evaluate when the cause is mended; a model that is only bad "
        "never fails it."
    ),
    "decide": (
        "A bad model is no failure, so something is wrong with what the decision reads. Mend what the message names "
        "and clear decide."
    ),
    "register": "Clear it: it finds its own version again and registers nothing twice.",
    "approve": "Clear it, and the question is asked again.",
    "deploy": "The version that served before has its traffic back. Clear deploy to try again.",
}
"""What the run-book says of a failed task."""
CLEARING = "Clearing a task is always safe: what is done is taken, a job that still runs is found again."


@dataclasses.dataclass(frozen=True, kw_only=True)
class Try:
    """A task's try, as Airflow counts.

    Attributes:
        model: Whose run.
        dag_run_id: Its DAG run.
        task: Task id.
        attempt: From 1.
        may_retry: Whether Airflow makes another one of an error that may pass.
        time: When it failed; whole second.
        log: Address of its log; None: not known.
    """

    model: str
    dag_run_id: str
    task: str
    attempt: int
    may_retry: bool
    time: datetime
    log: str | None


def describe_failure(error: BaseException, of: Try) -> Failure:
    """Return the document of an error: its four parts; of a stranger its text, in place of what was found."""
    if isinstance(error, RetrainingError):
        retried = of.may_retry and not is_final(error)
        # A message made of another error's quotes it; a job's are its own last lines.
        quotes = isinstance(error, DataError | JobError) or error.__cause__ is not None
        parts = (error.where, error.found, error.expected, error.way_out)
        return _failure(of, type(error).__name__, parts, retried=retried, quotes=quotes)
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    way_out = "What it comes of stands in the task's log. Where it passes by itself, clear the task"
    parts = (f"task {of.task}", text, "", way_out)
    return _failure(of, type(error).__name__, parts, retried=of.may_retry, quotes=True)


def lost_task(of: Try) -> Failure:
    """Return the document of a task that failed and left no message."""
    parts = (
        f"task {of.task}",
        "it failed and left no message: its worker died, it ran out of time, or a person marked it as failed",
        "",
        "Look at its log, at the worker's memory and at its end. Then clear the task and what follows it",
    )
    return _failure(of, LOST, parts, retried=False, quotes=False)


def ended_by_hand(of: Try) -> Failure:
    """Return the document of a run that a person ended: of the first task that did not run."""
    parts = (
        f"run {of.dag_run_id}",
        f"the task {of.task} did not run: the run was ended by hand",
        "every task to succeed",
        f"Clear {of.task} and what follows it to go on",
    )
    return _failure(of, ENDED_BY_HAND, parts, retried=False, quotes=False)


def ended_by_plan(of: Try, reason: str) -> Failure:
    """Return the document of a run that its plan ended, as of a model whose retraining is paused."""
    parts = (f"run {of.dag_run_id}", reason, "", "")
    return _failure(of, ENDED_BY_PLAN, parts, retried=False, quotes=False)


def first_unsuccessful(states: Mapping[str, str | None]) -> tuple[str, bool] | None:
    """Return the first task that failed, and True; else the first that did not run, and False; None: all is well.

    Args:
        states: Airflow's, of the run's tasks in its order. What was skipped by the plan is not among them.
    """
    for task, state in states.items():
        if state == FAILED:
            return task, True
    for task, state in states.items():
        if state not in ("success", "upstream_failed"):
            return task, False
    return None


def heading(failure: Failure) -> str:
    """Return what failed, and whether it is tried again."""
    if failure.error == ENDED_BY_HAND:
        return f"Ended by hand before {failure.task}"
    if failure.error == ENDED_BY_PLAN:
        return "Skipped"
    return f"{failure.task} failed and is tried again" if failure.retried else f"Failed at {failure.task}"


def next_step(failure: Failure) -> str:
    """Return what the run-book says of the task that failed; empty of a run that its plan ended."""
    if failure.error == ENDED_BY_PLAN:
        return ""
    return f"{NEXT_STEPS.get(failure.task, '')} {CLEARING}".lstrip()


def origin(failure: Failure) -> str:
    """Return which try left the message, when, and as what."""
    kind = "" if failure.error in NOT_FAILED else f"{failure.error} of "
    again = "; Airflow tries it again by itself" if failure.retried else ""
    return f"{kind}try {failure.attempt} of {failure.task}, {failure.failed_at:%Y-%m-%d %H:%M:%S} UTC{again}"


def one_line(failure: Failure) -> str:
    """Return why a run failed, as a row of a table has it: where, and what was found."""
    return shorten(failure.found if failure.error in NOT_FAILED else f"{failure.where}: {failure.found}")


def shorten(text: str) -> str:
    """Return a text as one line of a table's row."""
    line = " ".join(text.split())
    return line if len(line) <= LINE else f"{line[: LINE - 1]}…"


def newest_failure(failures: Iterable[Failure]) -> Failure:
    """Return the failure that counts of a run that came to no plan: its newest."""
    return max(failures, key=lambda each: (each.failed_at, each.attempt))


def parts_of(failure: Failure) -> Iterator[tuple[str, str]]:
    """Yield the parts that say something, by name."""
    named = (
        ("where", failure.where),
        ("found", failure.found),
        ("expected", failure.expected),
        ("way out", failure.way_out),
    )
    yield from ((name, text) for name, text in named if text)


def _failure(of: Try, error: str, parts: tuple[str, str, str, str], *, retried: bool, quotes: bool) -> Failure:
    where, found, expected, way_out = (_cut(plain_text(part).strip()) for part in parts)
    return Failure(
        model=of.model,
        dag_run_id=of.dag_run_id,
        task=of.task,
        attempt=of.attempt,
        retried=retried,
        failed_at=of.time,
        error=error,
        where=where,
        found=found,
        expected=expected,
        way_out=way_out,
        quotes=quotes,
        log=of.log,
    )


def _cut(text: str) -> str:
    """Keep both ends of a long text: of a job's lines the last ones say why."""
    if len(text) <= MOST_TEXT:
        return text
    end = MOST_TEXT // 2
    return f"{text[: MOST_TEXT - end - 3]} … {text[-end:]}"


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
