"""Runs in experiment trackers, as they end and a day later: whatever a tracker does, the run's own page is there."""

from __future__ import annotations

import dataclasses
import json
import logging
import time
from datetime import timedelta
from typing import Any

import pytest

from retraining.core.naming import storage
from retraining.core.report.tracking.tracked_run import Status
from retraining.hooks import mlflow as mlflow_hook
from retraining.hooks import trackers
from retraining.hooks.trackers import Trackers
from retraining.operators.report import tracking
from retraining.operators.report.page import ReportOperator
from retraining.operators.report.tracking import TrackRunsOperator
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.settings import SETTINGS, here
from tests.support.mlflow_server import connection, mlflow_server
from tests.support.scenes.deployment import example

KEY = "20131118t030000z-0a1b2c3d4e5f"
KINDS = ("report", "evaluation", "decision", "registration", "deployment", "timings")
HIDDEN = "a-very-hidden-word"


def store_run(cloud: FakeCloud, key: str = KEY, kinds: tuple[str, ...] = KINDS) -> str:
    """Store a run; give its folder."""
    uri = storage.run_uri("bucket", "flight_delays", key)
    for kind in ("plan", *kinds):
        document = here(example("plan")) if kind == "plan" else example(kind)
        changed = {**document, "model": "flight_delays", "run_key": key, "run_uri": uri}
        named = {name: value for name, value in changed.items() if name in document}
        cloud.artifacts.put(f"{uri}/{kind}.json", json.dumps(named).encode())
    return uri


@pytest.fixture
def cloud() -> FakeCloud:
    """A cloud with a run, in an environment with both trackers."""
    made = FakeCloud()
    made.settings = dataclasses.replace(SETTINGS, tracking=("vertex", "mlflow"))
    made.artifacts.now = made.clock.now()
    store_run(made)
    return made


def report(cloud: FakeCloud, make_run: Any) -> bytes:
    """Run the task `report`; give the page that it left."""
    uri = storage.run_uri("bucket", "flight_delays", KEY)
    make_run().execute(ReportOperator(task_id="report", run_uri=uri, cloud=cloud.connect))
    return bytes(cloud.artifacts.objects[f"{uri}/report.html"])


def catch_up(cloud: FakeCloud, make_run: Any) -> Any:
    """Run the task of `maintain`."""
    return make_run().execute(TrackRunsOperator(task_id="track", cloud=cloud.connect))


def test_the_report_shows_the_run_in_each_tracker(cloud: FakeCloud, make_run: Any) -> None:
    """By its documents; where its page is too."""
    report(cloud, make_run)
    assert sorted(cloud.trackers.runs) == [("mlflow", KEY), ("vertex", KEY)]
    run = cloud.trackers.runs["mlflow", KEY]
    assert (run.model, run.status) == ("flight_delays", Status.FINISHED)
    assert run.tags["retraining.page"].endswith(f"/flight_delays/runs/{KEY}/report.html")


def test_without_the_setting_nothing_happens(cloud: FakeCloud, make_run: Any) -> None:
    """Not by the report, and not by `maintain`."""
    cloud.settings = SETTINGS
    report(cloud, make_run)
    assert catch_up(cloud, make_run) == {}
    assert cloud.trackers.told == 0


def test_a_tracker_that_fails_leaves_the_report_and_the_other_one(
    cloud: FakeCloud, make_run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning with the way out."""
    cloud.trackers.broken.add("vertex")
    assert report(cloud, make_run)
    assert list(cloud.trackers.runs) == [("mlflow", KEY)]
    assert "not shown in vertex yet: tracker vertex: no answer. Expected one. Look at it." in caplog.text


def test_whatever_else_goes_wrong_is_a_warning_too(
    cloud: FakeCloud, make_run: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what nobody thought of."""
    monkeypatch.setattr(tracking, "track", lambda *_: 1 / 0)
    assert report(cloud, make_run)
    assert "shown in no tracker yet: ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("trouble", ["down", "401", "500", "hanging", "no connection"])
def test_a_bad_server_fails_no_report_and_holds_none_up(
    cloud: FakeCloud,
    make_run: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: str,
) -> None:
    """Through the hooks: within the time, and nothing secret in the log."""
    monkeypatch.setattr(trackers, "DEADLINE_S", 2.0)
    monkeypatch.setattr(mlflow_hook, "PATIENCE_S", 1.0)
    cloud.settings = dataclasses.replace(SETTINGS, tracking=("mlflow",))
    hooks: Any = Trackers(cloud.settings, lambda: pytest.fail("nobody asks Google"))
    cloud.trackers = hooks
    with mlflow_server() as server, caplog.at_level(logging.DEBUG):
        port = server.port + 1 if trouble == "down" else server.port
        monkeypatch.setenv("AIRFLOW_CONN_MLFLOW_DEFAULT", connection(port, "ml", HIDDEN))
        if trouble == "no connection":
            monkeypatch.delenv("AIRFLOW_CONN_MLFLOW_DEFAULT")
        server.authorization = "another" if trouble == "401" else ""
        server.hangs, server.statuses = trouble == "hanging", [500] * 99 if trouble == "500" else []
        began = time.monotonic()
        assert report(cloud, make_run)
        assert time.monotonic() - began < 10
    assert "not shown in mlflow yet" in caplog.text
    assert HIDDEN not in caplog.text
    assert "hunter2" not in caplog.text


def test_two_trackers_hold_a_task_up_for_less_than_a_minute() -> None:
    """Each has its limit."""
    assert 2 * trackers.DEADLINE_S < 60


def test_maintain_tells_what_the_report_could_not(cloud: FakeCloud, make_run: Any) -> None:
    """Once: the next day the tracker has it."""
    cloud.trackers.broken.add("mlflow")
    report(cloud, make_run)
    cloud.trackers.broken.clear()
    assert catch_up(cloud, make_run) == {"vertex": 0, "mlflow": 1}
    assert cloud.trackers.runs["vertex", KEY] == cloud.trackers.runs["mlflow", KEY]
    assert catch_up(cloud, make_run) == {"vertex": 0, "mlflow": 0}


def test_maintain_fills_in_the_last_thirty_days(cloud: FakeCloud, make_run: Any) -> None:
    """By when the run wrote, whatever its time is: a backfill of 2013 is of today."""
    cloud.artifacts.now = cloud.clock.now() - timedelta(days=31)
    store_run(cloud, "20131117t030000z-0a1b2c3d4e5f")
    cloud.artifacts.now = cloud.clock.now() - timedelta(days=29)
    store_run(cloud, "20131116t030000z-0a1b2c3d4e5f")
    store_run(cloud)
    assert catch_up(cloud, make_run) == {"vertex": 2, "mlflow": 2}
    assert {key for _, key in cloud.trackers.runs} == {KEY, "20131116t030000z-0a1b2c3d4e5f"}


def test_maintain_leaves_runs_under_way_alone(cloud: FakeCloud, make_run: Any) -> None:
    """Their report tells of them."""
    uri = storage.run_uri("bucket", "flight_delays", KEY)
    for kind in ("deployment", "timings"):
        del cloud.artifacts.objects[f"{uri}/{kind}.json"]
    assert catch_up(cloud, make_run) == {"vertex": 0, "mlflow": 0}


def test_a_broken_run_hides_no_other(cloud: FakeCloud, make_run: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It is named."""
    other = store_run(cloud, "20131117t030000z-0a1b2c3d4e5f")
    cloud.artifacts.put(f"{other}/evaluation.json", b"{}")
    assert catch_up(cloud, make_run) == {"vertex": 1, "mlflow": 1}
    assert f"{other} is left out" in caplog.text


def test_a_tracker_that_is_down_leaves_maintain_green(
    cloud: FakeCloud, make_run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """And the other one is told."""
    cloud.trackers.broken.add("vertex")
    assert catch_up(cloud, make_run) == {"vertex": 0, "mlflow": 1}
    assert "left for the next day: tracker vertex" in caplog.text
