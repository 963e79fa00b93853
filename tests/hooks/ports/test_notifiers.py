"""Messages to people: in memory as through Airflow."""

from __future__ import annotations

from typing import Any

import pytest

from retraining.hooks.notifiers import NotSentError
from tests.support.scenes.port_stage import MemoryStage, Stage
from tests.support.sinks import connections, hook_sink, mail_sink

BODY = {"text": "flight_delays: a run failed", "blocks": [{"type": "header"}]}


def test_messages_arrive_once(stage: Stage, cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mail and a post, each where its connection says."""
    with mail_sink() as mails, hook_sink() as posts:
        for name, value in connections(mails, posts).items():
            monkeypatch.setenv(name, value)
        cloud.notifiers.send_mail("smtp_default", "ml@example.com", "a run failed", "<p>b</p>", "<1@retraining>")
        cloud.notifiers.post("team_channel", BODY)
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
        cloud.notifiers.post("nowhere", BODY)
