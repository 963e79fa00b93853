"""Documents at a run's end: what its tasks took in time and money, why one failed, and what people were told of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from retraining.core.documents.document import (
    Day,
    Document,
    ModelId,
    Number,
    Positive,
    RunKey,
    Text,
    Uri,
    UtcTime,
    Value,
)
from retraining.core.spec.notify import Event


class TaskTiming(Value):
    """One task. `reused`: its result was there already. Money is null where no price is known, as for Airflow itself.

    `seconds` is what was paid for where the task ran a job, else its own duration; null when it is not known.
    """

    task: Text
    seconds: Annotated[Number, Field(ge=0)] | None
    reused: bool
    machine: str | None
    estimated_usd: Annotated[Number, Field(ge=0)] | None


class Timings(Document):
    """All tasks in the order in which they ran. `prices_date` is the price list's; null when there was none.

    `elapsed_seconds` is from the run's start until its tasks' times were noted, with all waiting; null: not known, as
    in documents of earlier releases.
    """

    kind: Literal["timings"] = "timings"
    model: ModelId
    run_key: RunKey
    prices_date: Day | None
    tasks: tuple[TaskTiming, ...]
    elapsed_seconds: Annotated[Number, Field(ge=0)] | None = None


MOST_TEXT = 2000
"""Letters of a part: a job's last lines, and not its whole log."""
Part = Annotated[str, StringConstraints(max_length=MOST_TEXT)]


class Failure(Document):
    """Why a try of a task failed, in four parts, without a terminal's escapes and without secrets.

    `error` is the class of the error; of what this package did not raise itself `where` is the task. `attempt` is
    Airflow's try, `retried` whether it makes another by itself. `quotes` says that `found` may quote the data or
    another service, and so stays out of mails. `log` is the address of the try's log; null: the UI's is not known.
    `folder_uri` is where it lies, in `failures`, beside the run's page; null: it was written by an earlier release.
    """

    kind: Literal["failure"] = "failure"
    model: ModelId
    dag_run_id: Text
    task: Text
    attempt: Positive
    retried: bool
    failed_at: UtcTime
    error: Text
    where: Part
    found: Part
    expected: Part
    way_out: Part
    quotes: bool
    log: Text | None = None
    folder_uri: Uri | None = None


NotificationState = Literal["telling", "told", "over"]
ChannelName = Annotated[str, StringConstraints(pattern=r"^[a-z]+:\S+$")]
"""`mail:` with the first digits of the address's SHA-256, or `channel:` with the connection's id."""


class Notification(Document):
    """What was told of a cause, by one task, and to whom. No address of a person, and no text of a message.

    `telling`: a task claimed it and is at it, or died. `told`: every channel was tried; `failed` says of some why they
    were not reached, and the next time the same cause comes up they are tried again. `over`: it is no longer so.
    `claimant` is the task of the DAG run, `attempt` its try; `since` is when the cause began to be told.
    """

    kind: Literal["notification"] = "notification"
    model: ModelId | None
    event: Event
    cause: Text
    state: NotificationState
    claimant: Text
    attempt: Positive
    since: UtcTime
    changed: UtcTime
    told: tuple[ChannelName, ...] = ()
    failed: dict[ChannelName, Text] = {}
