"""One mail by the SMTP provider's hook, whose client is bounded: it logs in as the Airflow connection says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow.providers.smtp.hooks.smtp import SmtpHook

from retraining.hooks.bounded_calls import BoundedSmtp, BoundedSmtpSsl, Limits

if TYPE_CHECKING:
    from airflow.sdk import Connection


class BoundedSmtpHook(SmtpHook):
    """The provider's hook with a client that waits and reads no more than it may.

    Args:
        connection: Of the mail server.
        limits: Of one message.
    """

    def __init__(self, connection: Connection, limits: Limits) -> None:
        super().__init__(smtp_conn_id=connection.conn_id)
        self._connection, self._limits = connection, limits

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
        if not isinstance(self._smtp_client, BoundedSmtp):
            raise TypeError("the SMTP provider's hook made a client of its own")
        return made

    def _build_client(self) -> BoundedSmtp:
        named = self._build_client_kwargs(is_async=False)
        return (BoundedSmtpSsl if self.use_ssl else BoundedSmtp)(self._limits, **named)


def send_mail(
    connection: Connection, limits: Limits, *, to: str, subject: str, html: str, headers: Mapping[str, str]
) -> None:
    """Send one mail; texts are taken as they are, and never for templates.

    Args:
        connection: Of the mail server; its extra has `from_email`.
        limits: Of the call.
        to: One address.
        subject: One line.
        html: The text.
        headers: Further ones.
    """
    with BoundedSmtpHook(connection, limits) as hook:
        hook.send_email_smtp(
            to=to, subject=subject, html_content=html, mime_subtype="alternative", custom_headers=dict(headers)
        )
