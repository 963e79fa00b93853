"""Two stages in the cloud in memory, with one bucket each: what staging promoted, production takes over."""

from __future__ import annotations

import dataclasses
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from retraining.core.documents import KINDS, Plan
from retraining.core.naming import storage, vertex
from retraining.core.settings import include_path
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.serving import FakeModelFiles
from tests.support.scenes.planned_run import FORM
from tests.support.scenes.recorded_run import RecordedRun

STAGES = """
stages:
  dev:
    bucket: dev
    models: {flight_delays: {data: {sample_percent: 20}}}
  staging:
    bucket: staging
    all_models: {training: {epochs: 3}, data: {window_days: 40}}
  nowhere:
  production:
    bucket: bucket
"""
TRAINED = datetime(2013, 11, 20, 3, tzinfo=UTC)
NEXT_DAY = datetime(2013, 11, 21, 3, tzinfo=UTC)
MODEL = b"a SavedModel"
ANSWERS = [0.1234]
"""To the smoke request of the training reports."""


class Stages:
    """Environments with a bucket each.

    Args:
        make_run: Makes DAG runs.
        monkeypatch: Sets the include folder and the stage.
        tmp_path: For that folder.
    """

    def __init__(self, make_run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self._make_run = make_run
        self.include = tmp_path / "include"
        shutil.copytree(include_path(), self.include)
        (self.include / "environments.yaml").write_text(STAGES)
        model = self.include / "models" / "flight_delays.yaml"
        model.write_text(model.read_text().replace("min_examples: 1000", "min_examples: 100"))
        monkeypatch.setenv("RETRAINING_INCLUDE", str(self.include))
        self._set_stage = lambda stage: monkeypatch.setenv("RETRAINING_STAGE", stage)
        self.production = FakeCloud()
        self.production.settings = dataclasses.replace(self.production.settings, stage="production")
        self.production.endpoints.predictions = ANSWERS
        self.objects = self.production.artifacts.objects

    def environment(self, stage: str) -> FakeCloud:
        """Return another stage's cloud, which has the same storage."""
        cloud, shared = FakeCloud(), self.production.artifacts
        cloud.artifacts = cloud.objects = cloud.warehouse._bucket = shared
        cloud.model_files = FakeModelFiles(shared)
        cloud.settings = dataclasses.replace(
            cloud.settings, bucket=stage, results_bucket=stage, environment=stage, stage=stage
        )
        cloud.endpoints.predictions = ANSWERS
        return cloud

    def run(self, cloud: FakeCloud, at: datetime = TRAINED, **form: Any) -> RecordedRun:
        """Return a run of a stage, planned and not further."""
        self._set_stage(cloud.settings.stage or "")
        dag_run = self._make_run(run_id=f"manual__{at:%d}", logical_date=at, run_after=at, params=FORM | form)
        return RecordedRun(cloud, dag_run)

    def promoted(self, stage: str = "staging", at: datetime = TRAINED, **form: Any) -> RecordedRun:
        """Return a whole run of another stage, whose version is champion there."""
        made = self.run(self.environment(stage), at, **form)
        made.clear()
        self.settle_digest(made)
        return made

    def settle_digest(self, made: RecordedRun) -> None:
        """Give a run's model the files that its report describes."""
        report = json.loads(self.objects[made.uri("report")])
        made.cloud.model_files.digests.clear()
        self.objects[f"{report['model_uri']}/saved_model.pb"] = MODEL
        self.objects[f"{report['model_uri']}/variables/variables.index"] = b"index"
        report["model_digest"] = made.cloud.model_files.digest(report["model_uri"])
        self.objects[made.uri("report")] = KINDS["report"].parse(json.dumps(report)).to_bytes()

    def take_over(self, source: RecordedRun, at: datetime = NEXT_DAY, **form: Any) -> RecordedRun:
        """Return production's run that takes a version over, planned and not further."""
        return self.run(self.production, at, taken_from=name_of(source), **form)

    def champion(self, run: RecordedRun) -> str:
        """Return the key of the run whose version is champion where a run was; empty: there is none."""
        version = run.cloud.registry.find_by_alias("flight_delays", vertex.CHAMPION)
        return version.run_key if version else ""


def plan_of(run: RecordedRun) -> Plan:
    """Return a run's plan."""
    return Plan.parse(run.cloud.artifacts.objects[run.uri("plan")])


def name_of(run: RecordedRun) -> str:
    """Return how a form names a run."""
    planned = plan_of(run)
    return f"{planned.stage}/{planned.run_key}"


def kept(run: RecordedRun, kind: str) -> str:
    """Return where a run keeps a document of the other stage."""
    return storage.taken_uri(run.folder, kind)
