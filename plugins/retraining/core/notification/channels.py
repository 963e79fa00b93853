"""To whom a notice goes: the model's own section, and where it says nothing the environment's settings."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from retraining.core.settings import Settings
from retraining.core.spec.notify import Notify

MAIL, CHANNEL = "mail", "channel"


@dataclass(frozen=True, kw_only=True)
class Recipient:
    """One owner by mail, or one channel.

    Attributes:
        name: How documents and logs call it: without an address.
        connection_id: Airflow connection that it goes through.
        owner: E-mail address; None: it is a channel.
    """

    name: str
    connection_id: str
    owner: str | None = None


def recipients(notify: Notify, settings: Settings) -> list[Recipient]:
    """Return who is told, each once: owners get a mail each, so that none sees another's address."""
    owners = settings.notify_owners if notify.owners is None else notify.owners
    channels = settings.notify_channels if notify.channels is None else notify.channels
    mails = [
        Recipient(name=f"{MAIL}:{short(owner)}", connection_id=settings.notify_smtp_conn_id, owner=owner)
        for owner in owners
    ]
    posts = [Recipient(name=f"{CHANNEL}:{connection}", connection_id=connection) for connection in channels]
    return list({each.name: each for each in (*mails, *posts)}.values())


def short(text: str) -> str:
    """Return what stands for an address where it must not stand itself."""
    return hashlib.sha256(text.strip().lower().encode()).hexdigest()[:12]
