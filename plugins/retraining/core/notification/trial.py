"""A trial message: to whom it goes, in which words, and what came of it, for a shell and for a task alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from retraining.core.notification import notices
from retraining.core.notification.channels import Recipient, recipients, short
from retraining.core.notification.texts import Message, render_message
from retraining.core.settings import Settings
from retraining.core.spec.model import ModelSpec


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One message on its way: whom it goes to, what it says, and the id of a mail."""

    recipient: Recipient
    message: Message
    message_id: str


def trials(spec: ModelSpec, settings: Settings, now: datetime) -> Iterator[Trial]:
    """Yield a message for each who is told of a model.

    Args:
        spec: Of its file.
        settings: Whose owners and channels count where the file names none.
        now: Tells one trial's mails from another's.
    """
    message = render_message(notices.of_trial(spec.name), settings.runbook_url)
    for recipient in recipients(spec.notify, settings):
        once = short(f"trial|{now.isoformat()}|{recipient.name}")
        yield Trial(recipient=recipient, message=message, message_id=f"<{once}@{settings.bucket}>")


def explain_settings(settings: Settings, whose: str) -> str:
    """Return by whose settings a trial is sent, and what they say; without an address of a person."""
    channels = ", ".join(settings.notify_channels) or "no channel"
    return (
        f"settings RETRAINING_… of {whose}, bucket {settings.bucket}; where the model's file names nobody: "
        f"{len(settings.notify_owners)} owners, {channels}; mails by {settings.notify_smtp_conn_id}"
    )


def nobody(spec: ModelSpec) -> str:
    """Return what to do where nobody is told."""
    return f"{spec.name}: nobody is told; name notify.owners or notify.channels in its file"
