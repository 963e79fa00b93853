"""Mails and posts through Airflow's connections, to servers of these tests' own."""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest

from retraining.hooks import notifiers
from retraining.hooks.notifiers import Notifiers, NotSentError, reach, webhook_address
from tests.support.sinks import (
    HookSink,
    MailSink,
    StubbornServer,
    connections,
    hook_sink,
    mail_sink,
    mail_text,
    stubborn_server,
)

HIDDEN = "T000/B000/XXXX"
BODY = {"text": "flight_delays: a run failed", "blocks": []}


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailSink]:
    """A mail server that `smtp_default` names."""
    with mail_sink() as sink:
        for name, value in connections(sink, None).items():
            monkeypatch.setenv(name, value)
        yield sink


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[HookSink]:
    """A webhook that `team_channel` names."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    with hook_sink() as sink:
        for name, value in connections(None, sink, HIDDEN).items():
            monkeypatch.setenv(name, value)
        yield sink


def test_a_mail_is_sent_as_it_is_written(mail: MailSink) -> None:
    """By the provider's notifier: one address, our Message-ID; what looks like a template stays as it is."""
    Notifiers().send_mail("smtp_default", "ml@example.com", "a {{ 7 * 7 }}", "<p>é {{ 7 * 7 }}</p>", "<x@retraining>")
    (got,) = mail.mails
    assert (got["To"], got["From"], got["Subject"]) == ("ml@example.com", "retraining@example.com", "a {{ 7 * 7 }}")
    assert got["Message-ID"] == "<x@retraining>"
    assert mail_text(got).strip() == "<p>é {{ 7 * 7 }}</p>"


def test_a_post_goes_where_the_connection_says(hook: HookSink) -> None:
    """Host, then what is secret."""
    Notifiers().post("team_channel", BODY)
    assert hook.posts == [(f"/services/{HIDDEN}", BODY)]


def test_what_passes_by_itself_is_tried_again(hook: HookSink) -> None:
    """A server that is too busy, twice."""
    hook.statuses = [503, 429]
    Notifiers().post("team_channel", BODY)
    assert len(hook.posts) == 1


@pytest.mark.parametrize("status", [302, 404, 410])
def test_a_refusal_is_told_by_its_status(hook: HookSink, status: int) -> None:
    """A redirect too, which is not followed."""
    hook.statuses = [status]
    with pytest.raises(NotSentError, match=f"^connection team_channel: HTTP {status}$"):
        Notifiers().post("team_channel", BODY)
    assert hook.posts == []


def test_a_refused_recipient_is_told_without_the_address(mail: MailSink) -> None:
    """The server's text names it; ours does not."""
    mail.refused = "550 no such user ml@example.com"
    with pytest.raises(NotSentError, match=r"^connection smtp_default: SMTPRecipientsRefused$"):
        Notifiers().send_mail("smtp_default", "ml@example.com", "a", "b", "<x@retraining>")


def test_nothing_secret_is_logged_or_raised(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, hook: HookSink
) -> None:
    """A client's message of a server that is away has the whole address in it."""
    monkeypatch.setattr(notifiers, "PATIENCE_S", 0.1)
    gone = HookSink(port=hook.port + 1 if hook.port < 65535 else 1)
    monkeypatch.setenv("AIRFLOW_CONN_TEAM_CHANNEL", connections(None, gone, HIDDEN)["AIRFLOW_CONN_TEAM_CHANNEL"])
    with caplog.at_level(logging.INFO), pytest.raises(NotSentError) as raised:
        Notifiers().post("team_channel", BODY)
    assert str(raised.value) == "connection team_channel: ConnectionError"
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
    assert HIDDEN not in caplog.text


def test_a_connection_that_is_missing_is_named() -> None:
    """Both ways."""
    with pytest.raises(NotSentError, match=r"^connection nowhere: "):
        Notifiers().post("nowhere", BODY)
    with pytest.raises(NotSentError, match=r"^connection nowhere: "):
        Notifiers().send_mail("nowhere", "ml@example.com", "a", "b", "<x@retraining>")


def page(parts: dict[str, Any]) -> None:
    """A notifier of a team's own that does what the message says."""
    got: list[dict[str, Any]] = parts["lines"]
    got.append(dict(parts))
    if parts["subject"] == "raise":
        raise ValueError("password=hunter2")
    if parts["subject"] == "leave":
        raise SystemExit(1)
    if parts["subject"] == "wait":
        threading.Event().wait(20)


@pytest.fixture
def pager(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with that notifier, and one that cannot be imported."""
    values = {"pager": f"{__name__}:page", "broken": "no.such.module:page"}
    points = [EntryPoint(name=name, value=value, group=notifiers.GROUP) for name, value in values.items()]
    monkeypatch.setattr(notifiers, "entry_points", lambda group: points if group == notifiers.GROUP else [])


@pytest.mark.usefixtures("pager")
def test_a_notifier_of_the_teams_own_gets_the_message() -> None:
    """Once, as plain parts."""
    got: list[dict[str, Any]] = []
    Notifiers().hand_over("pager", {"subject": "a run failed", "lines": got, "id": "<1@retraining>"})
    (parts,) = got
    assert (parts["subject"], parts["id"]) == ("a run failed", "<1@retraining>")


@pytest.mark.usefixtures("pager")
@pytest.mark.parametrize(
    ("name", "subject", "message"),
    [
        ("pager", "raise", r"^notifier pager: ValueError$"),
        ("pager", "leave", r"^notifier pager: RuntimeError$"),
        ("pager", "wait", r"^notifier pager: not done within 0.2 seconds$"),
        ("broken", "", r"^notifier broken: it cannot be imported, ModuleNotFoundError$"),
        ("nobody", "", r"^notifier nobody: no installed package has an entry point retraining.notifiers"),
    ],
    ids=["raises", "ends the program", "too slow", "not imported", "not installed"],
)
def test_a_notifier_that_fails_is_named_and_waited_for_so_long(monkeypatch, name, subject, message) -> None:
    """Without a word of its own error, which may have a secret; one that was too slow is not waited for again."""
    monkeypatch.setattr(notifiers, "DEADLINE_S", 0.2 if subject == "wait" else 20)
    sender, got = Notifiers(), []
    with pytest.raises(NotSentError, match=message):
        sender.hand_over(name, {"subject": subject, "lines": got})
    if subject == "wait":
        with pytest.raises(NotSentError, match="a moment ago, not tried again"):
            sender.hand_over(name, {"subject": subject, "lines": got})
        assert len(got) == 1


@pytest.mark.parametrize("kind", ["postgres", "google_cloud_platform", "slack", "aws", "smtp", "", "s3cret Pa$$"])
def test_a_connection_of_another_type_is_refused_by_name(monkeypatch, hook: HookSink, kind: str) -> None:
    """What it holds is a secret of something else: nothing goes to its host, and nothing of it is told."""
    values = {"conn_type": kind, "host": f"http://127.0.0.1:{hook.port}", "login": "ada", "password": "hunter2"}
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps(values))
    with pytest.raises(NotSentError) as raised:
        Notifiers().post("warehouse", BODY)
    assert hook.posts == []
    assert str(raised.value).startswith("connection warehouse: ")
    assert not any(secret in str(raised.value) for secret in ("hunter2", "ada", "127.0.0.1", "s3cret"))


@pytest.mark.parametrize("kind", ["postgres", "http"])
def test_mail_goes_through_a_mail_server_alone(monkeypatch, mail: MailSink, kind: str) -> None:
    """By its type, not by what listens at its port."""
    values = {"conn_type": kind, "host": "127.0.0.1", "port": mail.port, "password": "hunter2"}
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps(values))
    with pytest.raises(NotSentError, match=f"^connection warehouse: of type {kind}, expected smtp"):
        Notifiers().send_mail("warehouse", "ml@example.com", "a", "b", "<x@retraining>")
    assert mail.mails == []


@pytest.mark.parametrize("kind", ["http", "https", "slackwebhook"])
def test_types_of_webhooks(monkeypatch, hook: HookSink, kind: str) -> None:
    """Airflow's own of HTTP, an address as it stands, and Slack's."""
    values = {"conn_type": kind, "host": f"http://127.0.0.1:{hook.port}/services", "password": HIDDEN}
    monkeypatch.setenv("AIRFLOW_CONN_TEAM", json.dumps(values))
    Notifiers().post("team", BODY)
    assert [path for path, _ in hook.posts] == [f"/services/{HIDDEN}"]


def test_a_server_is_reached_and_told_nothing(mail: MailSink, hook: HookSink) -> None:
    """Of either kind."""
    reach("smtp_default", is_mail=True)
    reach("team_channel", is_mail=False)
    assert (mail.mails, hook.posts) == ([], [])


def test_a_webhook_is_reached_by_its_proxy(monkeypatch, hook: HookSink) -> None:
    """As a post is."""
    monkeypatch.setenv(
        "AIRFLOW_CONN_TEAM", json.dumps({"conn_type": "https", "host": "hooks.invalid", "password": "x"})
    )
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NotSentError, match=r"^connection team: cannot be reached, "):
        reach("team", is_mail=False)
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{hook.port}")
    reach("team", is_mail=False)


@pytest.mark.parametrize(
    ("values", "is_mail", "message"),
    [
        ({"conn_type": "smtp", "host": "127.0.0.1", "port": 1}, True, "cannot be reached, ConnectionRefusedError$"),
        ({"conn_type": "smtp"}, True, "no host$"),
        ({"conn_type": "http", "host": "127.0.0.1"}, True, "of type http, expected smtp"),
        (
            {"conn_type": "http", "host": "http://127.0.0.1:1/s3cret", "password": "s3cret"},
            False,
            "ConnectionRefusedError$",
        ),
        ({"conn_type": "http", "host": "http://example.com"}, False, "not https$"),
    ],
)
def test_a_server_that_cannot_be_reached_is_named(monkeypatch, values, is_mail, message) -> None:
    """By its connection alone."""
    monkeypatch.setenv("AIRFLOW_CONN_TEAM", json.dumps(values))
    with pytest.raises(NotSentError, match=f"^connection team: .*{message}") as raised:
        reach("team", is_mail=is_mail)
    assert "s3cret" not in str(raised.value)


def drip(text: bytes) -> Iterator[bytes]:
    """Yield a byte each twentieth of a second, for ever."""
    yield text
    while True:
        yield b"x"
        threading.Event().wait(0.05)


ENDLESS = b"x" * 4096 + b"\r\n"
WEBHOOKS = {
    "silent": lambda: iter(()),
    "drips its head": lambda: drip(b"HTTP/1.1 200 OK\r\nX-A: "),
    "drips its status": lambda: drip(b""),
    "goes on and on": lambda: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless head": lambda: itertools.chain([b"HTTP/1.1 200 OK\r\n"], itertools.repeat(b"X-A: " + ENDLESS)),
}
MAIL_SERVERS = {
    "silent": lambda: iter(()),
    "drips": lambda: drip(b"220 "),
    "endless": lambda: itertools.repeat(b"220-" + ENDLESS),
    "endless line": lambda: itertools.chain([b"220 "], itertools.repeat(b"x" * 4096)),
}


@pytest.mark.parametrize("name", WEBHOOKS)
def test_a_webhook_is_waited_for_so_long_and_read_so_far(monkeypatch, name: str) -> None:
    """As a whole, whatever its server does; the next message does not wait for it again."""
    monkeypatch.setattr(notifiers, "DEADLINE_S", 1.0)
    with stubborn_server(WEBHOOKS[name]) as server:
        values = {"conn_type": "http", "host": f"http://127.0.0.1:{server.port}", "password": HIDDEN}
        monkeypatch.setenv("AIRFLOW_CONN_TEAM", json.dumps(values))
        sender = Notifiers()
        assert_given_up(server, lambda: sender.post("team", BODY))
        callers = server.callers
        with pytest.raises(NotSentError, match=r"^connection team: "):
            sender.post("team", BODY)
        assert name == "endless head" or server.callers == callers


def test_an_answer_without_an_end_is_not_read(monkeypatch) -> None:
    """Its status is all that counts."""
    endless = itertools.chain([b"HTTP/1.1 200 OK\r\n\r\n"], itertools.repeat(ENDLESS))
    with stubborn_server(lambda: endless) as server:
        values = {"conn_type": "http", "host": f"http://127.0.0.1:{server.port}", "password": HIDDEN}
        monkeypatch.setenv("AIRFLOW_CONN_TEAM", json.dumps(values))
        Notifiers().post("team", BODY)
        assert server.left.wait(30)
        assert server.sent < MOST_SENT


@pytest.mark.parametrize("name", MAIL_SERVERS)
def test_a_mail_server_is_waited_for_so_long_and_read_so_far(monkeypatch, name: str) -> None:
    """With all the tries that its connection asks for."""
    monkeypatch.setattr(notifiers, "DEADLINE_S", 1.0)
    with stubborn_server(MAIL_SERVERS[name]) as server:
        extra = {"from_email": "a@example.com", "disable_ssl": True, "disable_tls": True, "timeout": 60}
        values = {"conn_type": "smtp", "host": "127.0.0.1", "port": server.port, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(values))
        sender = Notifiers()
        assert_given_up(server, lambda: sender.send_mail("smtp_default", "ml@example.com", "a", "b", "<x@retraining>"))


MOST_SENT = 64_000_000
"""What a server may get rid of: what is read, and what fits into buffers of sockets on the way."""


def assert_given_up(server: StubbornServer, send: Callable[[], None]) -> None:
    """Send: it fails before the server's own patience ends, and the server is rid of its caller."""
    started = time.monotonic()
    with pytest.raises(NotSentError) as raised:
        send()
    assert time.monotonic() - started < 20
    assert HIDDEN not in str(raised.value)
    assert server.left.wait(30)
    assert server.sent < MOST_SENT


def connection(**values: Any) -> Any:
    """What Airflow gives."""
    return SimpleNamespace(conn_id="c", **{"host": None, "schema": None, "port": None, "password": None, **values})


@pytest.mark.parametrize(
    ("values", "address"),
    [
        ({"host": "https://hooks.slack.com/services", "password": "T/B/X"}, "https://hooks.slack.com/services/T/B/X"),
        ({"host": "chat.example.com", "port": 8443, "password": "/hooks/1"}, "https://chat.example.com:8443/hooks/1"),
        ({"host": "localhost", "schema": "http", "port": 80}, "http://localhost:80"),
    ],
)
def test_addresses_of_connections(values: dict[str, Any], address: str) -> None:
    """With and without a scheme, a port and something secret."""
    assert webhook_address(connection(**values)) == address


@pytest.mark.parametrize(
    "values", [{}, {"host": "http://chat.example.com"}, {"host": "x", "schema": "http"}, {"host": "file:///etc/x"}]
)
def test_addresses_that_are_refused(values: dict[str, Any]) -> None:
    """None, and plain HTTP to another machine: what is secret stands in the address."""
    with pytest.raises(NotSentError, match=r"^connection c: "):
        webhook_address(connection(**values))
