"""A trial message, from a task and from a shell: whose settings it goes by, and whom it reached."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from retraining.commands.orders import order_trial, send_trial
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.hooks.notifiers import NotSentError
from retraining.operators.airflow.trial_message import SendTrialMessageOperator
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud

SPEC = load_spec(include_path() / "models" / "flight_delays.yaml")


@pytest.fixture
def cloud() -> FakeCloud:
    """A cloud whose settings tell an owner and a channel."""
    made = FakeCloud()
    told = {"notify_owners": ("ml@example.com",), "notify_channels": ("team_channel",)}
    made.settings = dataclasses.replace(made.settings, **told)
    return made


def send(cloud: FakeCloud, make_run: Any) -> Any:
    """The task of the DAG `notify_test`."""
    task = SendTrialMessageOperator(task_id="send", model="flight_delays", cloud=cloud.connect)
    return make_run(dag_id="notify_test").execute(task)


def test_airflow_sends_with_its_own_settings_and_names_nobody(cloud, make_run, capsys) -> None:
    """In its log and result an owner is no address."""
    told = send(cloud, make_run)
    assert [sent.connection_id for sent in cloud.notifiers.sent] == ["smtp_default", "team_channel"]
    assert "channel:team_channel" in told
    assert "ml@example.com" not in str(told) + capsys.readouterr().out


def test_a_message_that_did_not_arrive_fails_the_task(cloud, make_run, monkeypatch) -> None:
    """The others got theirs; nobody counts as told of anything."""

    def refuse(*_: Any) -> None:
        raise NotSentError("connection smtp_default: SMTPAuthenticationError 535")

    monkeypatch.setattr(cloud.notifiers, "send_mail", refuse)
    with pytest.raises(AirflowFailException, match=r"SMTPAuthenticationError 535.*Correct"):
        send(cloud, make_run)
    assert [sent.connection_id for sent in cloud.notifiers.sent] == ["team_channel"]
    assert not cloud.artifacts.objects


def test_where_nobody_is_told_the_task_says_so(make_run) -> None:
    """By its file or the settings."""
    with pytest.raises(AirflowFailException, match="nobody is told; name"):
        send(FakeCloud(), make_run)


def test_a_shell_says_whose_settings_and_connections_it_used(cloud) -> None:
    """Those that it lacks too."""
    lines, reached = send_trial(cloud, SPEC, {"AIRFLOW_CONN_TEAM_CHANNEL": "secret"})
    assert reached
    assert lines[0].startswith("settings RETRAINING_… of this shell, bucket bucket;")
    assert lines[1:] == [
        "ml@example.com by smtp_default (not by AIRFLOW_CONN_SMTP_DEFAULT, which this shell lacks): sent",
        "team_channel by team_channel (AIRFLOW_CONN_TEAM_CHANNEL of this shell): sent",
    ]
    assert "secret" not in "".join(lines)


def test_a_shell_has_airflow_send_it() -> None:
    """By the DAG, whose connections the shell never sees."""
    asked = []

    class Api:
        def trigger(self, dag_id: str, conf: dict[str, Any]) -> tuple[str, bool]:
            """As Airflow."""
            asked.append((dag_id, conf))
            return "manual__1", True

    api: Any = Api()
    lines = order_trial(api, "flight_delays")
    assert asked == [("notify_test", {"model": "flight_delays"})]
    assert "manual__1" in lines[0]
    assert "paused" in lines[-1]
