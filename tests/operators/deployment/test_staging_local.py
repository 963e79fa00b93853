"""A version is tried on an endpoint of its own on the local cloud, through Google's clients.

Deaths are in test_staging.py, on the cloud in memory; here the process dies once, with the version on that endpoint.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core.documents import Deployment
from retraining.core.naming.vertex import staging_of
from retraining.hooks.cloud import Cloud
from tests.support.scenes.deployed_run import DeployedRun, Waiting
from tests.support.scenes.served_models import save_models

OLD, NEW = 0.25, 0.75
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def second_run(local_cloud, make_run, tmp_path) -> Iterator[DeployedRun]:
    """A version after a champion, to be tried first."""
    del local_cloud
    save_models(tmp_path, OLD, NEW)
    cloud, dag_id = Cloud(), f"retrain__tried_{uuid.uuid4().hex[:8]}"
    cloud.clock = Waiting()

    def night(day: int, score: float, **deployment: Any) -> DeployedRun:
        run = make_run(run_id=f"scheduled__{day}", dag_id=dag_id)
        return DeployedRun(cloud, run, datetime(2013, 11, day, 3, tzinfo=UTC), tmp_path / str(score), **deployment)

    night(20, OLD).deploy()
    made = night(21, NEW, staging=True)
    yield made
    made.retire()


def document(night: DeployedRun) -> Deployment:
    """How the deployment ended."""
    return Deployment.parse(night.cloud.artifacts.read_object(f"{night.folder}/deployment.json"))


def test_a_version_is_tried_and_then_serves_whoever_died(second_run: DeployedRun) -> None:
    """Made once, it stays empty; the version has been deployed once on each endpoint."""
    calls = second_run.deploy("predict", after=True)
    assert second_run.died
    assert calls.count("start_deploy") == 2
    tried = document(second_run).staging
    assert tried is not None
    assert tried.passed
    staging = second_run.cloud.endpoints.get(staging_of(second_run.model))
    assert staging.name == tried.endpoint_name
    assert (staging.deployed, staging.traffic) == ({}, {})
    assert second_run.state() == {
        "score": NEW,
        "answers": "2",
        "deployed": 2,
        "champion": "2",
        "previous": "1",
        "default": "2",
    }


def test_a_version_that_is_wrong_there_never_meets_a_customer(second_run: DeployedRun) -> None:
    """What serves is as it was, to the etag."""
    before = second_run.cloud.endpoints.get(second_run.model)
    second_run.expect_other_answers()
    second_run.deploy()
    ended = document(second_run)
    assert not ended.deployed
    assert "-staging gives answers that differ" in ended.message
    assert second_run.cloud.endpoints.get(second_run.model) == before
    staging = second_run.cloud.endpoints.get(staging_of(second_run.model))
    assert (staging.deployed, staging.traffic) == ({}, {})
    assert second_run.answer() == (OLD, "1")
