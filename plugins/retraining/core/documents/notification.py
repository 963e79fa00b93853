"""Document of what people were told: one per cause, so that nothing is told twice."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from retraining.core.documents.document import Document, ModelId, Positive, Text, UtcTime
from retraining.core.spec.notify import Event

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
