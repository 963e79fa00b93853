"""Runs in experiment trackers: in memory as in Vertex AI Experiments of the local cloud."""

from __future__ import annotations

import dataclasses
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core.errors import TrackingError
from retraining.core.report.tracking.tracked_run import MLFLOW, VERTEX, Status, TrackedRun
from tests.support.scenes.port_stage import MemoryStage, Stage

KEY = "20131120t030000z-0123456789ab"


@pytest.fixture
def run() -> TrackedRun:
    """Of a model of this test's own."""
    return TrackedRun(
        model=f"m{uuid.uuid4().hex[:8]}",
        run_key=KEY,
        as_of=datetime(2013, 11, 20, 3, tzinfo=UTC),
        status=Status.FINISHED,
        metrics={"auc": 0.7},
    )


def test_a_run_is_known_by_what_was_told_last(cloud: Any, run: TrackedRun) -> None:
    """Once, however often it is told."""
    assert cloud.trackers.digests(VERTEX, run.model) == {}
    first = cloud.trackers.track(VERTEX, run)
    assert cloud.trackers.track(VERTEX, run) == first
    assert cloud.trackers.digests(VERTEX, run.model) == {KEY: run.digest}
    changed = dataclasses.replace(run, metrics={"auc": 0.6})
    assert cloud.trackers.track(VERTEX, changed) == first
    assert cloud.trackers.digests(VERTEX, run.model) == {KEY: changed.digest}


def test_a_tracker_that_is_not_there_is_named(
    stage: Stage, cloud: Any, run: TrackedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One class of error."""
    monkeypatch.delenv("AIRFLOW_CONN_MLFLOW_DEFAULT", raising=False)
    if isinstance(stage, MemoryStage):
        cloud.trackers.broken.add(MLFLOW)
    with pytest.raises(TrackingError, match=r"(?i)mlflow"):
        cloud.trackers.track(MLFLOW, run)
