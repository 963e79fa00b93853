"""Messages to people: in memory as through Airflow."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from retraining.core.notification.messages import Message, Recipient
from retraining.hooks import notifiers
from retraining.hooks.notifiers import NotSentError
from tests.support.scenes.port_stage import MemoryStage, Stage
from tests.support.sinks import connections, hook_sink, mail_sink

POST = {"text": "flight_delays: a run failed", "blocks": [{"type": "header"}]}
PARTS = {"event": "failure", "model": "flight_delays", "subject": "a run failed", "lines": ["train failed"]}
MESSAGE = Message(subject="a run failed", html="<p>b</p>", post=POST, parts=PARTS)
MAIL = Recipient(name="mail:1", connection_id="smtp_default", owner="ml@example.com")
CHANNEL = Recipient(name="channel:team_channel", connection_id="team_channel")
OWN = Recipient(name="notifier:pager", connection_id="", notifier="pager")
got_by_pager: list[dict[str, Any]] = []


def page(parts: dict[str, Any]) -> None:
    """A notifier of a team's own."""
    got_by_pager.append(parts)


def test_messages_arrive_once(stage: Stage, cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mail and a post, each where its connection says."""
    with mail_sink() as mails, hook_sink() as posts:
        for name, value in connections(mails, posts).items():
            monkeypatch.setenv(name, value)
        cloud.notifiers.send(MAIL, MESSAGE, "<1@retraining>")
        cloud.notifiers.send(CHANNEL, MESSAGE, "<2@retraining>")
        if isinstance(stage, MemoryStage):
            first, second = cloud.notifiers.sent
            got = (first.to, first.subject, first.message_id), second.subject
        else:
            (mail,), ((_, body),) = mails.mails, posts.posts
            got = (mail["To"], mail["Subject"], mail["Message-ID"]), body["text"]
    assert got == (("ml@example.com", "a run failed", "<1@retraining>"), "flight_delays: a run failed")


def test_a_connection_that_is_not_there(stage: Stage, cloud: Any) -> None:
    """One class of error, whose text may be stored."""
    if isinstance(stage, MemoryStage):
        cloud.notifiers.broken.add("nowhere")
    with pytest.raises(NotSentError, match=r"^connection nowhere: "):
        cloud.notifiers.send(Recipient(name="channel:nowhere", connection_id="nowhere"), MESSAGE, "<1@retraining>")


def test_a_notifier_of_the_teams_own_gets_the_parts(stage: Stage, cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As plain text, with the id that tells one message from another."""
    point = EntryPoint(name="pager", value=f"{__name__}:page", group=notifiers.GROUP)
    monkeypatch.setattr(notifiers, "entry_points", lambda group: [point] if group == notifiers.GROUP else [])
    got_by_pager.clear()
    cloud.notifiers.send(OWN, MESSAGE, "<1@retraining>")
    if isinstance(stage, MemoryStage):
        (sent,) = cloud.notifiers.sent
        assert (sent.connection_id, sent.text, sent.message_id) == ("notifier:pager", "train failed", "<1@retraining>")
    else:
        (got,) = got_by_pager
        assert got == {**PARTS, "id": "<1@retraining>"}
