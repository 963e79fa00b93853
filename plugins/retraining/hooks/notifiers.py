"""Sending: a mail, a post to a webhook, each through an Airflow connection; or by a team's own notifier.

What is secret (a password, the path of a webhook) comes from the connection and goes nowhere else: an error that is
raised here has a class and a status, and no text of a server or of an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from email.errors import MessageError
from importlib.metadata import entry_points
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from retraining.core.errors import ContractError
from retraining.core.notification.messages import NOTIFIER, Message, Recipient
from retraining.core.team_code import OutOfTimeError, attempt
from retraining.core.untyped import ApiJson
from retraining.hooks import limits
from retraining.hooks.session import is_transient, retry

if TYPE_CHECKING:
    from airflow.sdk import Connection

GROUP = "retraining.notifiers"
"""Entry points of a team's own notifiers."""
CONNECT_S = 10.0
"""For a webhook's connection."""
PATIENCE_S = 20.0
"""How long what passes by itself is tried again."""
DEADLINE_S = 25.0
"""Of one message as a whole, with all its tries: a task waits no longer for it."""
MAX_BYTES = 256_000
"""That are read of a server for one message: of a webhook the heads of its answers, of a mail server its lines."""
WEBHOOK_TYPES = ("http", "https", "slackwebhook")
MAIL_TYPES = ("smtp",)
MAIL_PORT = 25
"""Where a connection names none."""
MESSAGE_ID = "Message-ID"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


class NotSentError(Exception):
    """A message was not sent; its text may be stored and shown."""


class _PassingError(ConnectionError):
    """A message was not sent, and may be a moment later."""


class Notifiers:
    """Airflow's notifiers. A connection that once took too long is not waited for again: others are told meanwhile."""

    def __init__(self) -> None:
        self._too_slow: dict[str, str] = {}

    def send(self, recipient: Recipient, message: Message, message_id: str) -> None:
        """Send a message to an owner, to a channel, or by a team's own notifier.

        Args:
            recipient: Whom.
            message: What.
            message_id: The same for the same message.

        Raises:
            NotSentError: It was not taken in time, or there is no such connection or notifier.
        """
        if recipient.notifier is not None:
            self.hand_over(recipient.notifier, {**message.parts, "id": message_id})
        elif recipient.owner is None:
            self.post(recipient.connection_id, message.post)
        else:
            self.send_mail(recipient.connection_id, recipient.owner, message.subject, message.html, message_id)

    def hand_over(self, name: str, parts: ApiJson) -> None:
        """Give a message to a team's own notifier: a function of one argument, by an entry point.

        Args:
            name: Of the entry point, in the group `GROUP`.
            parts: Of the message, as `Message` has them, and its `id`.

        Raises:
            NotSentError: There is none, it raised something, or it was not done in time.
        """
        where = f"{NOTIFIER} {name}"
        if where in self._too_slow:
            raise NotSentError(f"{where}: {self._too_slow[where]} a moment ago, not tried again")
        found = attempt(DEADLINE_S, lambda: load_notifier(name)(parts))
        if isinstance(found, NotSentError):
            raise found
        if isinstance(found, OutOfTimeError):
            self._too_slow[where] = str(found)
            raise NotSentError(f"{where}: {found}")
        if isinstance(found, Exception):
            raise NotSentError(f"{where}: {type(found).__name__}")

    def send_mail(self, connection_id: str, to: str, subject: str, html: str, message_id: str) -> None:
        """Send one mail to one address.

        Args:
            connection_id: Of the mail server; its extra has `from_email`.
            to: Whom.
            subject: One line.
            html: The text.
            message_id: The same for the same message: programs that read mail show two as one.

        Raises:
            NotSentError: The connection is missing or of another type, or the server did not take it in time.
        """

        def send(connection: Connection) -> None:
            from retraining.hooks.mail import send_mail

            send_mail(connection, to=to, subject=subject, html=html, headers={MESSAGE_ID: message_id})

        self._send(connection_id, MAIL_TYPES, send)

    def post(self, connection_id: str, body: ApiJson) -> None:
        """Post JSON to a webhook.

        Args:
            connection_id: Host, and as password what follows it in the address, as Slack's provider has it.
            body: In Slack's form.

        Raises:
            NotSentError: The connection is missing, of another type or not of HTTPS, or the server did not take it in
                time.
        """

        def send(connection: Connection) -> None:
            status = _post_json(webhook_address(connection), body)
            if status in (429, 500, 502, 503, 504):
                raise _PassingError(f"connection {connection_id}: HTTP {status}")
            if not 200 <= status < 300:
                raise NotSentError(f"connection {connection_id}: HTTP {status}")

        self._send(connection_id, WEBHOOK_TYPES, send)

    def _send(self, connection_id: str, types: Collection[str], send: Callable[[Connection], None]) -> None:
        """Send within the limits of one message; of an error no more than its class and status goes on from here."""
        where = f"connection {connection_id}"
        if connection_id in self._too_slow:
            raise NotSentError(f"{where}: {self._too_slow[connection_id]} a moment ago, not tried again")
        connection = _connection(connection_id, types)
        with limits.limited(DEADLINE_S, MAX_BYTES) as limit:
            try:
                limits.call_in_thread(lambda: retry(lambda: _attempt(lambda: send(connection), where), PATIENCE_S))
            except (NotSentError, _PassingError, limits.OutOfTimeError) as error:
                if limit.exceeded is None:
                    raise NotSentError(str(error)) from None
                self._too_slow[connection_id] = limit.exceeded
                raise NotSentError(f"{where}: {limit.exceeded}") from None


def load_notifier(name: str) -> Callable[[ApiJson], object]:
    """Import a team's own notifier.

    Raises:
        NotSentError: No installed package has it, or it cannot be imported in time.
    """
    where = f"{NOTIFIER} {name}"
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        raise NotSentError(f"{where}: no installed package has an entry point {GROUP} of this name")
    loaded = attempt(DEADLINE_S, found[name].load)
    if not callable(loaded):
        raise NotSentError(f"{where}: it cannot be imported, {type(loaded).__name__}")
    function: Callable[[ApiJson], object] = loaded
    return function


def reach(connection_id: str, *, is_mail: bool) -> None:
    """Connect to a mail server or webhook and hang up; nothing is sent, and nobody is told.

    Behind a proxy it is the proxy that a webhook is reached by.

    Args:
        connection_id: Airflow's.
        is_mail: Whether it is of a mail server.

    Raises:
        NotSentError: The connection is missing or of another type, or its server cannot be reached.
    """
    from retraining.hooks.transports import open_connection

    where = f"connection {connection_id}"
    connection = _connection(connection_id, MAIL_TYPES if is_mail else WEBHOOK_TYPES)
    host, port = _mail_server(connection) if is_mail else _web_server(webhook_address(connection))
    if not host:
        raise NotSentError(f"{where}: no host")
    with limits.limited(CONNECT_S, MAX_BYTES):
        try:
            limits.call_in_thread(lambda: open_connection(host, port))
        except OSError as error:
            raise NotSentError(f"{where}: cannot be reached, {type(error).__name__}") from None


def _mail_server(connection: Connection) -> tuple[str, int]:
    return (connection.host or "").strip(), connection.port or MAIL_PORT


def _web_server(address: str) -> tuple[str, int]:
    """Return host and port of an address, or of the proxy on the way to it."""
    from requests.utils import get_environ_proxies, select_proxy

    parts = urlsplit(select_proxy(address, get_environ_proxies(address)) or address)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _post_json(address: str, body: ApiJson) -> int:
    """Post JSON, and return the status of the answer, of whose body nothing is read. Redirects are not followed."""
    import requests

    from retraining.hooks.transports import limit_requests

    with (
        limit_requests(requests.Session()) as session,
        session.post(address, json=body, timeout=CONNECT_S, allow_redirects=False, stream=True) as answer,
    ):
        return int(answer.status_code)


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


def _connection(connection_id: str, types: Collection[str]) -> Connection:
    """Return a connection of one of some types: what another one holds is a secret of something else.

    Raises:
        NotSentError: It is missing, or of another type.
    """
    from airflow.sdk.bases.hook import BaseHook

    found: list[Connection] = []
    _attempt(lambda: found.append(BaseHook.get_connection(connection_id)), f"connection {connection_id}", final=True)
    kind = found[0].conn_type or ""
    if kind.lower() not in types:
        shown = kind if re.fullmatch(r"[a-z0-9_-]{1,40}", kind) else "another"
        expected = " or ".join(sorted(types))
        raise NotSentError(f"connection {connection_id}: of type {shown}, expected {expected}; nothing was sent to it")
    return found[0]


def _attempt(send: Callable[[], None], where: str, *, final: bool = False) -> None:
    """Do it once; what goes wrong is told by its class and status, as final or as what passes."""
    from retraining.hooks.airflow_exceptions import AirflowException

    try:
        send()
    except (NotSentError, _PassingError):
        raise
    except (
        AirflowException,
        ContractError,  # of a server that says too much
        MessageError,
        OSError,
        RuntimeError,
        TypeError,
        ValueError,
        LookupError,
    ) as error:
        code = getattr(error, "smtp_code", None)
        shown = f"{where}: {type(error).__name__}" + (f" {code}" if code else "")
        passes = not final and is_transient(error) and limits.current(where).exceeded is None
        raise (_PassingError if passes else NotSentError)(shown) from None
