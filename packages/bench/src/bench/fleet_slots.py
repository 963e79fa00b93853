"""Who held Airflow's worker slots, and for how long, from its metadata database.

In: the SQLite file of an Airflow that this bench started. Out: sessions (from a task's start to where it ended, slept
or was tried again), the runs and the task that failed first, seconds to parse a file of DAGs.

A task that sleeps has one duration in the table of task instances, with its sleeps in it or without its earlier looks;
only the audit log has each time in which it held a slot.
"""

from __future__ import annotations

import sqlite3
import statistics
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

RUNNING = "running"
SLEEPS = "up_for_reschedule"
ENDS = frozenset({"success", "failed", "skipped", "up_for_retry", SLEEPS, "deferred"})
CONCLUSION = "conclude"  # fails because others did
_EVENTS = (
    "SELECT dag_id, run_id, task_id, map_index, event, dttm FROM log WHERE dag_id LIKE 'retrain\\_\\_%' ESCAPE '\\'"
    " AND run_id IS NOT NULL AND task_id IS NOT NULL ORDER BY dttm, id"
)
_STATES = "SELECT dag_id, task_id, state, end_date FROM task_instance"
_RUNS = "SELECT dag_id, state, start_date, end_date FROM dag_run"
_PARSED = "SELECT fileloc, MAX(last_parse_duration) FROM dag GROUP BY fileloc"


@dataclass(frozen=True, kw_only=True)
class Event:
    """A line of the audit log about a task.

    Attributes:
        task: DAG, run, task and map index.
        name: `running`, or the state that it went to.
        at: When.
    """

    task: tuple[str, str, str, int]
    name: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Session:
    """A time in which a task held a slot.

    Attributes:
        dag_id: Of the task.
        task_id: The task.
        number: From 1, of the task in its run.
        start: It runs from then on.
        end: It runs until then.
        outcome: The state that it went to.
    """

    dag_id: str
    task_id: str
    number: int
    start: datetime
    end: datetime
    outcome: str

    @property
    def seconds(self) -> float:
        """How long."""
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, kw_only=True)
class Run:
    """A DAG run that has ended.

    Attributes:
        dag_id: Of the run.
        state: `success` or `failed`.
        seconds: From its start to its end.
        failed_task_id: The task that failed first, apart from the conclusion; None: no task failed.
        states: By task.
    """

    dag_id: str
    state: str
    seconds: float
    failed_task_id: str | None
    states: Mapping[str, str]


def pair_sessions(events: Iterable[Event]) -> list[Session]:
    """Return the sessions between each start and the first end after it; a start without one is left out.

    Args:
        events: In the order of time.
    """
    started: dict[tuple[str, str, str, int], datetime] = {}
    numbers: dict[tuple[str, str, str, int], int] = {}
    sessions = []
    for event in events:
        if event.name == RUNNING:
            started[event.task] = event.at
        elif event.name in ENDS and event.task in started:
            numbers[event.task] = numbers.get(event.task, 0) + 1
            dag_id, _, task_id, _ = event.task
            sessions.append(
                Session(
                    dag_id=dag_id,
                    task_id=task_id,
                    number=numbers[event.task],
                    start=started.pop(event.task),
                    end=event.at,
                    outcome=event.name,
                )
            )
    return sessions


def look_seconds(sessions: Sequence[Session]) -> float | None:
    """Return the median seconds of a look at a job that has ended; None: no task slept.

    They are those of sessions after a sleep that ended their task well. Such a look reads the job's result too, so a
    look at a job that goes on takes less.
    """
    slept = {(each.dag_id, each.task_id) for each in sessions if each.outcome == SLEEPS}
    looks = [
        each.seconds
        for each in sessions
        if each.number > 1 and each.outcome == "success" and (each.dag_id, each.task_id) in slept
    ]
    return statistics.median(looks) if looks else None


def most_at_once(sessions: Sequence[Session]) -> int:
    """Return how many sessions there were at once at most; one that begins as another ends does not count twice."""
    changes = sorted([(each.end, -1) for each in sessions] + [(each.start, 1) for each in sessions])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def first_failed(tasks: Mapping[str, tuple[str, str]]) -> str | None:
    """Return the task that failed first; the conclusion only if no other did.

    Args:
        tasks: State and end of each, as the database has them.
    """
    failed = sorted((end, name) for name, (state, end) in tasks.items() if state == "failed")
    others = [name for _, name in failed if name != CONCLUSION]
    return next(iter(others or [name for _, name in failed]), None)


class Database:
    """An Airflow's metadata, read only.

    Args:
        path: The SQLite file.
    """

    def __init__(self, path: Path) -> None:
        self._address = f"file:{path}?mode=ro"

    def sessions(self) -> list[Session]:
        """Return who held a slot, in the order of their ends."""
        return pair_sessions(
            Event(task=(dag_id, run_id, task_id, -1 if index is None else index), name=name, at=_instant(at))
            for dag_id, run_id, task_id, index, name, at in self._rows(_EVENTS)
        )

    def runs(self) -> list[Run]:
        """Return the runs that have ended."""
        tasks: dict[str, dict[str, tuple[str, str]]] = {}
        for dag_id, task_id, state, end in self._rows(_STATES):
            tasks.setdefault(dag_id, {})[task_id] = (str(state), str(end or "9999"))
        return [
            Run(
                dag_id=dag_id,
                state=state,
                seconds=(_instant(end) - _instant(start)).total_seconds(),
                failed_task_id=first_failed(tasks.get(dag_id, {})),
                states={name: value for name, (value, _) in tasks.get(dag_id, {}).items()},
            )
            for dag_id, state, start, end in self._rows(_RUNS)
            if start and end
        ]

    def parse_seconds(self) -> dict[str, float]:
        """Return the seconds that the newest parse of each file of DAGs took, by its name."""
        return {Path(file).name: seconds for file, seconds in self._rows(_PARSED) if seconds is not None}

    def _rows(self, query: str) -> list[tuple]:  # type: ignore[type-arg]  # columns of a database
        with closing(sqlite3.connect(self._address, uri=True, timeout=60)) as connection:
            return connection.execute(query).fetchall()


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
