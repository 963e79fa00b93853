"""What runs leave behind beside spans: jobs that nobody waits for, run tables that do not go, small objects.

A job is cancelled only when it can be known that nobody will look for it again: its run has an outcome, or the task
that waited for it gave no sign for a day *and* an earlier cleaning saw it silent already. Airflow was alive then, and
still nobody came; after an outage of Airflow itself the first cleaning therefore cancels nothing, and the tasks find
their jobs again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from retraining.core.documents.retention import FoundJob, FoundTable, MaintenancePlan
from retraining.core.naming.bigquery import is_run_table, time_of_batch_output
from retraining.core.naming.vertex import run_of
from retraining.core.retention.spans import Limits, whole_second

ENDED_GRACE = timedelta(hours=1)
"""The run's own task `cancel_jobs` comes first."""

SILENT = timedelta(hours=24)
SILENT_POKES = 3
"""Sleeps between two looks (`RETRAINING_WAKE_INTERVAL_S`), where these are longer than a day."""

SEEN_BEFORE = timedelta(hours=6)
TABLE_GRACE = timedelta(days=1)
"""BigQuery removes an expired table some time after its hour."""


@dataclass(frozen=True, kw_only=True)
class ActiveJob:
    """A job that still runs.

    Attributes:
        name: Full name.
        state: Of the service.
        model: From its labels.
        run_key: From its labels.
        created: When.
        ended: Whether its run has an outcome.
        last_sign: Its creation, or the last poke of the task that waits for it.
    """

    name: str
    state: str
    model: str
    run_key: str
    created: datetime
    ended: bool
    last_sign: datetime


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the dataset; `expires` None: never."""

    name: str
    expires: datetime | None


def silence(wake_interval_s: int) -> timedelta:
    """Return how long a task that waits for a job may give no sign."""
    return max(SILENT, SILENT_POKES * timedelta(seconds=wake_interval_s))


def active_job(
    name: str,
    state: str,
    labels: Mapping[str, str],
    created: datetime | None,
    last_poke: datetime | None,
    *,
    ended: bool,
) -> ActiveJob | None:
    """Return a job with what is known of its run; None for one that no run of ours made.

    Args:
        name: Full name.
        state: Of the service.
        labels: Its own.
        created: When.
        last_poke: When the task that waits for it last gave a sign; None: it never did.
        ended: Whether its run has an outcome.
    """
    run = run_of(labels)
    if run is None or created is None:
        return None
    sign = max(created, last_poke or created)
    return ActiveJob(name=name, state=state, model=run[0], run_key=run[1], created=created, ended=ended, last_sign=sign)


def reason_to_leave(unattended: FoundJob, job: ActiveJob | None, *, ours: bool) -> str | None:
    """Return why a job that was to be cancelled is left after all; None: it is cancelled.

    Args:
        unattended: As it was judged.
        job: As it stands now; None: it has ended.
        ours: Whether it is this environment's.
    """
    if job is None:
        return "it has ended"
    if not ours:
        return "it is another environment's"
    return "somebody looks at it again" if whole_second(job.last_sign) > unattended.silent_since else None


def judge_job(job: ActiveJob, limits: Limits, longest_silence: timedelta, before: MaintenancePlan | None) -> FoundJob:
    """Return whether anybody still waits for a job.

    Args:
        job: As it stands.
        limits: Time of the cleaning.
        longest_silence: See `silence`.
        before: Plan of the cleaning before this one, if there is one.
    """
    sign = whole_second(job.last_sign)
    silent = limits.as_of - sign
    cancel = False
    if job.ended and limits.as_of - job.created >= ENDED_GRACE:
        cancel, message = True, "its run has an outcome, so nobody waits for it"
    elif job.ended:
        message = "its run has just ended: the task cancel_jobs comes first"
    elif silent < longest_silence:
        message = f"the task that waits for it gave a sign at {sign:%Y-%m-%d %H:%M} UTC"
    elif _seen_silent(job.name, sign, limits, before):
        cancel, message = (
            True,
            f"nobody has looked at it since {sign:%Y-%m-%d %H:%M} UTC, as an earlier cleaning saw too",
        )
    else:
        message = (
            f"nobody has looked at it since {sign:%Y-%m-%d %H:%M} UTC; if that stays so, the next cleaning cancels it"
        )
    return FoundJob(
        name=job.name,
        state=job.state,
        model=job.model,
        run_key=job.run_key,
        created=whole_second(job.created),
        silent_since=sign,
        cancel=cancel,
        message=message,
    )


def _seen_silent(name: str, sign: datetime, limits: Limits, before: MaintenancePlan | None) -> bool:
    if before is None or limits.as_of - before.as_of < SEEN_BEFORE:
        return False
    return any(job.name == name and job.silent_since == sign and before.as_of > sign for job in before.jobs)


def judge_tables(tables: Iterable[Table], limits: Limits) -> Iterator[FoundTable]:
    """Run tables that will not go by themselves, or should be gone, and what scorings that died left of their jobs.

    Other tables are nobody's business here.
    """
    for table in tables:
        written = time_of_batch_output(table.name)
        if written and table.expires is None and limits.as_of - written > TABLE_GRACE:
            message = f"a batch prediction wrote it at {written:%Y-%m-%d %H:%M} UTC, and nobody took it: drop it"
            yield FoundTable(table=table.name, message=message)
        if not is_run_table(table.name):
            continue
        if table.expires is None:
            yield FoundTable(table=table.name, message="it has no expiration: set one, or drop it")
        elif limits.as_of - table.expires > TABLE_GRACE:
            yield FoundTable(table=table.name, message=f"it expired at {table.expires:%Y-%m-%d %H:%M} UTC and is there")
