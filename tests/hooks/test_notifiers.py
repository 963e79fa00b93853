"""Mails and posts through Airflow's connections, to servers of these tests' own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from retraining.hooks import notifiers
from retraining.hooks.notifiers import Notifiers, NotSentError, webhook_address
from tests.support.sinks import HookSink, MailSink, connections, hook_sink, mail_sink, mail_text

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
