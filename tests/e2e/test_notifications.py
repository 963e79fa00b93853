"""People are told by a real scheduler: a failure, a decision and a wanted approval, by mail and by post, each once."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any, NamedTuple

import pytest
import requests

from demo.dag_run import DAG_ID
from retraining_laptop.dag_run import wait_for_dag
from retraining_laptop.progress import follow_run
from tests.support.sinks import HookSink, MailSink, connections, hook_sink, mail_sink, mail_text

from .conftest import make_bundle, running_laptop
from .test_approval import FIRST, answered

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200)]

FAILED = f"flight_delays: a run of {DAG_ID} failed"
PROMOTED = "flight_delays: promoted, waits for approval as of 2013-11-20"
ASKED = "flight_delays: a version of 2013-11-20 waits for approval"
NO_TIME = {"as_of": "2999-01-01T00:00:00Z"}


class World(NamedTuple):
    """An Airflow, and what people got."""

    api: Any
    mails: list[EmailMessage]
    hook: HookSink


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A system whose environment names an owner and a channel, and where a first version needs a person."""
    base = tmp_path_factory.mktemp("notifications")
    dags_path = make_bundle(base / "bundle", approval="first")
    with mail_sink() as mail, hook_sink() as hook, pytest.MonkeyPatch.context() as patch:
        for name, value in _environment(mail, hook).items():
            patch.setenv(name, value)
        with running_laptop(base, dags_path) as laptop:
            api = laptop.airflow.api()
            wait_for_dag(api, DAG_ID)
            api.unpause(DAG_ID)
            yield World(api, mail.mails, hook)


def _environment(mail: MailSink, hook: HookSink) -> dict[str, str]:
    people = {"RETRAINING_NOTIFY_OWNERS": "ml@example.com", "RETRAINING_NOTIFY_CHANNELS": "team_channel"}
    return people | connections(mail, hook)


def told(world: World) -> list[str]:
    """Subjects of the mails, which are the posts' too."""
    subjects = [str(mail["Subject"]) for mail in world.mails]
    assert [body["text"] for _, body in world.hook.posts] == subjects
    assert {mail["To"] for mail in world.mails} <= {"ml@example.com"}
    return subjects


def end(world: World, run_id: str, expected: str) -> None:
    """Follow a run to its end."""
    state, _ = follow_run(world.api, DAG_ID, run_id, say=print, timeout_s=300)
    assert state == expected


def clear(world: World, run_id: str, task_id: str, *, downstream: bool) -> None:
    """Run a task of an ended run again."""
    body = {"dry_run": False, "dag_run_id": run_id, "task_ids": [task_id], "include_downstream": downstream}
    world.api.call("POST", f"/dags/{DAG_ID}/clearTaskInstances", json=body | {"only_failed": False})


def test_each_thing_is_told_once(world: World) -> None:
    """Two failed runs and a cleared one of one cause; then a promoted run; then the cause is a new one."""
    run_id = world.api.trigger(DAG_ID, conf=NO_TIME)
    end(world, run_id, "failed")
    clear(world, run_id, "plan", downstream=True)
    end(world, run_id, "failed")
    end(world, world.api.trigger(DAG_ID, conf=NO_TIME), "failed")
    assert told(world) == [FAILED]
    text = mail_text(world.mails[0])
    assert "Failed: plan." in text
    assert "This run's Params ask for something impossible." in html.unescape(text)

    run_id = world.api.trigger(DAG_ID, logical_date=FIRST)
    assert answered(world.api, run_id, "Approve")["deployed"]
    assert told(world) == [FAILED, PROMOTED, ASKED]
    links = re.findall(r'href="([^"]+)"', mail_text(world.mails[2]))
    answer = next(link for link in links if link.endswith("/tasks/approve/required_actions"))
    assert requests.get(answer, timeout=30, proxies={"http": ""}).ok
    clear(world, run_id, "decide", downstream=False)
    end(world, run_id, "success")
    assert told(world) == [FAILED, PROMOTED, ASKED]

    end(world, world.api.trigger(DAG_ID, conf=NO_TIME), "failed")
    assert told(world) == [FAILED, PROMOTED, ASKED, FAILED]
