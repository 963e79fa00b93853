"""One mail by the SMTP provider's hook, over connections that heed the limit of the call they are used in.

It logs in as the Airflow connection says.
"""

from __future__ import annotations

import smtplib
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow.providers.smtp.hooks.smtp import SmtpHook

from retraining.core.errors import ContractError
from retraining.core.untyped import Foreign
from retraining.hooks import limits
from retraining.hooks.transports import LimitedSocket

if TYPE_CHECKING:
    from airflow.sdk import Connection


class LimitedSmtp(smtplib.SMTP):
    """A mail client whose server answers within the limit of the call."""

    def _get_socket(self, host: Foreign, port: Foreign, timeout: Foreign) -> Foreign:
        """Connect, and watch over the socket; `timeout` is the connection's alone."""
        left = limits.current("A mail server").left("A mail server")
        return LimitedSocket(super()._get_socket(host, port, min(timeout or left, left)))  # type: ignore[misc]  # SMTP's

    def getreply(self) -> tuple[int, bytes]:
        """Read one answer; a connection that says too much is closed."""
        try:
            return super().getreply()
        except ContractError:
            self.close()
            raise

    def starttls(self, *arguments: Foreign, **tls: Foreign) -> tuple[int, bytes]:
        """Go on over TLS, and watch over that."""
        reply = super().starttls(*arguments, **tls)
        plain: Foreign = self.sock
        if isinstance(plain, socket.socket):
            self.sock = LimitedSocket(plain)  # type: ignore[assignment]  # it answers as a socket does
        return reply


class LimitedSmtpSsl(LimitedSmtp, smtplib.SMTP_SSL):
    """The same over TLS from the first byte on."""


class LimitedSmtpHook(SmtpHook):
    """The provider's hook with a client that waits and reads no more than it may.

    Args:
        connection: Of the mail server.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(smtp_conn_id=connection.conn_id)
        self._connection = connection

    def get_connection(self, conn_id: str) -> Connection:  # type: ignore[override]  # a class method asks Airflow
        """Return the connection that was asked for before, in the task's own thread."""
        del conn_id
        return self._connection

    def get_conn(self) -> SmtpHook:
        """Log in.

        Raises:
            TypeError: This release of the provider makes its client otherwise.
        """
        made = super().get_conn()
        if not isinstance(self._smtp_client, LimitedSmtp):
            raise TypeError("the SMTP provider's hook made a client of its own")
        return made

    def _build_client(self) -> LimitedSmtp:
        return (LimitedSmtpSsl if self.use_ssl else LimitedSmtp)(**self._build_client_kwargs(is_async=False))


def send_mail(connection: Connection, *, to: str, subject: str, html: str, headers: Mapping[str, str]) -> None:
    """Send one mail; texts are taken as they are, and never for templates.

    Args:
        connection: Of the mail server; its extra has `from_email`.
        to: One address.
        subject: One line.
        html: The text.
        headers: Further ones.
    """
    with LimitedSmtpHook(connection) as hook:
        hook.send_email_smtp(
            to=to, subject=subject, html_content=html, mime_subtype="alternative", custom_headers=dict(headers)
        )
