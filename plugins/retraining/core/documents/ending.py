"""Documents at a run's end: what its tasks took in time and money, why one failed, and what people were told of it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

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
    """What each task took, in the order in which they ran: seconds, machine, list price."""

    written_by: ClassVar[str] = "report, when the run came to its end"
    read_by: ClassVar[str] = "report"
    kind: Literal["timings"] = "timings"
    model: ModelId
    run_key: RunKey
    prices_date: Day | None
    """Of the price list; null: there was none."""
    tasks: tuple[TaskTiming, ...]
    elapsed_seconds: Annotated[Number, Field(ge=0)] | None = None
    """From the run's start until its tasks' times were noted, with all waiting.

    null: not known, as in documents of earlier releases.
    """


MOST_TEXT = 2000
"""Letters of a part: a job's last lines, and not its whole log."""
Part = Annotated[str, StringConstraints(max_length=MOST_TEXT)]


class Failure(Document):
    """Why a try failed: where, what was found, what was expected, the way out; the address of its log.

    Without a terminal's escapes and without secrets.
    """

    written_by: ClassVar[str] = (
        "the task that failed, as `failures/<task>-<try>.json`; report, of one that could not (`…-end.json`)"
    )
    read_by: ClassVar[str] = "report, conclude, `retraining why`, the Models page"
    kind: Literal["failure"] = "failure"
    model: ModelId
    dag_run_id: Text
    task: Text
    attempt: Positive
    """Airflow's try."""
    retried: bool
    """Whether Airflow makes another try by itself."""
    failed_at: UtcTime
    error: Text
    """Class of the error."""
    where: Part
    """The task, where the error is not of this package."""
    found: Part
    expected: Part
    way_out: Part
    quotes: bool
    """Whether `found` may quote the data or another service, and so stays out of mails."""
    log: Text | None = None
    """Address of the try's log; null: the UI's is not known."""
    folder_uri: Uri | None = None
    """Where it lies, in `failures`, beside the run's page; null: of an earlier release."""


NotificationState = Literal["telling", "told", "over"]
"""`telling`: a task claimed it and is at it, or died. `told`: every channel was tried. `over`: it is no longer so."""
ChannelName = Annotated[str, StringConstraints(pattern=r"^[a-z]+:\S+$")]
"""`mail:` with the first digits of the address's SHA-256, `channel:` with the connection's id, `notifier:` with the
name."""


class Notification(Document):
    """The cause, who was notified, who could not be reached and why; whether it is over.

    Without a person's address and without a message's text.
    """

    written_by: ClassVar[str] = "conclude, decide, approve, deploy, roll_back, `monitor__<model>`, maintain"
    read_by: ClassVar[str] = "the same"
    kind: Literal["notification"] = "notification"
    model: ModelId | None
    event: Event
    cause: Text
    state: NotificationState
    claimant: Text
    """Task of the DAG run."""
    attempt: Positive
    """Its try."""
    since: UtcTime
    """When people began to be notified of the cause."""
    changed: UtcTime
    told: tuple[ChannelName, ...] = ()
    failed: dict[ChannelName, Text] = {}
    """Why some channels were not reached: they are tried again when the same cause comes up."""
