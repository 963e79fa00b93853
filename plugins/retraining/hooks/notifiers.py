"""Sending: a mail by the SMTP provider's notifier, a post to a webhook, each through an Airflow connection.

What is secret (a password, the path of a webhook) comes from the connection and goes nowhere else: an error that is
raised here has a class and a status, and no text of a server or of an address.
"""

from __future__ import annotations

from collections.abc import Callable
from email.errors import MessageError
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from retraining.core.untyped import ApiJson
from retraining.hooks.session import call, is_transient

if TYPE_CHECKING:
    from airflow.sdk import Connection

TIMEOUT_S = 10
PATIENCE_S = 20.0
"""How long what passes by itself is tried again."""
MESSAGE_ID = "Message-ID"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


class NotSentError(Exception):
    """A message was not sent; its text may be stored and shown."""


class _PassingError(ConnectionError):
    """A message was not sent, and may be a moment later."""


class Notifiers:
    """Airflow's notifiers."""

    def send_mail(self, connection_id: str, to: str, subject: str, html: str, message_id: str) -> None:
        """Send one mail to one address.

        Args:
            connection_id: Of the mail server; its extra has `from_email`.
            to: Whom.
            subject: One line.
            html: The text.
            message_id: The same for the same message: programs that read mail show two as one.

        Raises:
            NotSentError: The connection is missing, or the server did not take it.
        """

        def send() -> None:
            from airflow.providers.smtp.notifications.smtp import SmtpNotifier

            notifier = SmtpNotifier(
                smtp_conn_id=connection_id,
                to=to,
                subject=subject,
                html_content=html,
                mime_subtype="alternative",
                custom_headers={MESSAGE_ID: message_id},
            )
            # Not by calling it, which would take the texts for templates.
            notifier.notify({})  # it looks for a DAG there, and needs none

        _send(send, connection_id)

    def post(self, connection_id: str, body: ApiJson) -> None:
        """Post JSON to a webhook.

        Args:
            connection_id: Host, and as password what follows it in the address, as Slack's provider has it.
            body: In Slack's form.

        Raises:
            NotSentError: The connection is missing or not of HTTPS, or the server did not take it.
        """

        def send() -> None:
            import requests

            answer = requests.post(
                webhook_address(_connection(connection_id)), json=body, timeout=TIMEOUT_S, allow_redirects=False
            )
            if answer.status_code in (429, 500, 502, 503, 504):
                raise _PassingError(f"connection {connection_id}: HTTP {answer.status_code}")
            if not 200 <= answer.status_code < 300:
                raise NotSentError(f"connection {connection_id}: HTTP {answer.status_code}")

        _send(send, connection_id)


def webhook_address(connection: Connection) -> str:
    """Return the address that a connection stands for.

    Args:
        connection: Airflow's: `host` with or without a scheme, `schema` (https by default), `port`, `password`.

    Raises:
        NotSentError: It has no host, or is of plain HTTP to another machine.
    """
    host = (connection.host or "").strip().rstrip("/")
    if not host:
        raise NotSentError(f"connection {connection.conn_id}: no host")
    address = host if "://" in host else f"{connection.schema or 'https'}://{host}"
    if connection.port:
        address += f":{connection.port}"
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL_HOSTS):
        raise NotSentError(f"connection {connection.conn_id}: not https")
    secret = (connection.password or "").strip().lstrip("/")
    return f"{address}/{secret}" if secret else address


def _connection(connection_id: str) -> Connection:
    from airflow.sdk.bases.hook import BaseHook

    return BaseHook.get_connection(connection_id)


def _send(send: Callable[[], None], connection_id: str) -> None:
    """Send, again where that may help; of an error no more than its class and status goes on from here."""
    from retraining.hooks.airflow_exceptions import AirflowException

    where = f"connection {connection_id}"

    def attempt() -> None:
        try:
            send()
        except (NotSentError, _PassingError):
            raise
        except (AirflowException, MessageError, OSError, RuntimeError, TypeError, ValueError, LookupError) as error:
            code = getattr(error, "smtp_code", None)
            shown = f"{where}: {type(error).__name__}" + (f" {code}" if code else "")
            raise (_PassingError if is_transient(error) else NotSentError)(shown) from None

    try:
        call(attempt, timeout_s=PATIENCE_S)
    except _PassingError as error:
        raise NotSentError(str(error)) from None
