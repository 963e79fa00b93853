"""Mail servers and webhooks in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from retraining.core.notification.messages import Message, Recipient
from retraining.core.untyped import ApiJson
from retraining.hooks.notifiers import NotSentError


def nothing(done: bool) -> None:
    """What happens around a message, where nothing does."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """What somebody got."""

    connection_id: str
    to: str
    subject: str
    text: str
    message_id: str = ""


@dataclass
class FakeNotifiers:
    """Keeps what is sent.

    Attributes:
        sent: In order.
        broken: Connections that are not there.
        around: Called before and after each message with whether it is sent; may raise `Killed`.
    """

    sent: list[Sent] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    around: Callable[[bool], None] = nothing

    def send(self, recipient: Recipient, message: Message, message_id: str) -> None:
        """As the hook."""
        if recipient.notifier is not None:
            text = "\n".join(message.parts["lines"])
            sent = Sent(connection_id=recipient.name, to="", subject=message.subject, text=text, message_id=message_id)
            self._send(sent, recipient.name)
        elif recipient.owner is None:
            self.post(recipient.connection_id, message.post)
        else:
            self.send_mail(recipient.connection_id, recipient.owner, message.subject, message.html, message_id)

    def send_mail(self, connection_id: str, to: str, subject: str, html: str, message_id: str) -> None:
        """As the hook."""
        self._send(
            Sent(connection_id=connection_id, to=to, subject=subject, text=html, message_id=message_id), connection_id
        )

    def post(self, connection_id: str, body: ApiJson) -> None:
        """As the hook."""
        self._send(
            Sent(connection_id=connection_id, to="", subject=str(body["text"]), text=str(body["blocks"])), connection_id
        )

    def _send(self, sent: Sent, connection_id: str) -> None:
        if connection_id in self.broken:
            raise NotSentError(f"connection {connection_id}: AirflowNotFoundException")
        self.around(False)
        self.sent.append(sent)
        self.around(True)
