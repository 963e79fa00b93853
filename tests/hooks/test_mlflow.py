"""Runs in MLflow: one for each, whatever dies or answers badly; and nothing secret in a message."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from retraining.core.errors import TrackingError
from retraining.core.report.tracking.tracked_run import MLFLOW, Status, TrackedRun
from retraining.hooks import mlflow as hook
from retraining.hooks import trackers
from retraining.hooks.mlflow import Mlflow
from retraining.hooks.trackers import Trackers
from tests.core.report.tracking.test_tracked_run import WHOLE, tracked
from tests.support.fakes.settings import SETTINGS
from tests.support.mlflow_server import MlflowServer, basic, connection, mlflow_server

VARIABLE = "AIRFLOW_CONN_MLFLOW_DEFAULT"
HIDDEN = "a-very-hidden-word"
RUN = tracked(*WHOLE)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MlflowServer]:
    """A server that `mlflow_default` names; nobody waits long."""
    monkeypatch.setattr(hook, "PATIENCE_S", 3.0)
    with mlflow_server() as found:
        monkeypatch.setenv(VARIABLE, connection(found.port))
        yield found


def mine() -> Mlflow:
    """The hook, as another task makes it."""
    return Mlflow("mlflow_default", "production")


def asked() -> Trackers:
    """What tasks ask."""
    return Trackers(SETTINGS, lambda: pytest.fail("nobody asks Google"))


def only(server: MlflowServer) -> dict[str, Any]:
    """The one run of the key: its facts, and what it has by name."""
    (run,) = server.of_key(RUN.run_key)
    data = {part: {each["key"]: each["value"] for each in run["data"][part]} for part in ("params", "metrics", "tags")}
    return {**run["info"], **data}


def test_a_run_is_there_whole(server: MlflowServer) -> None:
    """In the experiment of environment and model."""
    mine().track(RUN)
    found = only(server)
    assert server.experiments == {"production/late": "1"}
    assert (found["status"], found["run_name"]) == ("FINISHED", RUN.run_key)
    assert found["params"] == {name: str(value) for name, value in RUN.parameters.items()}
    assert {name: found["metrics"][name] for name in RUN.metrics} == dict(RUN.metrics)
    assert found["metrics"]["epoch/val_auc"] == 0.69
    epochs = [(each["step"], each["value"]) for each in server.history[found["run_id"]] if each["key"] == "epoch/loss"]
    assert epochs == [(1, 0.51), (2, 0.47), (3, 0.46)]
    assert dict(RUN.tags).items() <= found["tags"].items()
    assert mine().digests("late") == {RUN.run_key: RUN.digest}


def test_a_second_time_nothing_is_written(server: MlflowServer) -> None:
    """Its tag says that the server was told all of it."""
    first = mine().track(RUN)
    server.calls.clear()
    assert mine().track(RUN) == first
    assert server.calls == ["experiments/get-by-name", "runs/search"]


def test_what_changed_is_told(server: MlflowServer) -> None:
    """A run that failed, was cleared and came to its end."""
    failed = dataclasses.replace(RUN, status=Status.FAILED, parameters={}, metrics={"usd": 1.0}, curves={})
    first = mine().track(failed)
    assert only(server)["status"] == "FAILED"
    assert mine().track(RUN) == first
    assert (only(server)["status"], only(server)["metrics"]["usd"]) == ("FINISHED", RUN.metrics["usd"])


def test_of_two_at_once_one_stays(server: MlflowServer) -> None:
    """Both may have made one: all but the oldest go."""
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: mine().track(RUN), range(6)))
    assert only(server)["status"] == "FINISHED"
    assert mine().digests("late") == {RUN.run_key: RUN.digest}


@pytest.mark.parametrize("lost", range(8))
def test_a_lost_answer_leaves_one_run(server: MlflowServer, lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever it is: the server did what was asked, and said 503."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    server.statuses = _before(lost)
    mine().track(RUN)
    assert only(server)["status"] == "FINISHED"
    assert only(server)["params"] == {name: str(value) for name, value in RUN.parameters.items()}


def _before(count: int) -> Any:
    """Statuses of which the one after `count` good answers is lost."""

    class Statuses(list):
        def __init__(self) -> None:
            super().__init__([0])
            self.good = count

        def __bool__(self) -> bool:
            self.good -= 1
            return self.good < 0 and len(self) > 0

    return Statuses()


@pytest.mark.parametrize("calls", range(1, 9))
def test_a_task_that_is_killed_leaves_what_the_next_one_ends(
    server: MlflowServer, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two calls."""
    killed = mine()
    real, left = killed._call, iter(range(calls))

    def call(*arguments: Any, **content: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return real(*arguments, **content)

    monkeypatch.setattr(killed, "_call", call)
    with contextlib.suppress(KeyboardInterrupt):
        killed.track(RUN)
    mine().track(RUN)
    assert only(server)["status"] == "FINISHED"
    assert dict(RUN.metrics).items() <= only(server)["metrics"].items()
    points = [(each["key"], each["step"]) for each in server.history[only(server)["run_id"]]]
    assert len(points) == len(set(points))


@pytest.mark.parametrize(
    ("login", "password", "header"),
    [("ml", HIDDEN, basic("ml", HIDDEN)), ("", HIDDEN, f"Bearer {HIDDEN}")],
    ids=["basic", "bearer"],
)
def test_the_connection_says_who_asks(
    server: MlflowServer, monkeypatch: pytest.MonkeyPatch, login: str, password: str, header: str
) -> None:
    """A login with its password, or a token alone."""
    server.authorization = header
    with pytest.raises(TrackingError, match="HTTP 401"):
        mine().track(RUN)
    monkeypatch.setenv(VARIABLE, connection(server.port, login, password))
    mine().track(RUN)
    assert only(server)


@pytest.mark.parametrize("trouble", ["down", "401", "500", "404", "redirect", "hanging"])
def test_trouble_is_one_kind_of_error_in_time_and_says_no_secret(
    server: MlflowServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    """Nothing of the server's text, and nothing of the connection's secrets; with the way out."""
    port = server.port + 1 if trouble == "down" else server.port
    monkeypatch.setenv(VARIABLE, connection(port, "ml", HIDDEN))
    monkeypatch.setattr(trackers, "DEADLINE_S", 2.0)
    server.hangs = trouble == "hanging"
    server.authorization = "another" if trouble == "401" else ""
    server.statuses = {"500": [500] * 99, "404": [404] * 9, "redirect": [302] * 9}.get(trouble, [])
    began = time.monotonic()
    with caplog.at_level(logging.DEBUG), pytest.raises(TrackingError) as raised:
        asked().track(MLFLOW, RUN)
    assert time.monotonic() - began < 8
    assert raised.value.way_out
    text = caplog.text + str(raised.value) + repr(raised.value.__cause__)
    assert HIDDEN not in text
    assert "hunter2" not in text
    assert basic("ml", HIDDEN).removeprefix("Basic ") not in text


@pytest.mark.parametrize(
    ("others", "password", "found"),
    [
        ({"conn_type": "postgres"}, HIDDEN, "of another type"),
        ({"host": ""}, "", "no host"),
        ({"host": f"http://ml:{HIDDEN}@127.0.0.1"}, "", "a login in the host"),
        ({"host": "mlflow.example.com"}, HIDDEN, "plain HTTP"),
    ],
    ids=["another type", "no host", "login in the host", "plain HTTP"],
)
def test_a_connection_that_will_not_do_is_named(
    server: MlflowServer, monkeypatch: pytest.MonkeyPatch, others: dict[str, Any], password: str, found: str
) -> None:
    """Before anything is sent."""
    monkeypatch.setenv(VARIABLE, connection(server.port, "", password, **others))
    with pytest.raises(TrackingError, match=found) as raised:
        asked().track(MLFLOW, RUN)
    assert HIDDEN not in str(raised.value)
    assert server.calls == []


def test_a_missing_connection_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the setting that names another one."""
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(TrackingError, match="RETRAINING_MLFLOW_CONNECTION"):
        asked().digests(MLFLOW, "late")


def test_a_run_of_a_model_without_an_experiment_was_never_told(server: MlflowServer) -> None:
    """Nothing is made by asking."""
    assert mine().digests("late") == {}
    assert server.experiments == {}


def test_a_run_that_was_not_told_whole_counts_as_not_told(server: MlflowServer) -> None:
    """It is told again, as it is then."""
    started: TrackedRun = dataclasses.replace(RUN, status=Status.RUNNING)
    mine().track(started)
    assert mine().digests("late") == {RUN.run_key: ""}
